import Concourse

/// Lets so many in at a time, and keeps no thread waiting for it: a semaphore whose `wait` is a closure.
// SAFETY: what changes is OWNED BY `queue`, a serial queue.
package final class Turnstile: @unchecked Sendable {
  /// A place, held until the last reference to it is dropped. It is passed along with the work.
  package final class Turn: Sendable {
    private let turnstile: Turnstile

    fileprivate init(_ turnstile: Turnstile) { self.turnstile = turnstile }

    deinit { turnstile.leave() }
  }

  private let queue = DispatchQueue(label: "googlypuff.turnstile")
  private var free: Int
  private var waiting: [@Sendable (Turn) -> Void] = []

  package init(places: Int) { free = places }

  /// Calls `enter` when there is a place, in the order of the calls.
  package func enter(_ enter: @escaping @Sendable (Turn) -> Void) {
    queue.async {
      self.waiting.append(enter)
      self.admit()
    }
  }

  private func leave() {
    queue.async {
      self.free += 1
      self.admit()
    }
  }

  private func admit() {
    while free > 0, !waiting.isEmpty {
      free -= 1
      waiting.removeFirst()(Turn(self))
    }
  }
}

import Concourse

/// A semaphore that blocks no thread: instead of waiting, the caller passes a closure, which runs when a place is free.
// SAFETY: what changes is OWNED BY `queue`, a serial queue.
package final class Turnstile: @unchecked Sendable {
  /// A place. The work holds a reference to it; the place is free again when the last reference is released.
  package final class Turn: Sendable {
    private let turnstile: Turnstile

    fileprivate init(_ turnstile: Turnstile) { self.turnstile = turnstile }

    deinit { turnstile.leave() }
  }

  private let queue = DispatchQueue(label: "googlypuff.turnstile")
  private var free: Int
  private var waiting: [@Sendable (Turn) -> Void] = []

  package init(places: Int) { free = places }

  /// Calls `enter` when a place is free, first come first served.
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

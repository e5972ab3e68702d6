/// Runs a piece of code exactly once, whoever comes first.
///
/// Swift's own lazily initialised globals do the same for values; this is for code that must run once per
/// object. Matching C type: `dispatch_once_t`.
public final class DispatchOnce: Sendable {
  private let gate = OnceGate()

  /// A gate that nobody has passed.
  public init() {}

  /// Runs `body` if it is the first call; other callers return only after it has completed.
  ///
  /// One load once it has. Traps when `body` calls `perform` on the same object. Matching C function:
  /// `dispatch_once`.
  public func perform(_ body: () -> Void) { gate.perform(body) }
}

/// The word behind `DispatchOnce`: 0 before, all ones afterwards, and in between the kernel id of the thread
/// that runs the body, with one bit more once somebody sleeps on it.
///
/// All ones for "done" is part of the C interface: code compiled against it looks at the word itself.
package struct OnceGate: ~Copyable {
  private static let done: UInt32 = .max
  private static let sleepers: UInt32 = 1 << 31

  private let word = Atomic<UInt32>(0)

  @inline(__always)
  func perform(_ body: () -> Void) {
    // ORDERING: acquiring; pairs with the releasing exchange below: who finds it done sees what was done.
    if word.load(ordering: .acquiring) != Self.done { performSlowly(body) }
  }

  @inline(never)
  private func performSlowly(_ body: () -> Void) {
    let id = CurrentThread.id
    // ORDERING: acquiring; as above, when another thread has just completed.
    let (first, seen) = word.compareExchange(expected: 0, desired: id, ordering: .acquiring)
    guard first else {
      if seen & ~Self.sleepers == id {
        Trap.clientBug("a body that runs once asked for itself again: it would wait for itself")
      }
      return waitUntilDone()
    }
    let thread = CurrentThread.state
    thread.pointee.once_depth &+= 1
    body()
    thread.pointee.once_depth &-= 1
    // ORDERING: acquiring and releasing; publishes what the body did.
    let last = word.exchange(Self.done, ordering: .acquiringAndReleasing)
    if last & Self.sleepers != 0 { Futex.wake(word, count: .max) }
  }

  private func waitUntilDone() {
    BlockedSection.run {
      while true {
        // ORDERING: acquiring; as in `perform`.
        let seen = word.load(ordering: .acquiring)
        if seen == Self.done { return }
        // ORDERING: relaxed; announces a sleeper, publishes nothing.
        if seen & Self.sleepers != 0
          || word.compareExchange(expected: seen, desired: seen | Self.sleepers, ordering: .relaxed).exchanged
        {
          _ = Futex.wait(word, expected: seen | Self.sleepers)
        }
      }
    }
  }
}

extension OnceGate {
  /// Passes the gate that lies in a word of a C program, `dispatch_once_t`: 0 before, all ones afterwards.
  /// - Parameter word: 8 bytes that stay where they are.
  package static func perform(at word: UnsafeMutableRawPointer, _ body: () -> Void) {
    // SAFETY: a gate is an atomic of 32 bits whose first state is 0, and those are the word's lower half.
    let gate = word.assumingMemoryBound(to: OnceGate.self)
    gate.pointee.perform {
      body()
      // SAFETY: the word's upper half. Inlined client code takes the whole word for done only when the gate has
      // stored the lower half, which it does afterwards, releasing.
      let upper = (word + 4).assumingMemoryBound(to: Atomic<UInt32>.self)
      // ORDERING: relaxed; see above.
      upper.pointee.store(.max, ordering: .relaxed)
    }
  }
}

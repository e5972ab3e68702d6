/// Runs a closure exactly once, on the first thread that asks for it.
///
/// For values, Swift's lazily initialized globals do the same; this type is for code that must run once per object.
/// Matching C type: `dispatch_once_t`.
public final class DispatchOnce: Sendable {
  private let gate = OnceGate()

  /// Creates an object whose closure has not run.
  public init() {}

  /// Runs `body` on the first call. Concurrent callers return when `body` has completed; later calls cost one load.
  /// Traps when `body` calls `perform` on the same object. Matching C function: `dispatch_once`.
  /// - Parameter body: runs on the caller.
  public func perform(_ body: () -> Void) { gate.perform(body) }
}

/// The word of a `DispatchOnce`. It is 0 before the body runs, all ones after it has completed, and in between the
/// kernel id of the thread that runs the body, with one more bit set once another thread sleeps on it.
///
/// All ones for "done" is part of the C interface: code compiled against the header tests the word itself.
package struct OnceGate: ~Copyable {
  private static let done: UInt32 = .max
  private static let sleepers: UInt32 = 1 << 31

  private let word = Atomic<UInt32>(0)

  @inline(__always)
  func perform(_ body: () -> Void) {
    // ORDERING: acquiring; pairs with the releasing exchange in `performSlowly`; a caller that finds the gate done
    // sees the effects of the body.
    if word.load(ordering: .acquiring) != Self.done { performSlowly(body) }
  }

  @inline(never)
  private func performSlowly(_ body: () -> Void) {
    let id = CurrentThread.id
    // ORDERING: acquiring; as in `perform`, if another thread has just completed.
    let (first, seen) = word.compareExchange(expected: 0, desired: id, ordering: .acquiring)
    guard first else {
      let runner = seen & ~Self.sleepers
      if runner == id || CurrentThread.state.pointee.once_depth > 0 && Process.hadInParent(runner) {
        Trap.clientBug(305, "a once body called its own once again: it would wait for itself")
      }
      if Process.hasLeftThreads { requireRunner() }
      return waitUntilDone()
    }
    let thread = CurrentThread.state
    thread.pointee.once_depth &+= 1
    body()
    thread.pointee.once_depth &-= 1
    // ORDERING: acquiring and releasing; pairs with the acquiring loads in `perform` and `waitUntilDone`; publishes
    // the effects of the body.
    let last = word.exchange(Self.done, ordering: .acquiringAndReleasing)
    if last & Self.sleepers != 0 { Futex.wake(word, count: .max) }
  }

  /// Traps in a forked child if the thread that runs the body is one of the parent.
  private func requireRunner() {
    // ORDERING: relaxed, both; if the word has not changed, the body has not ended.
    let seen = word.load(ordering: .relaxed)
    guard seen != Self.done && Process.lacks(thread: seen & ~Self.sleepers) else { return }
    let now = word.load(ordering: .relaxed)
    guard now & ~Self.sleepers == seen & ~Self.sleepers else { return }
    Runtime.refuseWait("once, whose body a thread of the parent runs,")
  }

  private func waitUntilDone() {
    if TaskWaits.sleepBriefly("DispatchOnce.perform()", { sleepUntilDone($0) }) { return }
    // SAFETY: a gate stays where it is, at least until the wait ends.
    withUnsafePointer(to: self) { gate in
      Recording.wait(.once, gate) {
        BlockedThreads.during(.init(object: gate, kind: .once), ending: .byThread(Self.runner)) { deadline in
          BlockedSection.run { sleepUntilDone(deadline) }
        }
      }
    }
  }

  private func sleepUntilDone(_ deadline: Deadline) -> Bool {
    while true {
      // ORDERING: acquiring; as in `perform`.
      let seen = word.load(ordering: .acquiring)
      if seen == Self.done { return true }
      // ORDERING: relaxed; announces a sleeper and publishes nothing.
      if seen & Self.sleepers != 0
        || word.compareExchange(expected: seen, desired: seen | Self.sleepers, ordering: .relaxed).exchanged
      {
        if Futex.waitForOthers(word, expected: seen | Self.sleepers, deadline: deadline) == .timedOut {
          return false
        }
      }
    }
  }

  /// The id of the thread that runs the body of a gate; 0 if it has returned.
  static func runner(_ gate: UnsafeRawPointer) -> UInt32 {
    // ORDERING: relaxed; the id counts only if its thread is registered, which publishes what that thread stored.
    let word = gate.assumingMemoryBound(to: OnceGate.self).pointee.word.load(ordering: .relaxed)
    return word == done ? 0 : word & ~sleepers
  }
}

extension OnceGate {
  /// Performs `body` once for a `dispatch_once_t` of a C program: 0 before, all ones afterwards.
  /// - Parameter word: 8 bytes at a fixed address.
  package static func perform(at word: UnsafeMutableRawPointer, _ body: () -> Void) {
    // SAFETY: a gate is a 32-bit atomic whose initial state is 0; it occupies the lower half of the word.
    let gate = word.assumingMemoryBound(to: OnceGate.self)
    gate.pointee.perform {
      body()
      // SAFETY: the upper half of the word. Inlined client code tests the whole word, which reads as done only after
      // the gate's releasing exchange has stored the lower half.
      let upper = (word + 4).assumingMemoryBound(to: Atomic<UInt32>.self)
      // ORDERING: relaxed; the gate's releasing exchange follows and publishes this store.
      upper.pointee.store(.max, ordering: .relaxed)
    }
  }
}

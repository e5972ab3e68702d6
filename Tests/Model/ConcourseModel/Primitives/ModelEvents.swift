/// The pool's event driver, with a kernel of one word: the events that no thread has collected. Closed
/// unless a scenario opens it.
///
/// As in the engine, one worker may wait here, and the loop's own thread always does. A thread that collects takes
/// everything, even an interruption meant for the other.
final class ModelEvents: EventDriver {
  // SAFETY: read and written on the exploring thread only; explorations run one at a time.
  nonisolated(unsafe) private(set) static var shared = ModelEvents()

  /// Starts an execution with a closed loop.
  static func beginAfresh() { shared = ModelEvents() }

  private var isOpen = false
  private let seat = Atomic<UInt32>(0)
  /// Interruptions in the low half, events in the high half.
  private let ready = Atomic<UInt32>(0)
  private static let event: UInt32 = 0x10000
  /// Called for each event.
  private var onEvent: () -> Void = {}

  /// Opens the loop. The thread that collects an event calls `handler`.
  func open(_ handler: @escaping () -> Void) {
    isOpen = true
    onEvent = handler
    Model.background("event thread") { [self] in
      while true { collect { interruptions in passOn(interruptions) } }
    }
  }

  /// Posts an event from outside.
  func happen() { post(Self.event) }

  func interrupt() {
    if !ModelFaults.dropsInterruptions { post(1) }
  }

  private func post(_ what: UInt32) {
    // ORDERING: sequentially consistent, as everything in the model.
    ready.wrappingAdd(what, ordering: .sequentiallyConsistent)
    Futex.wake(ready, count: 1)
  }

  private func collect(_ afterWait: (UInt32) -> Void) {
    while true {
      // ORDERING: as above.
      let found = ready.exchange(0, ordering: .sequentiallyConsistent)
      guard found != 0 else {
        _ = Futex.wait(ready, expected: 0)
        continue
      }
      afterWait(found & (Self.event - 1))
      for _ in 0..<found / Self.event { onEvent() }
      return
    }
  }

  private func passOn(_ interruptions: UInt32) {
    // ORDERING: as above.
    guard interruptions > 0, seat.load(ordering: .sequentiallyConsistent) == 1 else { return }
    interrupt()
    // The nap, so that the worker collects it.
    Processor.pause()
  }

  // MARK: What the pool calls

  func takeSeat() -> Bool {
    // ORDERING: as above.
    isOpen && seat.compareExchange(expected: 0, desired: 1, ordering: .sequentiallyConsistent).exchanged
  }

  func leaveSeat() {
    // ORDERING: as above.
    seat.store(0, ordering: .sequentiallyConsistent)
  }

  func pollAsWorker(milliseconds: Int32, beforeEvents: (Bool) -> Void) {
    collect { _ in
      leaveSeat()
      beforeEvents(true)
    }
  }

  func startThread() { Trap.runtimeBug("the scenario makes the model's event thread") }
  var hasThread: Bool { isOpen }
}

// SAFETY: one thread explores.
extension ModelEvents: @unchecked Sendable {}

/// Somebody who is told when items begin and end: a tracer, a profiler, a test.
///
/// Called on the thread that runs the item, inside its frame, so `DispatchQueue.currentLabel` answers. The
/// calls must be quick and must not submit or wait.
protocol ItemObserver: AnyObject, Sendable {
  /// An item of `queue` is about to run.
  func itemWillRun(on queue: DispatchQueue)
  /// It has returned.
  func itemDidRun(on queue: DispatchQueue)
}

/// The hooks for observation: one relaxed load an item while nobody observes.
enum Observation {
  private static let isOn = Atomic<Bool>(false)
  private static let lock = Lock()
  // SAFETY: GUARDED BY `lock`.
  private nonisolated(unsafe) static var observer: (any ItemObserver)?

  /// Whether anybody observes.
  @inline(__always)
  static var isActive: Bool {
    // ORDERING: relaxed; an item that begins while observation begins may be missed.
    isOn.load(ordering: .relaxed)
  }

  /// Tells `observer` about all items that begin from now on; nil ends the observation.
  static func observe(with observer: (any ItemObserver)?) {
    lock.withLock { Self.observer = observer }
    // ORDERING: relaxed; the lock publishes the observer.
    isOn.store(observer != nil, ordering: .relaxed)
  }

  /// Runs `item` between the observer's two calls; both go to the same observer.
  @inline(never)
  static func run(_ item: () -> Void) {
    guard let observer = lock.withLock({ observer }), let frame = Frame.current else { return item() }
    let queue = frame.pointee.queue.takeUnretainedValue()
    observer.itemWillRun(on: queue)
    item()
    observer.itemDidRun(on: queue)
  }
}

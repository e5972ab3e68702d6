// Overcommitting queues: each was promised a thread of its own, since its items may spin until those of others have run.
//
// An overcommitting queue is one whose target is an overcommitting global queue. It shares the roots with all others,
// and costs nothing as long as workers make progress. If all of them compute, the monitor looks every few ticks for an
// entry that was promised a thread, and adds a worker for it (Pool/MONITOR.md).

/// The overcommitting global queues: one beside each global queue, with the same root.
enum Overcommit {
  // ORDERING: relaxed; a monitor that reads false too late looks again after a few ticks.
  private static let isUsed = Atomic<Bool>(false)

  private static let queues = (0...5).map { number -> GlobalQueue in
    // ORDERING: relaxed; see `isUsed`.
    isUsed.store(true, ordering: .relaxed)
    return GlobalQueue(
      Runtime.globalQueue(QoSLevel(rawValue: UInt8(number))!).asGlobal.root.takeUnretainedValue(),
      isOvercommitting: true)
  }

  /// The one beside the global queue of `level`. It is never freed.
  static func queue(_ level: QoSLevel) -> Unmanaged<DispatchQueue> {
    .passUnretained(queues[Int(level.rawValue)])
  }

  /// Whether `queue`, which is only compared, is one of them.
  fileprivate static func contains(_ queue: Unmanaged<DispatchQueue>?) -> Bool {
    queues.contains { Unmanaged.passUnretained($0).toOpaque() == queue?.toOpaque() }
  }

  /// Whether a worker would find a promised entry among the oldest of a band.
  static func isAwaited(in band: Band) -> Bool {
    // ORDERING: relaxed; see `isUsed`.
    guard isUsed.load(ordering: .relaxed) else { return false }
    for root in band.roots where root._withUnsafeGuaranteedRef({ $0.hasPromisedEntry }) { return true }
    return false
  }
}

extension RootQueue {
  fileprivate var hasPromisedEntry: Bool {
    guard hasWork && tryToConsume() else { return false }
    defer { consumer.unlock() }
    return lastAmongOldest { $0.wasPromisedThread } > 0
  }
}

extension NodePointer {
  /// Whether the entry of a root is an overcommitting global queue's item, or for a queue that targets one.
  fileprivate var wasPromisedThread: Bool {
    if traits.contains(.promised) { return true }
    if let queue = pointee.admittedBy { return queue._withUnsafeGuaranteedRef { $0.isOvercommitting } }
    switch workPointer.pointee {
    case .drain(let queue): return queue.isOvercommitting
    default: return false
    }
  }
}

extension DispatchQueue {
  /// Whether the queue was promised a thread.
  // The target of another thread's queue may end at any moment: it is only compared.
  fileprivate final var isOvercommitting: Bool { Overcommit.contains(target) }

  /// The overcommitting global queue of a class. Matching C function: `dispatch_get_global_queue` with
  /// `DISPATCH_QUEUE_OVERCOMMIT`.
  package static func overcommit(qos: DispatchQoS.QoSClass) -> DispatchQueue {
    Overcommit.queue(QoSLevel(qos)).takeUnretainedValue()
  }

  /// This queue as the target of one that asks for a thread, or not to have one: for a global queue the other one with
  /// the same root.
  final func asTarget(overcommitting: Bool) -> DispatchQueue {
    guard kind == .global else { return self }
    return overcommitting ? Overcommit.queue(level).takeUnretainedValue() : Runtime.globalQueue(level)
  }
}

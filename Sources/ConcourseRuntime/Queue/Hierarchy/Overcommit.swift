internal import CConcourse

// Overcommitting queues: each was promised a thread of its own, since its items may spin until those of others have run.
//
// An overcommitting queue is one whose target is an overcommitting global queue. It shares the roots with all others,
// and costs nothing as long as workers make progress. If all of them compute, the monitor looks every few ticks for an
// entry that was promised a thread, and adds a worker for it (Pool/MONITOR.md).

/// The overcommitting global queues: one beside each global queue, with the same roots.
enum Overcommit {
  private static let queues = (0...5).map { number -> GlobalQueue in
    // ORDERING: relaxed; a monitor that reads false too late looks again after a few ticks.
    Runtime.shared.hasPromised.store(true, ordering: .relaxed)
    let level = DispatchQueue.global(at: QoSLevel(rawValue: UInt8(number))!).asGlobal.rootLevel
    return GlobalQueue(level, isOvercommitting: true)
  }

  /// The one beside the global queue of `level`. It is never freed.
  static func queue(_ level: QoSLevel) -> Unmanaged<DispatchQueue> {
    .passUnretained(queues[Int(level.rawValue)])
  }

  /// Whether `queue`, which is only compared, is one of them.
  fileprivate static func contains(_ queue: Unmanaged<DispatchQueue>?) -> Bool {
    queues.contains { Unmanaged.passUnretained($0).toOpaque() == queue?.toOpaque() }
  }
}

/// Whether the entry of a root is an overcommitting global queue's item, or for a queue that targets one. Called by the
/// monitor, while the entry stays in its root.
@c(concourse_was_promised_thread)
func wasPromisedThread(_ entry: UnsafeMutableRawPointer) -> Bool {
  // SAFETY: only entries of queues have a kind that the pool asks for.
  let node = entry.assumingMemoryBound(to: WorkNode.self)
  if node.traits.contains(.promised) { return true }
  if let queue = node.admittedBy { return queue._withUnsafeGuaranteedRef { $0.isOvercommitting } }
  switch node.workPointer.pointee {
  case .drain(let queue): return queue.isOvercommitting
  default: return false
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
    return overcommitting ? Overcommit.queue(level).takeUnretainedValue() : DispatchQueue.global(at: level)
  }
}

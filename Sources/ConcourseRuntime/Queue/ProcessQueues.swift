/// What a process has once of queues: the global queues, the main queue and its thread, and what watches all queues.
/// Made with the first queue.
final class ProcessQueues {
  /// Indexed by `QoSLevel.rawValue`; the first is default's. Never released: counting references on each submission
  /// would make all threads write one cache line. Plain memory, as the tables of `Runtime`.
  let globals: UnsafeMutablePointer<Unmanaged<DispatchQueue>>
  let mainQueue: DispatchQueue
  /// The server of the main queue.
  let mainThread = MainThread()
  /// The threads that sleep in waits without a time-out (DEADLOCKS.md).
  var blockedThreads: BlockedThreads { uncountedBlockedThreads.takeUnretainedValue() }
  /// The same without a reference, as `globals`: each thread that sleeps uses it.
  let uncountedBlockedThreads = Unmanaged.passRetained(BlockedThreads())
  /// Orders changes of queues' targets (DispatchQueue+Target.swift).
  let targetLock = Lock(.target)

  init() {
    mainQueue = DispatchQueue(
      kind: .main, label: QueueName("com.apple.main-thread"), qos: .unspecified, attributes: [], target: nil)
    let roots = Runtime.shared.roots
    globals = .allocate(capacity: QoSLevel.count)
    for level in 1..<QoSLevel.count {
      let queue = Unmanaged.passRetained(GlobalQueue(QoSLevel(rawValue: UInt8(level))!) as DispatchQueue)
      for shard in 0..<Runtime.shared.shardCount {
        roots[shard * QoSLevel.count + level]._withUnsafeGuaranteedRef { $0.adopt(queue.toOpaque()) }
      }
      (globals + level).initialize(to: queue)
    }
    globals.initialize(to: globals[Int(QoSLevel.default.rawValue)])
  }

  deinit { uncountedBlockedThreads.release() }
}

// SAFETY: everything is constant after `init`.
extension ProcessQueues: @unchecked Sendable {}

// SAFETY: restates the conformance of DispatchQueue; its properties are constant.
/// One of the queues in which every hierarchy ends: hands its items directly to the pool.
final class GlobalQueue: DispatchQueue, @unchecked Sendable {
  /// The level of its roots.
  let rootLevel: QoSLevel
  /// Whether its items were promised a thread each (Overcommit.swift).
  let isOvercommitting: Bool

  init(_ level: QoSLevel, isOvercommitting: Bool = false) {
    rootLevel = level
    self.isOvercommitting = isOvercommitting
    super.init(
      kind: .global, label: QueueName(isOvercommitting ? level.label + ".overcommit" : level.label),
      qos: DispatchQoS(qosClass: level.qosClass, relativePriority: 0), attributes: [], target: nil)
  }
}

extension DispatchQueue {
  /// This queue as a global queue. Its kind must be `.global`.
  final var asGlobal: GlobalQueue {
    // SAFETY: only GlobalQueue passes the kind `.global` to the initialiser.
    @inline(__always) get { unsafeDowncast(self, to: GlobalQueue.self) }
  }
}

extension DispatchQueue {
  /// Whether both stand for the same global queue.
  final func isSameGlobalQueue(as other: DispatchQueue) -> Bool {
    kind == .global && other.kind == .global && asGlobal.rootLevel == other.asGlobal.rootLevel
  }
}

extension QoSLevel {
  /// The global queue's label: a constant, since all of them are made when a program first uses the pool.
  fileprivate var label: String {
    switch self {
    case .background: "com.apple.root.background-qos"
    case .utility: "com.apple.root.utility-qos"
    case .default, .unspecified: "com.apple.root.default-qos"
    case .userInitiated: "com.apple.root.user-initiated-qos"
    case .userInteractive: "com.apple.root.user-interactive-qos"
    }
  }
}

extension DispatchQueue {
  /// The global queue of a quality-of-service class: always the same object for a class.
  ///
  /// Global queues are concurrent; barriers on them are ordinary items, and suspending them has no
  /// effect. `.unspecified` gives the default queue. Matching C function: `dispatch_get_global_queue`.
  /// - Parameter qos: the class; `.unspecified` means the default class.
  public class func global(qos: DispatchQoS.QoSClass = .default) -> DispatchQueue {
    global(at: QoSLevel(qos))
  }

  /// The global queue of a legacy priority. Matching C function: `dispatch_get_global_queue`.
  /// - Parameter priority: the legacy priority.
  @available(macOS, deprecated: 10.10, renamed: "global(qos:)")
  public class func global(priority: GlobalQueuePriority) -> DispatchQueue {
    switch priority {
    case .high: global(at: .userInitiated)
    case .default: global(at: .default)
    case .low: global(at: .utility)
    case .background: global(at: .background)
    }
  }
}

extension DispatchQueue {
  /// The global queue of `level`.
  package static func global(at level: QoSLevel) -> DispatchQueue {
    uncountedGlobal(at: level).takeUnretainedValue()
  }

  /// As `global(at:)`, without counting a reference: global queues are never freed.
  static func uncountedGlobal(at level: QoSLevel) -> Unmanaged<DispatchQueue> {
    ProcessQueues.shared.globals[Int(level.rawValue)]
  }
}

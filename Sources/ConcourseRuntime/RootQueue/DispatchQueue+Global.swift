extension DispatchQueue {
  /// The global queue of a quality-of-service class: always the same object for a class.
  ///
  /// Global queues are concurrent; barriers on them are ordinary items, and suspending them has no
  /// effect. `.unspecified` gives the default queue. Matching C function: `dispatch_get_global_queue`.
  public class func global(qos: DispatchQoS.QoSClass = .default) -> DispatchQueue {
    Runtime.globalQueue(QoSLevel(qos))
  }

  /// As `global(qos:)`, by another name for the same: the C interface's flag asks for a thread that the pool gives to
  /// whoever needs one.
  package static func overcommit(qos: DispatchQoS.QoSClass) -> DispatchQueue {
    overcommitting[Int(QoSLevel(qos).rawValue)]
  }

  private static let overcommitting = (0...5).map { number -> DispatchQueue in
    GlobalQueue(
      Runtime.globalQueue(QoSLevel(rawValue: UInt8(number))!).asGlobal.root.takeUnretainedValue(),
      suffix: ".overcommit")
  }

  /// The global queue of a legacy priority. Matching C function: `dispatch_get_global_queue`.
  @available(macOS, deprecated: 10.10, renamed: "global(qos:)")
  public class func global(priority: GlobalQueuePriority) -> DispatchQueue {
    switch priority {
    case .high: Runtime.globalQueue(.userInitiated)
    case .default: Runtime.globalQueue(.default)
    case .low: Runtime.globalQueue(.utility)
    case .background: Runtime.globalQueue(.background)
    }
  }
}

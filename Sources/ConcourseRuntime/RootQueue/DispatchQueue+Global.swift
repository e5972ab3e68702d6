extension DispatchQueue {
  /// The global queue of a quality-of-service class: always the same object for a class.
  ///
  /// Global queues are concurrent; barriers on them are ordinary items, and suspending them has no
  /// effect. `.unspecified` gives the default queue. Matching C function: `dispatch_get_global_queue`.
  public class func global(qos: DispatchQoS.QoSClass = .default) -> DispatchQueue {
    Runtime.globalQueue(QoSLevel(qos))
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

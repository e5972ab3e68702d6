/// A key for values attached to queues; the object's identity is what counts.
public final class DispatchSpecificKey<T> {
  /// A key unlike every other.
  public init() {}
}

// SAFETY: the key has no state; the value's safety is that of its type.
extension DispatchSpecificKey: @unchecked Sendable where T: Sendable {}

extension DispatchQueue {
  /// The value for `key` at the queue of the running item or, failing that, at the queues it targets.
  ///
  /// Synchronous submitters are not looked at. nil outside items, but on the main thread the main queue
  /// is looked at. Matching C function: `dispatch_get_specific`.
  public class func getSpecific<T>(key: DispatchSpecificKey<T>) -> T? {
    var link = current
    while let queue = link {
      if let value = queue.getSpecific(key: key) { return value }
      link = queue.targetQueue
    }
    return nil
  }

  /// The value for `key` at this queue, not at its targets. Matching C function:
  /// `dispatch_queue_get_specific`.
  public final func getSpecific<T>(key: DispatchSpecificKey<T>) -> T? {
    guard let extras = extrasIfAny else { return nil }
    return extras.lock.withLock { extras.specifics[ObjectIdentifier(key)]?.value as? T }
  }

  /// Attaches a value to this queue, or removes it with nil.
  ///
  /// The value it replaces is released asynchronously on the default global queue. Matching C function:
  /// `dispatch_queue_set_specific`.
  public final func setSpecific<T>(key: DispatchSpecificKey<T>, value: T?) {
    if value == nil && extrasIfAny == nil { return }
    let extras = self.extras
    let former = extras.lock.withLock { () -> (key: AnyObject, value: Any)? in
      if let value {
        return extras.specifics.updateValue((key, value), forKey: ObjectIdentifier(key))
      }
      return extras.specifics.removeValue(forKey: ObjectIdentifier(key))
    }
    guard let former else { return }
    Runtime.globalQueue(.default).asyncUnsafe { withExtendedLifetime(former) {} }
  }
}

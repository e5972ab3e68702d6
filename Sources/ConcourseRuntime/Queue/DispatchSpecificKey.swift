/// A key for values attached to queues. Keys are compared by identity.
public final class DispatchSpecificKey<T> {
  /// Creates a unique key.
  public init() {}
}

// SAFETY: the key has no state; the values are as safe as their type.
extension DispatchSpecificKey: @unchecked Sendable where T: Sendable {}

extension DispatchQueue {
  /// The value for `key` of the running item's queue or, if it has none, of the nearest target queue that has one.
  ///
  /// Queues of synchronous submitters are not searched. Outside items the result is nil, except that on the main
  /// thread the main queue is searched. Matching C function: `dispatch_get_specific`.
  /// - Parameter key: the key, by its identity.
  public class func getSpecific<T>(key: DispatchSpecificKey<T>) -> T? {
    var link = current
    while let queue = link {
      if let value = queue.getSpecific(key: key) { return value }
      link = queue.targetQueue
    }
    return nil
  }

  /// The value for `key` of this queue; its targets are not searched.
  /// Matching C function: `dispatch_queue_get_specific`.
  /// - Parameter key: the key, by its identity.
  public final func getSpecific<T>(key: DispatchSpecificKey<T>) -> T? {
    guard let extras = extrasIfAny else { return nil }
    return extras.lock.withLock { extras.specifics[ObjectIdentifier(key)]?.value as? T }
  }

  /// Attaches a value to this queue, or removes it with nil.
  ///
  /// The replaced value is released asynchronously on the default global queue.
  /// Matching C function: `dispatch_queue_set_specific`.
  /// - Parameters:
  ///   - key: The key; its identity counts.
  ///   - value: The new value, or nil to remove the value.
  public final func setSpecific<T>(key: DispatchSpecificKey<T>, value: T?) {
    if value == nil && extrasIfAny == nil { return }
    let extras = self.extras
    let former = extras.lock.withLock { () -> (key: AnyObject, value: Any)? in
      if let value {
        return extras.specifics.updateValue((key, value), forKey: ObjectIdentifier(key))
      }
      return extras.specifics.removeValue(forKey: ObjectIdentifier(key))
    }
    guard let former, !Process.isForkedChild else { return }
    DispatchQueue.global(at: .default).submit { withExtendedLifetime(former) {} }
  }
}

/// The values that a C program has attached to a queue, by the address of their key.
///
/// A list that is read without a lock. An entry stays for the life of the queue, with a nil value after removal, so
/// the list has one entry for each key ever used. A read that races with a replacement returns either value, as the
/// interface allows.
struct ContextValues: ~Copyable {
  private struct Entry: ~Copyable {
    let key: UnsafeRawPointer
    let value: Atomic<UnsafeMutableRawPointer?>
    /// GUARDED BY the lock of the queue's extras.
    var destructor: ContextFunction?
    let next: UnsafeMutablePointer<Entry>?
  }

  private let first = Atomic<UnsafeMutablePointer<Entry>?>(nil)

  /// The value of `key`, or nil.
  @inline(__always)
  func value(of key: UnsafeRawPointer) -> UnsafeMutableRawPointer? {
    // ORDERING: acquiring; pairs with the releasing store in `set`, which publishes the entry.
    var link = first.load(ordering: .acquiring)
    while let entry = link {
      // ORDERING: acquiring; pairs with the exchange in `set`, which publishes what the value points to.
      if entry.pointee.key == key { return entry.pointee.value.load(ordering: .acquiring) }
      link = entry.pointee.next
    }
    return nil
  }

  /// A detached value, and the destructor to call with it.
  typealias Former = (value: UnsafeMutableRawPointer, destructor: ContextFunction)

  /// Attaches a value, or detaches it with nil. Call under the lock of the queue's extras.
  /// - Returns: the former value, if it has a destructor.
  func set(_ key: UnsafeRawPointer, _ value: UnsafeMutableRawPointer?, _ destructor: ContextFunction?)
    -> Former?
  {
    // ORDERING: relaxed; the list changes only under the lock.
    let head = first.load(ordering: .relaxed)
    var link = head
    while let entry = link, entry.pointee.key != key { link = entry.pointee.next }
    if let entry = link {
      // ORDERING: acquiring and releasing; pairs with the acquiring load of the value in `value(of:)`, and publishes
      // its target.
      let former = entry.pointee.value.exchange(value, ordering: .acquiringAndReleasing)
      defer { entry.pointee.destructor = destructor }
      guard let former, let formerDestructor = entry.pointee.destructor else { return nil }
      return (former, formerDestructor)
    }
    guard value != nil else { return nil }
    let entry = UnsafeMutablePointer<Entry>.allocate(capacity: 1)
    entry.initialize(to: Entry(key: key, value: Atomic(value), destructor: destructor, next: head))
    // ORDERING: releasing; pairs with the acquiring load of `first` in `value(of:)`, and publishes the entry.
    first.store(entry, ordering: .releasing)
    return nil
  }

  deinit {
    // ORDERING: relaxed, both; only the destroying thread accesses the queue.
    var link = first.load(ordering: .relaxed)
    while let entry = link {
      link = entry.pointee.next
      if let value = entry.pointee.value.load(ordering: .relaxed), let destructor = entry.pointee.destructor,
        !Process.isForkedChild
      {
        DispatchQueue.global(at: .default).asyncFunction(value, destructor, barrier: false)
      }
      entry.deinitialize(count: 1)
      entry.deallocate()
    }
  }
}

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

/// Values that a C program has attached to a queue, by the address of their key.
///
/// A list that is read without a lock: an entry stays once it is there, with no value if need be, so that there are as
/// many as keys were ever used. Who reads a value while it is being replaced may get either, as the interface has it.
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
    // ORDERING: acquiring; pairs with `set`: what the entry and the value point to is there.
    var link = first.load(ordering: .acquiring)
    while let entry = link {
      // ORDERING: acquiring; as above.
      if entry.pointee.key == key { return entry.pointee.value.load(ordering: .acquiring) }
      link = entry.pointee.next
    }
    return nil
  }

  /// A value that is not attached any more, and what is to be called with it.
  typealias Former = (value: UnsafeMutableRawPointer, destructor: ContextFunction)

  /// Attaches a value, nil removing what there is. Call under the lock of the queue's extras.
  /// - Returns: the former value, if it has a destructor.
  func set(_ key: UnsafeRawPointer, _ value: UnsafeMutableRawPointer?, _ destructor: ContextFunction?)
    -> Former?
  {
    // ORDERING: relaxed; changes only under the lock.
    let head = first.load(ordering: .relaxed)
    var link = head
    while let entry = link, entry.pointee.key != key { link = entry.pointee.next }
    if let entry = link {
      // ORDERING: acquiring and releasing; see `value(of:)`.
      let former = entry.pointee.value.exchange(value, ordering: .acquiringAndReleasing)
      defer { entry.pointee.destructor = destructor }
      guard let former, let formerDestructor = entry.pointee.destructor else { return nil }
      return (former, formerDestructor)
    }
    guard value != nil else { return nil }
    let entry = UnsafeMutablePointer<Entry>.allocate(capacity: 1)
    entry.initialize(to: Entry(key: key, value: Atomic(value), destructor: destructor, next: head))
    // ORDERING: releasing; see `value(of:)`.
    first.store(entry, ordering: .releasing)
    return nil
  }

  deinit {
    // ORDERING: relaxed, both; the queue is being destroyed by its only thread.
    var link = first.load(ordering: .relaxed)
    while let entry = link {
      link = entry.pointee.next
      if let value = entry.pointee.value.load(ordering: .relaxed), let destructor = entry.pointee.destructor {
        Runtime.globalQueue(.default).asyncFunction(value, destructor, barrier: false)
      }
      entry.deinitialize(count: 1)
      entry.deallocate()
    }
  }
}

internal import CConcourseABI
internal import ConcourseEvents

// Converts between C references and objects. A reference is the object's address, except for objects that C programs
// know by the address of a data symbol: the main queue and empty data.

/// How the C interface passes objects, function contexts and blocks.
package typealias Reference = UnsafeMutableRawPointer

/// Objects by reference. The caller's reference keeps the object alive during the call.
enum Object {
  @inline(__always)
  static func any(_ reference: Reference?, _ function: StaticString) -> Unmanaged<DispatchObject> {
    guard let reference else { Reject.null(function, "object") }
    // SAFETY: by the contract of the C interface. Only a freed object is detected, until its memory is reused.
    let object = Unmanaged<DispatchObject>.fromOpaque(reference)
    return object._withUnsafeGuaranteedRef {
      if !$0.kind.isObject { return fromSymbol($0.kind, function) }
      if $0.isGone { DispatchObject.trapAsGone(function) }
      return object
    }
  }

  /// The object that a data symbol stands for.
  @inline(never)
  private static func fromSymbol(_ kind: ObjectKind, _ function: StaticString) -> Unmanaged<DispatchObject> {
    if kind == .mainQueueSymbol { return .passUnretained(mainQueue) }
    if kind == .emptyDataSymbol { return .passUnretained(DataObject.empty) }
    Reject.kind(function, kind, "an object")
  }

  private static var mainQueue: DispatchQueue {
    let queue = DispatchQueue.main
    concourse_show_main_queue(Unmanaged.passUnretained(queue).toOpaque())
    return queue
  }

  /// The main queue for its symbol; any other kind traps.
  @inline(never)
  private static func mainQueue(_ kind: ObjectKind, _ function: StaticString) -> Unmanaged<DispatchQueue> {
    if kind == .mainQueueSymbol { return .passUnretained(mainQueue) }
    Reject.kind(function, kind, "a queue")
  }

  @inline(__always)
  static func queue(_ reference: Reference?, _ function: StaticString) -> Unmanaged<DispatchQueue> {
    guard let reference else { Reject.null(function, "queue") }
    // SAFETY: as in `any`; the kind is checked before anything else is used.
    let object = Unmanaged<DispatchQueue>.fromOpaque(reference)
    return object._withUnsafeGuaranteedRef { $0.kind.isQueue ? object : mainQueue($0.kind, function) }
  }

  /// The queue, or nil for NULL.
  @inline(__always)
  static func queueIfAny(_ reference: Reference?, _ function: StaticString) -> DispatchQueue? {
    reference.map { queue($0, function).takeUnretainedValue() }
  }

  @inline(__always)
  static func group(_ reference: Reference?, _ function: StaticString) -> Unmanaged<DispatchGroup> {
    guard let reference else { Reject.null(function, "group") }
    // SAFETY: as in `queue`.
    let object = Unmanaged<DispatchGroup>.fromOpaque(reference)
    object._withUnsafeGuaranteedRef { if $0.kind != .group { Reject.kind(function, $0.kind, "a group") } }
    return object
  }

  @inline(__always)
  static func semaphore(_ reference: Reference?, _ function: StaticString) -> Unmanaged<DispatchSemaphore> {
    guard let reference else { Reject.null(function, "semaphore") }
    // SAFETY: as in `queue`.
    let object = Unmanaged<DispatchSemaphore>.fromOpaque(reference)
    object._withUnsafeGuaranteedRef {
      if $0.kind != .semaphore { Reject.kind(function, $0.kind, "a semaphore") }
    }
    return object
  }

  // Like the two above, but nil instead of a trap. The caller then calls `refuse`, so its own path needs no stack
  // frame.

  @inline(__always)
  static func groupIfOne(_ reference: Reference?) -> Unmanaged<DispatchGroup>? {
    guard let reference else { return nil }
    // SAFETY: as in `queue`.
    let object = Unmanaged<DispatchGroup>.fromOpaque(reference)
    return object._withUnsafeGuaranteedRef { $0.kind == .group ? object : nil }
  }

  @inline(__always)
  static func semaphoreIfOne(_ reference: Reference?) -> Unmanaged<DispatchSemaphore>? {
    guard let reference else { return nil }
    // SAFETY: as in `queue`.
    let object = Unmanaged<DispatchSemaphore>.fromOpaque(reference)
    return object._withUnsafeGuaranteedRef { $0.kind == .semaphore ? object : nil }
  }

  @inline(__always)
  static func source(_ reference: Reference?, _ function: StaticString) -> Unmanaged<DispatchSource> {
    guard let reference else { Reject.null(function, "source") }
    // SAFETY: as in `queue`.
    let object = Unmanaged<DispatchSource>.fromOpaque(reference)
    object._withUnsafeGuaranteedRef { if $0.kind != .source { Reject.kind(function, $0.kind, "a source") } }
    return object
  }

  @inline(__always)
  static func channel(_ reference: Reference?, _ function: StaticString) -> Unmanaged<DispatchIO> {
    guard let reference else { Reject.null(function, "channel") }
    // SAFETY: as in `queue`.
    let object = Unmanaged<DispatchIO>.fromOpaque(reference)
    object._withUnsafeGuaranteedRef {
      if $0.kind != .channel { Reject.kind(function, $0.kind, "an I/O channel") }
    }
    return object
  }

  @inline(__always)
  static func data(_ reference: Reference?, _ function: StaticString) -> Unmanaged<DataObject> {
    guard let reference else { Reject.null(function, "data object") }
    // SAFETY: as in `queue`.
    let object = Unmanaged<DataObject>.fromOpaque(reference)
    return object._withUnsafeGuaranteedRef {
      if $0.kind == .data { return object }
      if $0.kind == .emptyDataSymbol { return .passUnretained(DataObject.empty) }
      Reject.kind(function, $0.kind, "a data object")
    }
  }
}

extension DispatchQueue {
  /// The queue's C reference, not retained.
  var reference: Reference {
    kind == .main ? concourse_dispatch_main_q() : Unmanaged.passUnretained(self).toOpaque()
  }
}

extension DispatchObject {
  /// A retained C reference.
  var countedReference: Reference {
    DispatchObject.retainForC(.passUnretained(self))
    return Unmanaged.passUnretained(self).toOpaque()
  }
}

extension DataObject {
  /// The data's C reference, not retained.
  var reference: Reference {
    size == 0 ? concourse_dispatch_data_empty() : Unmanaged.passUnretained(self).toOpaque()
  }

  /// A retained C reference. The empty data object is not counted.
  var newReference: Reference { size == 0 ? concourse_dispatch_data_empty() : countedReference }
}

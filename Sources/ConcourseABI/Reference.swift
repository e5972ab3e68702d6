internal import CConcourseABI
internal import ConcourseRuntime

// From a reference that C passes to the object and back. A reference is the object's address, but for the objects
// that C programs know by the address of a data symbol: the main queue, empty data.

/// What the C interface passes for objects, functions' contexts and blocks.
package typealias Reference = UnsafeMutableRawPointer

/// Objects by their references. The caller's reference keeps them alive during the call.
enum Object {
  @inline(__always)
  static func any(_ reference: Reference?, _ function: StaticString) -> Unmanaged<DispatchObject> {
    guard let reference else { Reject.null(function, "object") }
    // SAFETY: by the contract of the C interface; what else it may be cannot be told.
    let object = Unmanaged<DispatchObject>.fromOpaque(reference)
    return object._withUnsafeGuaranteedRef {
      if !$0.kind.isObject { return wellKnown($0.kind, function) }
      if $0.isGone { DispatchObject.trapAsGone(function) }
      return object
    }
  }

  /// What a symbol stands for.
  @inline(never)
  private static func wellKnown(_ kind: ObjectKind, _ function: StaticString) -> Unmanaged<DispatchObject> {
    if kind == .mainQueueSymbol { return .passUnretained(DispatchQueue.main) }
    if kind == .emptyDataSymbol { return .passUnretained(DataObject.empty) }
    Reject.kind(function, kind, "an object")
  }

  /// The main queue, if that is what a reference means that is no queue's own.
  @inline(never)
  private static func mainQueue(_ kind: ObjectKind, _ function: StaticString) -> Unmanaged<DispatchQueue> {
    if kind == .mainQueueSymbol { return .passUnretained(DispatchQueue.main) }
    Reject.kind(function, kind, "a queue")
  }

  @inline(__always)
  static func queue(_ reference: Reference?, _ function: StaticString) -> Unmanaged<DispatchQueue> {
    guard let reference else { Reject.null(function, "queue") }
    // SAFETY: as in `any`; the kind is checked before anything else is touched.
    let object = Unmanaged<DispatchQueue>.fromOpaque(reference)
    return object._withUnsafeGuaranteedRef { $0.kind.isQueue ? object : mainQueue($0.kind, function) }
  }

  /// A queue where NULL has a meaning.
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

  // The same without the complaint, for calls that are over before a stack for one would be made: `refuse` complains.

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
  /// How C refers to the queue; not counted.
  var reference: Reference {
    kind == .main ? concourse_dispatch_main_q() : Unmanaged.passUnretained(self).toOpaque()
  }
}

extension DispatchObject {
  /// A reference for C that counts.
  var countedReference: Reference {
    DispatchObject.retainForC(.passUnretained(self))
    return Unmanaged.passUnretained(self).toOpaque()
  }
}

extension DataObject {
  /// How C refers to the data; not counted.
  var reference: Reference {
    size == 0 ? concourse_dispatch_data_empty() : Unmanaged.passUnretained(self).toOpaque()
  }

  /// A reference for C that counts, but for that of empty data.
  var newReference: Reference { size == 0 ? concourse_dispatch_data_empty() : countedReference }
}

internal import CConcourseABI
internal import ConcourseRuntime

// From a reference that C passes to the object and back. A reference is the object's address, but for the objects
// that C programs know by the address of a data symbol: the main queue, empty data.

/// What the C interface passes for objects, functions' contexts and blocks.
package typealias Reference = UnsafeMutableRawPointer

/// The C interface's traps: named after the function that was called.
enum Reject {
  @inline(never)
  static func null(_ function: StaticString, _ argument: StaticString) -> Never {
    ClientBug.trap("\(function): the \(argument) is NULL")
  }

  @inline(never)
  static func gone(_ function: StaticString) -> Never {
    ClientBug.trap(
      "\(function): the object has been freed; it was released once too often, or used afterwards")
  }

  @inline(never)
  static func kind(_ function: StaticString, _ object: DispatchObject, _ wanted: StaticString) -> Never {
    // The symbol is no object: only its address is.
    let isEmptyData = Unmanaged.passUnretained(object).toOpaque() == concourse_dispatch_data_empty()
    let kind = isEmptyData ? .data : object.kind
    ClientBug.trap("\(function): the argument is \(kind.inWords), not \(wanted)")
  }
}

extension ObjectKind {
  fileprivate var inWords: StaticString {
    switch self {
    case .serial, .concurrent, .workloop, .global, .main, .runLoop: "a queue"
    case .source: "a source"
    case .group: "a group"
    case .semaphore: "a semaphore"
    case .channel: "an I/O channel"
    case .data: "a data object"
    }
  }
}

/// Objects by their references. The caller's reference keeps them alive during the call.
enum Object {
  @inline(__always)
  static func any(_ reference: Reference?, _ function: StaticString) -> Unmanaged<DispatchObject> {
    guard let reference else { Reject.null(function, "object") }
    if reference == concourse_dispatch_main_q() { return Well.mainQueueAsObject }
    if reference == concourse_dispatch_data_empty() { return Well.emptyDataAsObject }
    // SAFETY: by the contract of the C interface; what else it may be cannot be told.
    let object = Unmanaged<DispatchObject>.fromOpaque(reference)
    object._withUnsafeGuaranteedRef { if $0.isGone { Reject.gone(function) } }
    return object
  }

  @inline(__always)
  static func queue(_ reference: Reference?, _ function: StaticString) -> Unmanaged<DispatchQueue> {
    guard let reference else { Reject.null(function, "queue") }
    if reference == concourse_dispatch_main_q() { return Well.mainQueue }
    // SAFETY: as in `any`; the kind is checked before anything else is touched.
    let object = Unmanaged<DispatchQueue>.fromOpaque(reference)
    object._withUnsafeGuaranteedRef { if !$0.kind.isQueue { Reject.kind(function, $0, "a queue") } }
    return object
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
    object._withUnsafeGuaranteedRef { if $0.kind != .group { Reject.kind(function, $0, "a group") } }
    return object
  }

  @inline(__always)
  static func semaphore(_ reference: Reference?, _ function: StaticString) -> Unmanaged<DispatchSemaphore> {
    guard let reference else { Reject.null(function, "semaphore") }
    // SAFETY: as in `queue`.
    let object = Unmanaged<DispatchSemaphore>.fromOpaque(reference)
    object._withUnsafeGuaranteedRef { if $0.kind != .semaphore { Reject.kind(function, $0, "a semaphore") } }
    return object
  }

  @inline(__always)
  static func source(_ reference: Reference?, _ function: StaticString) -> Unmanaged<DispatchSource> {
    guard let reference else { Reject.null(function, "source") }
    // SAFETY: as in `queue`.
    let object = Unmanaged<DispatchSource>.fromOpaque(reference)
    object._withUnsafeGuaranteedRef { if $0.kind != .source { Reject.kind(function, $0, "a source") } }
    return object
  }

  @inline(__always)
  static func channel(_ reference: Reference?, _ function: StaticString) -> Unmanaged<DispatchIO> {
    guard let reference else { Reject.null(function, "channel") }
    // SAFETY: as in `queue`.
    let object = Unmanaged<DispatchIO>.fromOpaque(reference)
    object._withUnsafeGuaranteedRef { if $0.kind != .channel { Reject.kind(function, $0, "an I/O channel") } }
    return object
  }

  @inline(__always)
  static func data(_ reference: Reference?, _ function: StaticString) -> Unmanaged<DataObject> {
    guard let reference else { Reject.null(function, "data object") }
    if reference == concourse_dispatch_data_empty() { return Well.emptyData }
    // SAFETY: as in `queue`.
    let object = Unmanaged<DataObject>.fromOpaque(reference)
    object._withUnsafeGuaranteedRef { if $0.kind != .data { Reject.kind(function, $0, "a data object") } }
    return object
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
  var countedReference: Reference { Unmanaged.passRetained(self).toOpaque() }
}

extension DataObject {
  /// How C refers to the data; not counted.
  var reference: Reference {
    size == 0 ? concourse_dispatch_data_empty() : Unmanaged.passUnretained(self).toOpaque()
  }

  /// A reference for C that counts, but for that of empty data.
  var newReference: Reference { size == 0 ? concourse_dispatch_data_empty() : countedReference }
}

/// The objects that C knows by the address of a symbol. They are never freed.
private enum Well {
  static var mainQueue: Unmanaged<DispatchQueue> { .passUnretained(DispatchQueue.main) }
  static var mainQueueAsObject: Unmanaged<DispatchObject> { .passUnretained(DispatchQueue.main) }
  static var emptyData: Unmanaged<DataObject> { .passUnretained(DataObject.empty) }
  static var emptyDataAsObject: Unmanaged<DispatchObject> { .passUnretained(DataObject.empty) }
}

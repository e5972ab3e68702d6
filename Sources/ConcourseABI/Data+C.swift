// swift-format-ignore-file: AlwaysUseLowerCamelCase
// (Functions carry their C names.)

internal import CConcourseABI
internal import ConcourseEvents

// data.h. Functions return NULL when there is no memory for a copy of the bytes.

/// What a data object does with the client's buffer.
private enum BufferPolicy {
  case copy
  /// Uses the buffer in place and frees it with the deallocator; nil if it must not be freed.
  case adopt(DispatchData.Deallocator?)

  /// The policy of a predefined destructor, which its address identifies; nil for a destructor of the client's own.
  init?(named destructor: Reference?) {
    guard let destructor else {
      self = .copy
      return
    }
    if destructor == concourse_dispatch_data_destructor_free() {
      self = .adopt(.free)
    } else if destructor == concourse_dispatch_data_destructor_munmap() {
      self = .adopt(.unmap)
    } else if destructor == concourse_dispatch_data_destructor_none() {
      self = .adopt(nil)
    } else {
      return nil
    }
  }
}

/// The size as an `Int`; a larger one traps.
private func checkedSize(_ size: UInt, _ function: StaticString) -> Int {
  guard let count = Int(exactly: size) else {
    ClientBug.trap(709, "\(function): the size is \(size), which is larger than the address space")
  }
  return count
}

/// - Parameter target: the object's target queue, if the policy does not have it.
private func create(
  _ buffer: UnsafeRawPointer?, _ size: UInt, _ policy: BufferPolicy, target: Reference? = nil,
  _ function: StaticString
) -> Reference? {
  let count = checkedSize(size, function)
  if buffer == nil && count > 0 {
    ClientBug.trap(710, "\(function): the buffer is NULL, but the size is \(count)")
  }
  // SAFETY: the client states the size of its buffer.
  let bytes = UnsafeRawBufferPointer(start: buffer, count: count)
  let object: DataObject?
  switch policy {
  case .copy: object = count == 0 ? DataObject.empty : DataObject.copying(bytes)
  case .adopt(let deallocator): object = DataObject.adopting(bytes, deallocator, function)
  }
  if let target, count > 0 { object?.setTarget(queue: Object.queueIfAny(target, function)) }
  return object?.newReference
}

@c(dispatch_data_create)
package func dispatch_data_create(
  _ buffer: UnsafeRawPointer?, _ size: UInt, _ queue: UnsafeMutableRawPointer?,
  _ destructor: UnsafeMutableRawPointer?
) -> UnsafeMutableRawPointer? {
  if let policy = BufferPolicy(named: destructor) {
    return create(buffer, size, policy, target: queue, "dispatch_data_create")
  }
  let block = Block(destructor!).copy()
  let queue = Object.queueIfAny(queue, "dispatch_data_create")
  return create(buffer, size, .adopt(.custom(queue, { Block.callAndRelease(block) })), "dispatch_data_create")
}

@c(dispatch_data_create_f)
package func dispatch_data_create_f(
  _ buffer: UnsafeRawPointer?, _ size: UInt, _ queue: UnsafeMutableRawPointer?,
  _ destructor: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
) -> UnsafeMutableRawPointer? {
  // SAFETY: only compared. Programs without blocks declare the predefined destructors as functions.
  if let policy = BufferPolicy(named: unsafeBitCast(destructor, to: Reference?.self)) {
    return create(buffer, size, policy, target: queue, "dispatch_data_create_f")
  }
  let queue = Object.queueIfAny(queue, "dispatch_data_create_f")
  let destroy = { destructor!(UnsafeMutableRawPointer(mutating: buffer)) }
  return create(buffer, size, .adopt(.custom(queue, destroy)), "dispatch_data_create_f")
}

@c(dispatch_data_create_alloc)
package func dispatch_data_create_alloc(
  _ size: UInt, _ buffer: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> UnsafeMutableRawPointer? {
  let allocated = DataObject.allocating(checkedSize(size, "dispatch_data_create_alloc"))
  buffer?.pointee = allocated?.bytes
  return allocated?.object.newReference
}

@c(dispatch_data_get_size)
package func dispatch_data_get_size(_ data: UnsafeMutableRawPointer?) -> UInt {
  Object.data(data, "dispatch_data_get_size")._withUnsafeGuaranteedRef { UInt($0.size) }
}

@c(dispatch_data_create_map)
package func dispatch_data_create_map(
  _ data: UnsafeMutableRawPointer?, _ buffer: UnsafeMutablePointer<UnsafeRawPointer?>?,
  _ size: UnsafeMutablePointer<UInt>?
) -> UnsafeMutableRawPointer? {
  Object.data(data, "dispatch_data_create_map")._withUnsafeGuaranteedRef {
    let map = $0.contiguous()
    buffer?.pointee = map?.bytes
    size?.pointee = map.map { UInt($0.object.size) } ?? 0
    return map?.object.newReference
  }
}

@c(dispatch_data_create_concat)
package func dispatch_data_create_concat(
  _ first: UnsafeMutableRawPointer?, _ second: UnsafeMutableRawPointer?
) -> UnsafeMutableRawPointer? {
  let first = Object.data(first, "dispatch_data_create_concat")
  let second = Object.data(second, "dispatch_data_create_concat")
  return first._withUnsafeGuaranteedRef { first in
    second._withUnsafeGuaranteedRef { DataObject.concatenating(first, $0).newReference }
  }
}

@c(dispatch_data_create_subrange)
package func dispatch_data_create_subrange(
  _ data: UnsafeMutableRawPointer?, _ offset: UInt, _ length: UInt
) -> UnsafeMutableRawPointer? {
  Object.data(data, "dispatch_data_create_subrange")._withUnsafeGuaranteedRef {
    $0.part(from: offset, length: length).newReference
  }
}

@c(dispatch_data_apply)
package func dispatch_data_apply(
  _ data: UnsafeMutableRawPointer?, _ applier: UnsafeMutableRawPointer?
) -> Bool {
  let block = Block(applier, "dispatch_data_apply")
  return Object.data(data, "dispatch_data_apply")._withUnsafeGuaranteedRef {
    $0.visitRegions(block.reference, block.invoke(as: RegionFunction.self))
  }
}

@c(dispatch_data_apply_f)
package func dispatch_data_apply_f(
  _ data: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?,
  _ applier: (
    @convention(c) (
      UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UInt, UnsafeRawPointer?, UInt
    ) -> Bool
  )?
) -> Bool {
  guard let applier else { Reject.null("dispatch_data_apply_f", "function") }
  return Object.data(data, "dispatch_data_apply_f")._withUnsafeGuaranteedRef {
    $0.visitRegions(context, applier)
  }
}

@c(dispatch_data_copy_region)
package func dispatch_data_copy_region(
  _ data: UnsafeMutableRawPointer?, _ location: UInt, _ offset: UnsafeMutablePointer<UInt>?
) -> UnsafeMutableRawPointer? {
  guard let offset else { Reject.null("dispatch_data_copy_region", "pointer for the offset") }
  let found = Object.data(data, "dispatch_data_copy_region")._withUnsafeGuaranteedRef {
    $0.regionObject(at: location)
  }
  offset.pointee = UInt(found.start)
  return found.object.newReference
}

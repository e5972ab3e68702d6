// swift-format-ignore-file: AlwaysUseLowerCamelCase
// (Functions carry their C names.)

internal import ConcourseEvents
internal import Synchronization

// Reference counting below the dispatch types: for dispatch objects, and for counted objects that programs allocate
// here.

@c(_os_object_alloc)
package func _os_object_alloc(_ type: UnsafeRawPointer?, _ size: Int) -> UnsafeMutableRawPointer? {
  RawObject.make(type, size)
}

@c(_os_object_alloc_realized)
package func _os_object_alloc_realized(_ type: UnsafeRawPointer?, _ size: Int) -> UnsafeMutableRawPointer? {
  RawObject.make(type, size)
}

/// Frees an object from `_os_object_alloc` at once.
@c(_os_object_dealloc)
package func _os_object_dealloc(_ object: UnsafeMutableRawPointer?) {
  guard let object = RawObject(object, "_os_object_dealloc") else {
    ClientBug.trap(708, "_os_object_dealloc: the object was not made by _os_object_alloc; release it instead")
  }
  object.free()
}

@c(_os_object_retain)
package func _os_object_retain(_ object: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  if let raw = RawObject(object, "_os_object_retain") {
    raw.retain("_os_object_retain")
  } else {
    dispatch_retain(object)
  }
  return object
}

@c(_os_object_release)
package func _os_object_release(_ object: UnsafeMutableRawPointer?) {
  if let raw = RawObject(object, "_os_object_release") {
    raw.release("_os_object_release")
  } else {
    dispatch_release(object)
  }
}

/// Also revives an object whose last external reference was released, if internal ones remain.
@c(_os_object_retain_with_resurrect)
package func _os_object_retain_with_resurrect(_ object: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?
{
  if let raw = RawObject(object, "_os_object_retain_with_resurrect") {
    raw.retainOrResurrect("_os_object_retain_with_resurrect")
  } else {
    dispatch_retain(object)
  }
  return object
}

@c(_os_object_retain_internal)
package func _os_object_retain_internal(_ object: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  _os_object_retain_internal_n(object, 1)
}

@c(_os_object_release_internal)
package func _os_object_release_internal(_ object: UnsafeMutableRawPointer?) {
  _os_object_release_internal_n(object, 1)
}

@c(_os_object_retain_internal_n)
package func _os_object_retain_internal_n(
  _ object: UnsafeMutableRawPointer?, _ count: UInt16
) -> UnsafeMutableRawPointer? {
  if let raw = RawObject(object, "_os_object_retain_internal_n") {
    raw.retainInternally(Int32(count), "_os_object_retain_internal_n")
  } else {
    for _ in 0..<count { dispatch_retain(object) }
  }
  return object
}

@c(_os_object_release_internal_n)
package func _os_object_release_internal_n(_ object: UnsafeMutableRawPointer?, _ count: UInt16) {
  if let raw = RawObject(object, "_os_object_release_internal_n") {
    raw.releaseInternally(Int32(count), "_os_object_release_internal_n")
  } else {
    for _ in 0..<count { dispatch_release(object) }
  }
}

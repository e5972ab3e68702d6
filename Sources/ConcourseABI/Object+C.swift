// swift-format-ignore-file: AlwaysUseLowerCamelCase
// (Functions carry their C names.)

internal import CConcourseABI
internal import ConcourseEvents

// object.h

/// The object, if its references are counted. Attributes and permanent objects have no count.
@inline(__always)
private func counted(_ reference: Reference?) -> Unmanaged<DispatchObject>? {
  guard let reference else { return nil }
  // SAFETY: as in `Object.any`.
  let object = Unmanaged<DispatchObject>.fromOpaque(reference)
  return object._withUnsafeGuaranteedRef { $0.kind.isCounted ? object : nil }
}

/// Traps for NULL; other uncounted references need no action. Out of line and called last, so that counting needs no
/// stack frame.
@inline(never)
private func leaveUncounted(_ reference: Reference?, _ function: StaticString) {
  if reference == nil { Reject.null(function, "object") }
}

@c(dispatch_retain)
package func dispatch_retain(_ object: UnsafeMutableRawPointer?) {
  guard let counted = counted(object) else { return leaveUncounted(object, "dispatch_retain") }
  DispatchObject.retainForC(counted)
}

@c(dispatch_release)
package func dispatch_release(_ object: UnsafeMutableRawPointer?) {
  guard let counted = counted(object) else { return leaveUncounted(object, "dispatch_release") }
  DispatchObject.releaseForC(counted)
}

@c(dispatch_get_context)
package func dispatch_get_context(_ object: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  Object.any(object, "dispatch_get_context")._withUnsafeGuaranteedRef { $0.context }
}

@c(dispatch_set_context)
package func dispatch_set_context(_ object: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?) {
  if object == concourse_dispatch_data_empty() { return }
  Object.any(object, "dispatch_set_context")._withUnsafeGuaranteedRef { $0.context = context }
}

@c(dispatch_set_finalizer_f)
package func dispatch_set_finalizer_f(
  _ object: UnsafeMutableRawPointer?, _ finalizer: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
) {
  if object == concourse_dispatch_data_empty() { return }
  Object.any(object, "dispatch_set_finalizer_f")._withUnsafeGuaranteedRef { $0.setFinalizer(finalizer) }
}

// These calls may start code that releases the last reference, so they hold their own.

@c(dispatch_activate)
package func dispatch_activate(_ object: UnsafeMutableRawPointer?) {
  Object.any(object, "dispatch_activate").takeUnretainedValue().activate()
}

@c(dispatch_suspend)
package func dispatch_suspend(_ object: UnsafeMutableRawPointer?) {
  Object.any(object, "dispatch_suspend")._withUnsafeGuaranteedRef { $0.suspend() }
}

@c(dispatch_resume)
package func dispatch_resume(_ object: UnsafeMutableRawPointer?) {
  Object.any(object, "dispatch_resume").takeUnretainedValue().resume()
}

@c(dispatch_set_target_queue)
package func dispatch_set_target_queue(_ object: UnsafeMutableRawPointer?, _ queue: UnsafeMutableRawPointer?)
{
  if object == concourse_dispatch_data_empty() { return }
  let target = Object.queueIfAny(queue, "dispatch_set_target_queue")
  Object.any(object, "dispatch_set_target_queue").takeUnretainedValue().setTarget(queue: target)
}

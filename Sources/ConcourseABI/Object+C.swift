// swift-format-ignore-file: AlwaysUseLowerCamelCase
// (Functions carry their C names.)

internal import CConcourseABI
internal import ConcourseRuntime

// object.h

/// Objects whose references are not counted: they are there as long as the process.
@inline(__always)
private func isCounted(_ reference: Reference, _ object: Unmanaged<DispatchObject>) -> Bool {
  object._withUnsafeGuaranteedRef { $0.kind != .global && $0.kind != .main }
    && reference != concourse_dispatch_data_empty()
}

/// Whether a reference is an attribute of queues, which is no object.
@inline(__always)
private func isAttribute(_ reference: Reference?) -> Bool { QueueAttribute.contains(reference) }

@c(dispatch_retain)
package func dispatch_retain(_ object: UnsafeMutableRawPointer?) {
  if isAttribute(object) { return }
  let known = Object.any(object, "dispatch_retain")
  if isCounted(object!, known) { _ = known.retain() }
}

@c(dispatch_release)
package func dispatch_release(_ object: UnsafeMutableRawPointer?) {
  if isAttribute(object) { return }
  let known = Object.any(object, "dispatch_release")
  if isCounted(object!, known) { known.release() }
}

@c(dispatch_get_context)
package func dispatch_get_context(_ object: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  Object.any(object, "dispatch_get_context")._withUnsafeGuaranteedRef { $0.context }
}

@c(dispatch_set_context)
package func dispatch_set_context(_ object: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?) {
  Object.any(object, "dispatch_set_context")._withUnsafeGuaranteedRef { $0.context = context }
}

@c(dispatch_set_finalizer_f)
package func dispatch_set_finalizer_f(
  _ object: UnsafeMutableRawPointer?, _ finalizer: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
) {
  Object.any(object, "dispatch_set_finalizer_f")._withUnsafeGuaranteedRef { $0.setFinalizer(finalizer) }
}

@c(dispatch_activate)
package func dispatch_activate(_ object: UnsafeMutableRawPointer?) {
  Object.any(object, "dispatch_activate")._withUnsafeGuaranteedRef { $0.activate() }
}

@c(dispatch_suspend)
package func dispatch_suspend(_ object: UnsafeMutableRawPointer?) {
  Object.any(object, "dispatch_suspend")._withUnsafeGuaranteedRef { $0.suspend() }
}

@c(dispatch_resume)
package func dispatch_resume(_ object: UnsafeMutableRawPointer?) {
  Object.any(object, "dispatch_resume")._withUnsafeGuaranteedRef { $0.resume() }
}

@c(dispatch_set_target_queue)
package func dispatch_set_target_queue(_ object: UnsafeMutableRawPointer?, _ queue: UnsafeMutableRawPointer?)
{
  let target = Object.queueIfAny(queue, "dispatch_set_target_queue")
  Object.any(object, "dispatch_set_target_queue")._withUnsafeGuaranteedRef { $0.setTarget(queue: target) }
}

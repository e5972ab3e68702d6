// swift-format-ignore-file: AlwaysUseLowerCamelCase
// (Functions carry their C names.)

internal import ConcourseEvents

// workloop.h and the private functions of workloops.

private func workloop(_ reference: Reference?, _ function: StaticString) -> DispatchWorkloop {
  let queue = Object.queue(reference, function).takeUnretainedValue()
  guard queue.kind == .workloop else {
    ClientBug.trap(719, "\(function): the argument is queue \"\(queue.label)\", which is not a workloop")
  }
  // SAFETY: every object of this kind is an instance of this class.
  return unsafeDowncast(queue, to: DispatchWorkloop.self)
}

@c(dispatch_workloop_create)
package func dispatch_workloop_create(_ label: UnsafePointer<CChar>?) -> UnsafeMutableRawPointer? {
  DispatchWorkloop(label: label.map { String(cString: $0) } ?? "").firstReference
}

@c(dispatch_workloop_create_inactive)
package func dispatch_workloop_create_inactive(_ label: UnsafePointer<CChar>?) -> UnsafeMutableRawPointer? {
  DispatchWorkloop(inactive: label.map { String(cString: $0) } ?? "").firstReference
}

/// No effect beyond the checks: autorelease pools need Objective-C.
@c(dispatch_workloop_set_autorelease_frequency)
package func dispatch_workloop_set_autorelease_frequency(
  _ loop: UnsafeMutableRawPointer?, _ frequency: UInt
) {
  let name: StaticString = "dispatch_workloop_set_autorelease_frequency"
  workloop(loop, name).requireInactive(name)
  guard frequency <= 2 else { ClientBug.trap(720, "\(name): \(frequency) is not an autorelease frequency") }
}

@c(dispatch_workloop_set_qos_class)
package func dispatch_workloop_set_qos_class(
  _ loop: UnsafeMutableRawPointer?, _ qosClass: UInt32, _ flags: UInt64
) {
  let name: StaticString = "dispatch_workloop_set_qos_class"
  workloop(loop, name).setClass(qos(qosClass, 0, name), name)
}

@c(dispatch_workloop_set_qos_class_floor)
package func dispatch_workloop_set_qos_class_floor(
  _ loop: UnsafeMutableRawPointer?, _ qosClass: UInt32, _ relativePriority: Int32, _ flags: UInt64
) {
  let name: StaticString = "dispatch_workloop_set_qos_class_floor"
  workloop(loop, name).setFloor(qos(qosClass, relativePriority, name), name)
}

/// No effect beyond the checks: Linux limits the processor time of control groups, not of queues.
@c(dispatch_workloop_set_cpupercent)
package func dispatch_workloop_set_cpupercent(
  _ loop: UnsafeMutableRawPointer?, _ percent: UInt8, _ refillMilliseconds: UInt32
) {
  let name: StaticString = "dispatch_workloop_set_cpupercent"
  workloop(loop, name).requireInactive(name)
  guard percent <= 100 else {
    ClientBug.trap(721, "\(name): the limit is \(percent) per cent, which is more than 100")
  }
}

@c(dispatch_workloop_copy_current)
package func dispatch_workloop_copy_current() -> UnsafeMutableRawPointer? {
  DispatchWorkloop.currentWorkloop?.countedReference
}

@c(dispatch_workloop_is_current)
package func dispatch_workloop_is_current(_ loop: UnsafeMutableRawPointer?) -> Bool {
  let queue = Object.queue(loop, "dispatch_workloop_is_current").takeUnretainedValue()
  return queue.kind == .workloop && workloop(loop, "dispatch_workloop_is_current").isCurrent
}

@c(_dispatch_workloop_should_yield_4NW)
package func _dispatch_workloop_should_yield_4NW() -> Bool { DispatchWorkloop.shouldYield }

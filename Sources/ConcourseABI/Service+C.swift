// swift-format-ignore-file: AlwaysUseLowerCamelCase
// (Functions carry their C names.)

internal import ConcourseEvents

// queue.h and private.h: the quality of service of inactive queues and sources.

/// The QoS that a caller passes; invalid numbers trap.
func qos(_ number: UInt32, _ relativePriority: Int32, _ function: StaticString) -> DispatchQoS {
  guard let qosClass = QoSNumber.qosClass(number) else {
    ClientBug.trap(715, "\(function): 0x\(String(number, radix: 16)) is not a quality-of-service class")
  }
  guard (-15...0).contains(relativePriority) else {
    ClientBug.trap(
      716, "\(function): the relative priority is \(relativePriority), which is not within -15...0")
  }
  return DispatchQoS(qosClass: qosClass, relativePriority: Int(relativePriority))
}

/// Calls `queue` or `source`, depending on the object's kind; other objects trap.
private func configure(
  _ reference: Reference?, _ function: StaticString, queue: (DispatchQueue) -> Void,
  source: (DispatchSource) -> Void
) {
  let object = Object.any(reference, function).takeUnretainedValue()
  if object.kind.isQueue {
    queue(Object.queue(reference, function).takeUnretainedValue())
  } else if object.kind == .source {
    source(Object.source(reference, function).takeUnretainedValue())
  } else {
    Reject.kind(function, object.kind, "a queue or a source")
  }
}

@c(dispatch_set_qos_class_floor)
package func dispatch_set_qos_class_floor(
  _ object: UnsafeMutableRawPointer?, _ qosClass: UInt32, _ relativePriority: Int32
) {
  let name: StaticString = "dispatch_set_qos_class_floor"
  let floor = qos(qosClass, relativePriority, name)
  configure(object, name, queue: { $0.setFloor(floor, name) }, source: { $0.setFloor(floor.qosClass, name) })
}

@c(dispatch_set_qos_class)
package func dispatch_set_qos_class(
  _ object: UnsafeMutableRawPointer?, _ qosClass: UInt32, _ relativePriority: Int32
) {
  let name: StaticString = "dispatch_set_qos_class"
  let qos = qos(qosClass, relativePriority, name)
  // A source's only items are its handlers, which run at least at this class.
  configure(object, name, queue: { $0.setClass(qos, name) }, source: { $0.setFloor(qos.qosClass, name) })
}

@c(dispatch_set_qos_class_fallback)
package func dispatch_set_qos_class_fallback(_ object: UnsafeMutableRawPointer?, _ qosClass: UInt32) {
  let name: StaticString = "dispatch_set_qos_class_fallback"
  let qos = qos(qosClass, 0, name)
  configure(
    object, name, queue: { $0.setFallback(qos.qosClass, name) }, source: { $0.setFloor(qos.qosClass, name) })
}

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// (Functions carry their C names.)

internal import CConcourseABI
internal import ConcourseEvents
internal import Glibc

// queue.h: creating and querying queues; the main queue.

/// - Parameter mayChangeTarget: whether the target may change while the queue is active. An attribute that sets an
///   autorelease frequency or makes the queue inactive rules that out.
private func makeQueue(
  _ label: UnsafePointer<CChar>?, _ attribute: Reference?, _ target: DispatchQueue?, mayChangeTarget: Bool,
  _ function: StaticString
) -> Reference {
  if let adopted = QueueBridge.takeAdopted() { return adopted }
  // Most queues have one of these two attributes, which need not be decoded.
  let isPlain = attribute == nil || attribute == concourse_dispatch_queue_attr_concurrent()
  if isPlain {
    return DispatchQueue.plain(
      cLabel: label, isConcurrent: attribute != nil, target: target, mayChangeTarget: mayChangeTarget
    ).firstReference
  }
  let attribute = QueueAttribute.checked(attribute, function)
  return DispatchQueue(
    cLabel: label, isConcurrent: attribute.isConcurrent, qos: attribute.qos, isInactive: attribute.isInactive,
    target: target, mayChangeTarget: mayChangeTarget && attribute.frequency == 0 && !attribute.isInactive,
    overcommits: attribute.overcommit
  ).firstReference
}

@c(dispatch_queue_create)
package func dispatch_queue_create(
  _ label: UnsafePointer<CChar>?, _ attribute: UnsafeMutableRawPointer?
) -> UnsafeMutableRawPointer? {
  makeQueue(label, attribute, nil, mayChangeTarget: true, "dispatch_queue_create")
}

@c(dispatch_queue_create_with_target)
package func dispatch_queue_create_with_target(
  _ label: UnsafePointer<CChar>?, _ attribute: UnsafeMutableRawPointer?, _ target: UnsafeMutableRawPointer?
) -> UnsafeMutableRawPointer? {
  makeQueue(
    label, attribute, Object.queueIfAny(target, "dispatch_queue_create_with_target"), mayChangeTarget: false,
    "dispatch_queue_create_with_target")
}

/// Traps, like the toolchain's library: Linux has no vouchers.
@c(dispatch_queue_create_with_accounting_override_voucher)
package func dispatch_queue_create_with_accounting_override_voucher(
  _ label: UnsafePointer<CChar>?, _ attribute: UnsafeMutableRawPointer?, _ voucher: UnsafeMutableRawPointer?
) -> UnsafeMutableRawPointer? {
  ClientBug.trap(
    723,
    "dispatch_queue_create_with_accounting_override_voucher: there are no vouchers on Linux; use "
      + "dispatch_queue_create")
}

@c(dispatch_get_global_queue)
package func dispatch_get_global_queue(_ identifier: Int, _ flags: UInt) -> UnsafeMutableRawPointer? {
  // 2 selects the overcommit queue.
  guard flags & ~2 == 0 else { return nil }
  let qosClass: DispatchQoS.QoSClass
  switch identifier {
  case 0x21: qosClass = .userInteractive
  case 2, 0x19: qosClass = .userInitiated
  case 0, 0x15: qosClass = .default
  case -2, -128, 0x11: qosClass = .utility
  case Int(Int16.min), 0x05, 0x09: qosClass = .background
  default: return nil
  }
  return (flags == 0 ? DispatchQueue.global(qos: qosClass) : DispatchQueue.overcommit(qos: qosClass))
    .reference
}

@c(dispatch_get_current_queue)
package func dispatch_get_current_queue() -> UnsafeMutableRawPointer? {
  (DispatchQueue.current ?? DispatchQueue.global()).reference
}

@c(dispatch_queue_get_label)
package func dispatch_queue_get_label(_ queue: UnsafeMutableRawPointer?) -> UnsafePointer<CChar>? {
  // Outside all queues: the queue that `dispatch_get_current_queue` returns.
  guard let queue else { return (DispatchQueue.current ?? DispatchQueue.global()).cLabel }
  QueueBridge.noteLabelQuery(queue)
  return Object.queue(queue, "dispatch_queue_get_label")._withUnsafeGuaranteedRef { $0.cLabel }
}

@c(dispatch_queue_set_label_nocopy)
package func dispatch_queue_set_label_nocopy(
  _ queue: UnsafeMutableRawPointer?, _ label: UnsafePointer<CChar>?
) {
  Object.queue(queue, "dispatch_queue_set_label_nocopy")._withUnsafeGuaranteedRef {
    if $0.kind != .global && $0.kind != .main { $0.setLabel(label ?? DispatchQueue.noLabel) }
  }
}

@c(dispatch_queue_get_qos_class)
package func dispatch_queue_get_qos_class(
  _ queue: UnsafeMutableRawPointer?, _ relativePriority: UnsafeMutablePointer<Int32>?
) -> UInt32 {
  let qos = Object.queue(queue, "dispatch_queue_get_qos_class")._withUnsafeGuaranteedRef { $0.qos }
  relativePriority?.pointee = Int32(qos.relativePriority)
  return QoSNumber.number(qos.qosClass)
}

@c(dispatch_queue_set_specific)
package func dispatch_queue_set_specific(
  _ queue: UnsafeMutableRawPointer?, _ key: UnsafeRawPointer?, _ context: UnsafeMutableRawPointer?,
  _ destructor: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
) {
  guard let key else { return }
  Object.queue(queue, "dispatch_queue_set_specific")._withUnsafeGuaranteedRef {
    $0.setSpecific(key, context, destructor)
  }
}

@c(dispatch_queue_get_specific)
package func dispatch_queue_get_specific(
  _ queue: UnsafeMutableRawPointer?, _ key: UnsafeRawPointer?
) -> UnsafeMutableRawPointer? {
  guard let key else { return nil }
  return Object.queue(queue, "dispatch_queue_get_specific")._withUnsafeGuaranteedRef { $0.specific(key) }
}

@c(dispatch_get_specific)
package func dispatch_get_specific(_ key: UnsafeRawPointer?) -> UnsafeMutableRawPointer? {
  key.flatMap { DispatchQueue.currentSpecific($0) }
}

@c(dispatch_assert_queue)
package func dispatch_assert_queue(_ queue: UnsafeMutableRawPointer?) {
  Object.queue(queue, "dispatch_assert_queue")._withUnsafeGuaranteedRef {
    DispatchPredicate.onQueue($0).require("dispatch_assert_queue")
  }
}

@c(dispatch_assert_queue_barrier)
package func dispatch_assert_queue_barrier(_ queue: UnsafeMutableRawPointer?) {
  Object.queue(queue, "dispatch_assert_queue_barrier")._withUnsafeGuaranteedRef {
    DispatchPredicate.onQueueAsBarrier($0).require("dispatch_assert_queue_barrier")
  }
}

@c(dispatch_assert_queue_not)
package func dispatch_assert_queue_not(_ queue: UnsafeMutableRawPointer?) {
  Object.queue(queue, "dispatch_assert_queue_not")._withUnsafeGuaranteedRef {
    DispatchPredicate.notOnQueue($0).require("dispatch_assert_queue_not")
  }
}

@c(dispatch_main)
package func dispatch_main() { dispatchMain() }

@c(dispatch_queue_set_width)
package func dispatch_queue_set_width(_ queue: UnsafeMutableRawPointer?, _ width: Int) {
  Object.queue(queue, "dispatch_queue_set_width")._withUnsafeGuaranteedRef { $0.setWidth(width) }
}

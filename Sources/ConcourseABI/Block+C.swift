// swift-format-ignore-file: AlwaysUseLowerCamelCase
// (Functions carry their C names.)

internal import ConcourseEvents
internal import Glibc

// block.h: blocks that can be awaited, observed and cancelled. Each stands for a `DispatchWorkItem`.

private func make(
  _ flags: UInt, _ qosClass: UInt32, _ relativePriority: Int32, _ block: Block
) -> UnsafeMutableRawPointer? {
  guard let flags = DispatchWorkItemFlags(exactly: flags), let qosClass = QoSNumber.qosClass(qosClass),
    (-15...0).contains(relativePriority)
  else { return nil }
  return Block.make(
    for: DispatchWorkItem(
      qos: DispatchQoS(qosClass: qosClass, relativePriority: Int(relativePriority)), flags: flags,
      context: block.copy(), invoke: block.invoke, release: Block.release))
}

extension DispatchWorkItemFlags {
  /// nil if unknown bits are set.
  fileprivate init?(exactly bits: UInt) {
    guard bits & ~DispatchWorkItemFlags.allKnown.rawValue == 0 else { return nil }
    self.init(rawValue: bits)
  }
}

/// The block's work item; a plain block traps.
private func item(_ block: Reference?, _ function: StaticString) -> DispatchWorkItem {
  guard let item = Block(block, function).item else {
    ClientBug.trap(712, "\(function): the block was not made by dispatch_block_create")
  }
  return item.takeUnretainedValue()
}

@c(dispatch_block_create)
package func dispatch_block_create(_ flags: UInt, _ block: UnsafeMutableRawPointer?)
  -> UnsafeMutableRawPointer?
{
  make(flags, 0, 0, Block(block, "dispatch_block_create"))
}

@c(dispatch_block_create_with_qos_class)
package func dispatch_block_create_with_qos_class(
  _ flags: UInt, _ qosClass: UInt32, _ relativePriority: Int32, _ block: UnsafeMutableRawPointer?
) -> UnsafeMutableRawPointer? {
  make(flags, qosClass, relativePriority, Block(block, "dispatch_block_create_with_qos_class"))
}

@c(dispatch_block_create_with_voucher)
package func dispatch_block_create_with_voucher(
  _ flags: UInt, _ voucher: UnsafeMutableRawPointer?, _ block: UnsafeMutableRawPointer?
) -> UnsafeMutableRawPointer? {
  make(flags, 0, 0, Block(block, "dispatch_block_create_with_voucher"))
}

@c(dispatch_block_create_with_voucher_and_qos_class)
package func dispatch_block_create_with_voucher_and_qos_class(
  _ flags: UInt, _ voucher: UnsafeMutableRawPointer?, _ qosClass: UInt32, _ relativePriority: Int32,
  _ block: UnsafeMutableRawPointer?
) -> UnsafeMutableRawPointer? {
  make(
    flags, qosClass, relativePriority, Block(block, "dispatch_block_create_with_voucher_and_qos_class"))
}

/// Ignores unknown bits of `flags`, like the toolchain's library.
@c(_dispatch_block_create)
package func _dispatch_block_create(
  _ flags: UInt, _ voucher: UnsafeMutableRawPointer?, _ priority: UInt, _ block: UnsafeMutableRawPointer?
) -> UnsafeMutableRawPointer? {
  let priority = ThreadPriority(bits: priority)
  return make(
    flags & DispatchWorkItemFlags.allKnown.rawValue, priority.qosClass, priority.relativePriority,
    Block(block, "_dispatch_block_create"))
}

/// A class and relative priority in one word, as thread libraries pass them: one bit for the class, and in the low byte
/// the relative priority minus one.
private struct ThreadPriority {
  let qosClass: UInt32
  let relativePriority: Int32

  init(bits: UInt) {
    let place = (bits >> 8 & 0x3FFF).trailingZeroBitCount
    let classes = QueueAttribute.classes.dropFirst()
    qosClass = place < classes.count ? classes[classes.startIndex + place] : 0
    let below = Int32(Int8(truncatingIfNeeded: bits))
    relativePriority = qosClass == 0 ? 0 : min(max(below + 1, -15), 0)
  }
}

@c(dispatch_block_perform)
package func dispatch_block_perform(_ flags: UInt, _ block: UnsafeMutableRawPointer?) {
  let block = Block(block, "dispatch_block_perform")
  guard DispatchWorkItemFlags(exactly: flags) != nil else {
    ClientBug.trap(713, "dispatch_block_perform with unknown flag bits 0x\(String(flags, radix: 16))")
  }
  block.invoke(block.reference)
}

@c(dispatch_block_wait)
package func dispatch_block_wait(_ block: UnsafeMutableRawPointer?, _ timeout: UInt64) -> Int {
  if item(block, "dispatch_block_wait").wait(until: Deadline(encoded: timeout)) == .success { return 0 }
  errno = ETIMEDOUT
  return -1
}

@c(dispatch_block_notify)
package func dispatch_block_notify(
  _ block: UnsafeMutableRawPointer?, _ queue: UnsafeMutableRawPointer?,
  _ notification: UnsafeMutableRawPointer?
) {
  let item = item(block, "dispatch_block_notify")
  let queue = Object.queue(queue, "dispatch_block_notify").takeUnretainedValue()
  let notification = Block(notification, "dispatch_block_notify")
  if let other = notification.item {
    item.notify(queue: queue, execute: other.takeUnretainedValue())
  } else {
    queue.notifyFunction(of: item, notification.copy(), Block.callAndRelease)
  }
}

@c(dispatch_block_cancel)
package func dispatch_block_cancel(_ block: UnsafeMutableRawPointer?) {
  item(block, "dispatch_block_cancel").cancel()
}

@c(dispatch_block_testcancel)
package func dispatch_block_testcancel(_ block: UnsafeMutableRawPointer?) -> Int {
  item(block, "dispatch_block_testcancel").isCancelled ? 1 : 0
}

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// (Functions carry their C names.)

internal import ConcourseEvents

// queue.h: asynchronous and synchronous submission.

/// Submits a block asynchronously. A block from `dispatch_block_create` is submitted as its work item.
@inline(__always)
private func submit(_ block: Block, to queue: Unmanaged<DispatchQueue>, barrier: Bool) {
  queue._withUnsafeGuaranteedRef { queue in
    if let item = block.item {
      item._withUnsafeGuaranteedRef { queue.async(execute: $0, barrier: barrier) }
    } else {
      queue.asyncFunction(block.copy(), Block.callAndRelease, barrier: barrier)
    }
  }
}

@c(dispatch_async)
package func dispatch_async(_ queue: UnsafeMutableRawPointer?, _ block: UnsafeMutableRawPointer?) {
  submit(Block(block, "dispatch_async"), to: Object.queue(queue, "dispatch_async"), barrier: false)
}

@c(dispatch_async_f)
package func dispatch_async_f(
  _ queue: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?,
  _ work: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
) {
  guard let work else { Reject.null("dispatch_async_f", "function") }
  Object.queue(queue, "dispatch_async_f")._withUnsafeGuaranteedRef {
    $0.asyncFunction(context, work, barrier: false)
  }
}

@c(dispatch_barrier_async)
package func dispatch_barrier_async(_ queue: UnsafeMutableRawPointer?, _ block: UnsafeMutableRawPointer?) {
  submit(
    Block(block, "dispatch_barrier_async"), to: Object.queue(queue, "dispatch_barrier_async"), barrier: true)
}

@c(dispatch_barrier_async_f)
package func dispatch_barrier_async_f(
  _ queue: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?,
  _ work: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
) {
  guard let work else { Reject.null("dispatch_barrier_async_f", "function") }
  Object.queue(queue, "dispatch_barrier_async_f")._withUnsafeGuaranteedRef {
    $0.asyncFunction(context, work, barrier: true)
  }
}

@inline(__always)
private func run(_ block: Block, on queue: Unmanaged<DispatchQueue>, barrier: Bool) {
  queue._withUnsafeGuaranteedRef { queue in
    if let item = block.item {
      item._withUnsafeGuaranteedRef { item in
        if barrier { queue.sync(flags: .barrier) { item.perform() } } else { queue.sync(execute: item) }
      }
    } else {
      // Both calls are inlined and operate on the queue's state word directly.
      if barrier {
        queue.barrierSync { block.invoke(block.reference) }
      } else {
        queue.sync { block.invoke(block.reference) }
      }
    }
  }
}

@c(dispatch_sync)
package func dispatch_sync(_ queue: UnsafeMutableRawPointer?, _ block: UnsafeMutableRawPointer?) {
  run(Block(block, "dispatch_sync"), on: Object.queue(queue, "dispatch_sync"), barrier: false)
}

@c(dispatch_sync_f)
package func dispatch_sync_f(
  _ queue: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?,
  _ work: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
) {
  guard let work else { Reject.null("dispatch_sync_f", "function") }
  Object.queue(queue, "dispatch_sync_f")._withUnsafeGuaranteedRef { $0.sync { work(context) } }
}

@c(dispatch_barrier_sync)
package func dispatch_barrier_sync(_ queue: UnsafeMutableRawPointer?, _ block: UnsafeMutableRawPointer?) {
  run(Block(block, "dispatch_barrier_sync"), on: Object.queue(queue, "dispatch_barrier_sync"), barrier: true)
}

@c(dispatch_barrier_sync_f)
package func dispatch_barrier_sync_f(
  _ queue: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?,
  _ work: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
) {
  guard let work else { Reject.null("dispatch_barrier_sync_f", "function") }
  Object.queue(queue, "dispatch_barrier_sync_f")._withUnsafeGuaranteedRef {
    $0.barrierSync { work(context) }
  }
}

/// Submits a block as `asyncAndWait` does.
private func runAndWait(_ block: Block, on queue: Unmanaged<DispatchQueue>, barrier: Bool) {
  queue._withUnsafeGuaranteedRef { queue in
    guard let item = block.item?.takeUnretainedValue() else {
      return queue.asyncAndWait(flags: barrier ? .barrier : []) { block.invoke(block.reference) }
    }
    if barrier {
      queue.asyncAndWait(flags: .barrier) { item.perform() }
    } else {
      queue.asyncAndWait(execute: item)
    }
  }
}

@c(dispatch_async_and_wait)
package func dispatch_async_and_wait(_ queue: UnsafeMutableRawPointer?, _ block: UnsafeMutableRawPointer?) {
  runAndWait(
    Block(block, "dispatch_async_and_wait"), on: Object.queue(queue, "dispatch_async_and_wait"),
    barrier: false)
}

@c(dispatch_async_and_wait_f)
package func dispatch_async_and_wait_f(
  _ queue: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?,
  _ work: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
) {
  guard let work else { Reject.null("dispatch_async_and_wait_f", "function") }
  Object.queue(queue, "dispatch_async_and_wait_f")._withUnsafeGuaranteedRef {
    $0.asyncAndWait { work(context) }
  }
}

@c(dispatch_barrier_async_and_wait)
package func dispatch_barrier_async_and_wait(
  _ queue: UnsafeMutableRawPointer?, _ block: UnsafeMutableRawPointer?
) {
  runAndWait(
    Block(block, "dispatch_barrier_async_and_wait"),
    on: Object.queue(queue, "dispatch_barrier_async_and_wait"),
    barrier: true)
}

@c(dispatch_barrier_async_and_wait_f)
package func dispatch_barrier_async_and_wait_f(
  _ queue: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?,
  _ work: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
) {
  guard let work else { Reject.null("dispatch_barrier_async_and_wait_f", "function") }
  Object.queue(queue, "dispatch_barrier_async_and_wait_f")._withUnsafeGuaranteedRef {
    $0.asyncAndWait(flags: .barrier) { work(context) }
  }
}

@c(dispatch_after)
package func dispatch_after(
  _ when: UInt64, _ queue: UnsafeMutableRawPointer?, _ block: UnsafeMutableRawPointer?
) {
  let block = Block(block, "dispatch_after")
  Object.queue(queue, "dispatch_after")._withUnsafeGuaranteedRef { queue in
    let deadline = Deadline(encoded: when)
    if let item = block.item {
      queue.schedule(item.takeUnretainedValue(), deadline)
    } else if deadline == .never {
      // The block never runs.
    } else {
      queue.asyncFunction(after: deadline, block.copy(), Block.callAndRelease)
    }
  }
}

@c(dispatch_after_f)
package func dispatch_after_f(
  _ when: UInt64, _ queue: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?,
  _ work: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
) {
  guard let work else { Reject.null("dispatch_after_f", "function") }
  Object.queue(queue, "dispatch_after_f")._withUnsafeGuaranteedRef {
    $0.asyncFunction(after: Deadline(encoded: when), context, work)
  }
}

/// The iteration count as an `Int`; a larger one traps.
private func iterations(_ count: UInt, _ function: StaticString) -> Int {
  guard let count = Int(exactly: count) else {
    ClientBug.trap(711, "\(function): \(count) iterations; the maximum is \(Int.max)")
  }
  return count
}

@c(dispatch_apply)
package func dispatch_apply(
  _ count: UInt, _ queue: UnsafeMutableRawPointer?, _ block: UnsafeMutableRawPointer?
) {
  let block = Block(block, "dispatch_apply")
  DispatchQueue.apply(
    iterations(count, "dispatch_apply"), on: Object.queueIfAny(queue, "dispatch_apply"), block.reference,
    block.invoke(as: (@convention(c) (UnsafeMutableRawPointer?, Int) -> Void).self))
}

@c(dispatch_apply_f)
package func dispatch_apply_f(
  _ count: UInt, _ queue: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?,
  _ work: (@convention(c) (UnsafeMutableRawPointer?, Int) -> Void)?
) {
  guard let work else { Reject.null("dispatch_apply_f", "function") }
  DispatchQueue.apply(
    iterations(count, "dispatch_apply_f"), on: Object.queueIfAny(queue, "dispatch_apply_f"), context, work)
}

@c(dispatch_async_enforce_qos_class_f)
package func dispatch_async_enforce_qos_class_f(
  _ queue: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?,
  _ work: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
) {
  guard let work else { Reject.null("dispatch_async_enforce_qos_class_f", "function") }
  Object.queue(queue, "dispatch_async_enforce_qos_class_f")._withUnsafeGuaranteedRef {
    $0.asyncFunction(qos: .unspecified, flags: .enforceQoS, context, work)
  }
}

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// (Functions carry their C names.)

internal import ConcourseEvents
internal import Glibc

// group.h and semaphore.h

/// The C result of a wait.
private func status(_ result: DispatchTimeoutResult) -> Int {
  switch result {
  case .success: return 0
  case .timedOut:
    errno = ETIMEDOUT
    return -1
  }
}

@inline(never)
private func refuse(_ group: Reference?, _ function: StaticString) { _ = Object.group(group, function) }

@inline(never)
private func refuse(_ semaphore: Reference?, _ function: StaticString) -> Int {
  _ = Object.semaphore(semaphore, function)
  return 0
}

@c(dispatch_group_create)
package func dispatch_group_create() -> UnsafeMutableRawPointer? { DispatchGroup().firstReference }

@c(dispatch_group_enter)
package func dispatch_group_enter(_ group: UnsafeMutableRawPointer?) {
  guard let known = Object.groupIfOne(group) else { return refuse(group, "dispatch_group_enter") }
  known._withUnsafeGuaranteedRef { $0.enterKeptAlive() }
}

@c(dispatch_group_leave)
package func dispatch_group_leave(_ group: UnsafeMutableRawPointer?) {
  guard let known = Object.groupIfOne(group) else { return refuse(group, "dispatch_group_leave") }
  known._withUnsafeGuaranteedRef { $0.leaveKeptAlive() }
}

@c(dispatch_group_async)
package func dispatch_group_async(
  _ group: UnsafeMutableRawPointer?, _ queue: UnsafeMutableRawPointer?, _ block: UnsafeMutableRawPointer?
) {
  let block = Block(block, "dispatch_group_async")
  let group = Object.group(group, "dispatch_group_async")
  let queue = Object.queue(queue, "dispatch_group_async")
  queue._withUnsafeGuaranteedRef { queue in
    group._withUnsafeGuaranteedRef { group in
      if let item = block.item {
        queue.async(group: group, execute: item.takeUnretainedValue())
      } else {
        queue.asyncFunction(group: group, block.copy(), Block.callAndRelease)
      }
    }
  }
}

@c(dispatch_group_async_f)
package func dispatch_group_async_f(
  _ group: UnsafeMutableRawPointer?, _ queue: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?,
  _ work: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
) {
  guard let work else { Reject.null("dispatch_group_async_f", "function") }
  let group = Object.group(group, "dispatch_group_async_f")
  Object.queue(queue, "dispatch_group_async_f")._withUnsafeGuaranteedRef { queue in
    group._withUnsafeGuaranteedRef { queue.asyncFunction(group: $0, context, work) }
  }
}

@c(dispatch_group_wait)
package func dispatch_group_wait(_ group: UnsafeMutableRawPointer?, _ timeout: UInt64) -> Int {
  status(
    Object.group(group, "dispatch_group_wait").takeUnretainedValue().wait(until: Deadline(encoded: timeout)))
}

@c(dispatch_group_notify)
package func dispatch_group_notify(
  _ group: UnsafeMutableRawPointer?, _ queue: UnsafeMutableRawPointer?, _ block: UnsafeMutableRawPointer?
) {
  let block = Block(block, "dispatch_group_notify")
  let group = Object.group(group, "dispatch_group_notify").takeUnretainedValue()
  let queue = Object.queue(queue, "dispatch_group_notify").takeUnretainedValue()
  if let item = block.item {
    group.notify(queue: queue, work: item.takeUnretainedValue())
  } else {
    queue.notifyFunction(of: group, block.copy(), Block.callAndRelease)
  }
}

@c(dispatch_group_notify_f)
package func dispatch_group_notify_f(
  _ group: UnsafeMutableRawPointer?, _ queue: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?,
  _ work: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
) {
  guard let work else { Reject.null("dispatch_group_notify_f", "function") }
  let group = Object.group(group, "dispatch_group_notify_f").takeUnretainedValue()
  Object.queue(queue, "dispatch_group_notify_f").takeUnretainedValue().notifyFunction(
    of: group, context, work)
}

@c(dispatch_semaphore_create)
package func dispatch_semaphore_create(_ value: Int) -> UnsafeMutableRawPointer? {
  value < 0 ? nil : DispatchSemaphore(value: value).firstReference
}

@inline(never)
private func wait(_ semaphore: Unmanaged<DispatchSemaphore>, _ timeout: UInt64) -> Int {
  status(semaphore._withUnsafeGuaranteedRef { $0.wait(until: Deadline(encoded: timeout)) })
}

@c(dispatch_semaphore_wait)
package func dispatch_semaphore_wait(_ semaphore: UnsafeMutableRawPointer?, _ timeout: UInt64) -> Int {
  guard let known = Object.semaphoreIfOne(semaphore) else {
    return refuse(semaphore, "dispatch_semaphore_wait")
  }
  guard timeout == .max else { return wait(known, timeout) }
  known._withUnsafeGuaranteedRef { $0.wait() }
  return 0
}

@c(dispatch_semaphore_signal)
package func dispatch_semaphore_signal(_ semaphore: UnsafeMutableRawPointer?) -> Int {
  guard let known = Object.semaphoreIfOne(semaphore) else {
    return refuse(semaphore, "dispatch_semaphore_signal")
  }
  return known._withUnsafeGuaranteedRef { $0.signal() }
}

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// (Functions carry their C names.)

internal import ConcourseEvents

// Queues that a run loop drains item by item.

private func runLoopQueue(_ reference: Reference?, _ function: StaticString) -> RunLoopQueue {
  let queue = Object.queue(reference, function).takeUnretainedValue()
  guard let runLoopQueue = queue.asRunLoopQueue else {
    ClientBug.trap(
      714,
      "\(function): queue \"\(queue.label)\" was not made by _dispatch_runloop_root_queue_create_4CF")
  }
  return runLoopQueue
}

@c(_dispatch_runloop_root_queue_create_4CF)
package func _dispatch_runloop_root_queue_create_4CF(
  _ label: UnsafePointer<CChar>?, _ flags: UInt
) -> UnsafeMutableRawPointer? {
  guard flags == 0 else { return nil }
  return RunLoopQueue(label: label.map { String(cString: $0) } ?? "runloop-queue").firstReference
}

@c(_dispatch_runloop_root_queue_perform_4CF)
package func _dispatch_runloop_root_queue_perform_4CF(_ queue: UnsafeMutableRawPointer?) -> Bool {
  runLoopQueue(queue, "_dispatch_runloop_root_queue_perform_4CF").perform()
}

/// No effect beyond the check: run loops do not wait at a port here.
@c(_dispatch_runloop_root_queue_wakeup_4CF)
package func _dispatch_runloop_root_queue_wakeup_4CF(_ queue: UnsafeMutableRawPointer?) {
  _ = runLoopQueue(queue, "_dispatch_runloop_root_queue_wakeup_4CF")
}

/// No effect: the runtime's own threads wait for events.
@c(_dispatch_poll_for_events_4launchd)
package func _dispatch_poll_for_events_4launchd() {}

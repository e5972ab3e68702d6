// swift-format-ignore-file: AlwaysUseLowerCamelCase
// (Functions carry their C names.)

internal import ConcourseEvents
internal import Glibc

// Functions that run loops call. Foundation's run loop uses these names.

@c(_dispatch_get_main_queue_handle_4CF)
package func _dispatch_get_main_queue_handle_4CF() -> Int32 { DispatchQueue.mainQueueDescriptor }

@c(_dispatch_get_main_queue_port_4CF)
package func _dispatch_get_main_queue_port_4CF() -> Int32 { DispatchQueue.mainQueueDescriptor }

@c(_dispatch_main_queue_callback_4CF)
package func _dispatch_main_queue_callback_4CF(_ message: UnsafeMutableRawPointer?) {
  DispatchQueue.drainMainQueue()
}

/// No effect: the library initializes itself on first use.
@c(libdispatch_init)
package func libdispatch_init() {}

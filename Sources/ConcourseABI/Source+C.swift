// swift-format-ignore-file: AlwaysUseLowerCamelCase
// (Functions carry their C names.)

internal import CConcourseABI
internal import ConcourseEvents

// source.h

/// The source type at an address.
private func sourceType(_ reference: Reference?) -> SourceType? {
  guard let reference else { Reject.null("dispatch_source_create", "type") }
  // Compared one by one: the linker chooses the addresses.
  if reference == concourse_dispatch_source_type_timer() { return .timer }
  if reference == concourse_dispatch_source_type_read() { return .read }
  if reference == concourse_dispatch_source_type_write() { return .write }
  if reference == concourse_dispatch_source_type_signal() { return .signal }
  if reference == concourse_dispatch_source_type_data_add() { return .dataAdd }
  if reference == concourse_dispatch_source_type_data_or() { return .dataOr }
  if reference == concourse_dispatch_source_type_data_replace() { return .dataReplace }
  if reference == concourse_dispatch_source_type_proc() { return .process }
  if reference == concourse_dispatch_source_type_vnode() { return .fileSystemObject }
  if reference == concourse_dispatch_source_type_memorypressure() { return .memoryPressure }
  if reference == concourse_dispatch_source_type_interval() { return .interval }
  return nil
}

@c(dispatch_source_create)
package func dispatch_source_create(
  _ type: UnsafeMutableRawPointer?, _ handle: UInt, _ mask: UInt, _ queue: UnsafeMutableRawPointer?
) -> UnsafeMutableRawPointer? {
  guard let type = sourceType(type) else {
    ClientBug.trap(717, "dispatch_source_create: the type is not one of the DISPATCH_SOURCE_TYPE_ constants")
  }
  func make(_ queue: DispatchQueue?) -> Reference? {
    DispatchSource.make(type, handle: handle, mask: mask, queue: queue)?.firstReference
  }
  guard queue != nil else { return make(nil) }
  return Object.queue(queue, "dispatch_source_create")._withUnsafeGuaranteedRef { make($0) }
}

@c(dispatch_source_set_event_handler)
package func dispatch_source_set_event_handler(
  _ source: UnsafeMutableRawPointer?, _ handler: UnsafeMutableRawPointer?
) {
  let source = Object.source(source, "dispatch_source_set_event_handler").takeUnretainedValue()
  guard let block = handler.map({ Block($0) }) else { return source.setEventHandler(nil as ContextFunction?) }
  if let item = block.item {
    source.setEventHandler(handler: item.takeUnretainedValue())
  } else {
    source.setEventHandler(OwnedBlock(copying: block))
  }
}

@c(dispatch_source_set_event_handler_f)
package func dispatch_source_set_event_handler_f(
  _ source: UnsafeMutableRawPointer?, _ handler: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
) {
  Object.source(source, "dispatch_source_set_event_handler_f")._withUnsafeGuaranteedRef {
    $0.setEventHandler(handler)
  }
}

@c(dispatch_source_set_cancel_handler)
package func dispatch_source_set_cancel_handler(
  _ source: UnsafeMutableRawPointer?, _ handler: UnsafeMutableRawPointer?
) {
  let source = Object.source(source, "dispatch_source_set_cancel_handler").takeUnretainedValue()
  guard let block = handler.map({ Block($0) }) else {
    return source.setCancelHandler(nil as ContextFunction?)
  }
  if let item = block.item {
    source.setCancelHandler(handler: item.takeUnretainedValue())
  } else {
    source.setCancelHandler(OwnedBlock(copying: block))
  }
}

@c(dispatch_source_set_cancel_handler_f)
package func dispatch_source_set_cancel_handler_f(
  _ source: UnsafeMutableRawPointer?, _ handler: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
) {
  Object.source(source, "dispatch_source_set_cancel_handler_f")._withUnsafeGuaranteedRef {
    $0.setCancelHandler(handler)
  }
}

@c(dispatch_source_set_mandatory_cancel_handler)
package func dispatch_source_set_mandatory_cancel_handler(
  _ source: UnsafeMutableRawPointer?, _ handler: UnsafeMutableRawPointer?
) {
  let block = Block(handler, "dispatch_source_set_mandatory_cancel_handler")
  let source = Object.source(source, "dispatch_source_set_mandatory_cancel_handler").takeUnretainedValue()
  if let item = block.item {
    source.setMandatoryCancelHandler(item.takeUnretainedValue())
  } else {
    source.setMandatoryCancelHandler(OwnedBlock(copying: block))
  }
}

@c(dispatch_source_set_mandatory_cancel_handler_f)
package func dispatch_source_set_mandatory_cancel_handler_f(
  _ source: UnsafeMutableRawPointer?, _ handler: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
) {
  guard let handler else { Reject.null("dispatch_source_set_mandatory_cancel_handler_f", "handler") }
  Object.source(source, "dispatch_source_set_mandatory_cancel_handler_f").takeUnretainedValue()
    .setMandatoryCancelHandler(handler)
}

@c(dispatch_source_set_registration_handler)
package func dispatch_source_set_registration_handler(
  _ source: UnsafeMutableRawPointer?, _ handler: UnsafeMutableRawPointer?
) {
  let source = Object.source(source, "dispatch_source_set_registration_handler").takeUnretainedValue()
  guard let block = handler.map({ Block($0) }) else {
    return source.setRegistrationHandler(nil as ContextFunction?)
  }
  if let item = block.item {
    source.setRegistrationHandler(handler: item.takeUnretainedValue())
  } else {
    source.setRegistrationHandler(OwnedBlock(copying: block))
  }
}

@c(dispatch_source_set_registration_handler_f)
package func dispatch_source_set_registration_handler_f(
  _ source: UnsafeMutableRawPointer?, _ handler: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
) {
  Object.source(source, "dispatch_source_set_registration_handler_f")._withUnsafeGuaranteedRef {
    $0.setRegistrationHandler(handler)
  }
}

@c(dispatch_source_cancel)
package func dispatch_source_cancel(_ source: UnsafeMutableRawPointer?) {
  Object.source(source, "dispatch_source_cancel")._withUnsafeGuaranteedRef { $0.stop() }
}

@c(dispatch_source_cancel_and_wait)
package func dispatch_source_cancel_and_wait(_ source: UnsafeMutableRawPointer?) {
  Object.source(source, "dispatch_source_cancel_and_wait").takeUnretainedValue().cancelAndWait()
}

@c(dispatch_source_testcancel)
package func dispatch_source_testcancel(_ source: UnsafeMutableRawPointer?) -> Int {
  Object.source(source, "dispatch_source_testcancel")._withUnsafeGuaranteedRef { $0.wasCancelled ? 1 : 0 }
}

@c(dispatch_source_get_handle)
package func dispatch_source_get_handle(_ source: UnsafeMutableRawPointer?) -> UInt {
  Object.source(source, "dispatch_source_get_handle")._withUnsafeGuaranteedRef { $0.rawHandle }
}

@c(dispatch_source_get_mask)
package func dispatch_source_get_mask(_ source: UnsafeMutableRawPointer?) -> UInt {
  Object.source(source, "dispatch_source_get_mask")._withUnsafeGuaranteedRef { $0.rawMask }
}

@c(dispatch_source_get_data)
package func dispatch_source_get_data(_ source: UnsafeMutableRawPointer?) -> UInt {
  Object.source(source, "dispatch_source_get_data")._withUnsafeGuaranteedRef { $0.rawData }
}

/// Stores as many of the two numbers, data and status, as fit into `size` bytes. The status is always 0.
@c(dispatch_source_get_extended_data)
package func dispatch_source_get_extended_data(
  _ source: UnsafeMutableRawPointer?, _ extended: UnsafeMutableRawPointer?, _ size: Int
) -> Int {
  guard let extended else { Reject.null("dispatch_source_get_extended_data", "structure") }
  let data = Object.source(source, "dispatch_source_get_extended_data")._withUnsafeGuaranteedRef {
    $0.rawData
  }
  let numbers: [UInt] = [data, 0]
  let count = min(max(size, 0) / MemoryLayout<UInt>.size, numbers.count)
  for index in 0..<count {
    extended.storeBytes(of: numbers[index], toByteOffset: index * MemoryLayout<UInt>.size, as: UInt.self)
  }
  return count * MemoryLayout<UInt>.size
}

@c(dispatch_source_merge_data)
package func dispatch_source_merge_data(_ source: UnsafeMutableRawPointer?, _ value: UInt) {
  Object.source(source, "dispatch_source_merge_data")._withUnsafeGuaranteedRef { $0.merge(value) }
}

@c(dispatch_source_set_timer)
package func dispatch_source_set_timer(
  _ source: UnsafeMutableRawPointer?, _ start: UInt64, _ interval: UInt64, _ leeway: UInt64
) {
  Object.source(source, "dispatch_source_set_timer")._withUnsafeGuaranteedRef {
    $0.program(
      start: Deadline(encoded: start), interval: interval, leeway: leeway, "dispatch_source_set_timer")
  }
}

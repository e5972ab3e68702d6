// swift-format-ignore-file: AlwaysUseLowerCamelCase
// (Functions carry their C names.)

internal import ConcourseEvents

// io.h: creating channels. An unknown type or a relative path returns NULL without calling the cleanup handler. Every
// other error goes to the cleanup handler, which may be NULL.

/// The cleanup handler of a block; NULL does nothing.
private func cleanup(_ block: Reference?) -> CleanupHandler? {
  block.map { IOCallback<CleanupFunction>(Block($0)).handler }
}

/// The cleanup handler of a function; NULL does nothing.
private func cleanup(_ function: CleanupFunction?, _ context: Reference?) -> CleanupHandler? {
  function.map { IOCallback($0, context).handler }
}

private func create(
  _ type: UInt, _ descriptor: Int32, _ queue: Unmanaged<DispatchQueue>, _ cleanup: CleanupHandler?
) -> Reference? {
  guard let type = DispatchIO.StreamType(rawValue: type) else { return nil }
  return DispatchIO(type, descriptor, queue.takeUnretainedValue(), cleanup).firstReference
}

private func create(
  _ type: UInt, _ path: UnsafePointer<CChar>, _ flags: Int32, _ mode: UInt32,
  _ queue: Unmanaged<DispatchQueue>, _ cleanup: CleanupHandler?
) -> Reference? {
  guard let type = DispatchIO.StreamType(rawValue: type) else { return nil }
  return DispatchIO(type, path, flags, mode, queue.takeUnretainedValue(), cleanup)?.firstReference
}

private func create(
  _ type: UInt, _ channel: Unmanaged<DispatchIO>, _ queue: Unmanaged<DispatchQueue>,
  _ cleanup: CleanupHandler?
) -> Reference? {
  guard let type = DispatchIO.StreamType(rawValue: type) else { return nil }
  return DispatchIO(type, channel.takeUnretainedValue(), queue.takeUnretainedValue(), cleanup).firstReference
}

@c(dispatch_io_create)
package func dispatch_io_create(
  _ type: UInt, _ descriptor: Int32, _ queue: UnsafeMutableRawPointer?, _ handler: UnsafeMutableRawPointer?
) -> UnsafeMutableRawPointer? {
  create(type, descriptor, Object.queue(queue, "dispatch_io_create"), cleanup(handler))
}

@c(dispatch_io_create_f)
package func dispatch_io_create_f(
  _ type: UInt, _ descriptor: Int32, _ queue: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?,
  _ handler: (@convention(c) (UnsafeMutableRawPointer?, Int32) -> Void)?
) -> UnsafeMutableRawPointer? {
  create(type, descriptor, Object.queue(queue, "dispatch_io_create_f"), cleanup(handler, context))
}

@c(dispatch_io_create_with_path)
package func dispatch_io_create_with_path(
  _ type: UInt, _ path: UnsafePointer<CChar>?, _ flags: Int32, _ mode: UInt32,
  _ queue: UnsafeMutableRawPointer?, _ handler: UnsafeMutableRawPointer?
) -> UnsafeMutableRawPointer? {
  guard let path else { Reject.null("dispatch_io_create_with_path", "path") }
  let queue = Object.queue(queue, "dispatch_io_create_with_path")
  return create(type, path, flags, mode, queue, cleanup(handler))
}

@c(dispatch_io_create_with_path_f)
package func dispatch_io_create_with_path_f(
  _ type: UInt, _ path: UnsafePointer<CChar>?, _ flags: Int32, _ mode: UInt32,
  _ queue: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?,
  _ handler: (@convention(c) (UnsafeMutableRawPointer?, Int32) -> Void)?
) -> UnsafeMutableRawPointer? {
  guard let path else { Reject.null("dispatch_io_create_with_path_f", "path") }
  let queue = Object.queue(queue, "dispatch_io_create_with_path_f")
  return create(type, path, flags, mode, queue, cleanup(handler, context))
}

@c(dispatch_io_create_with_io)
package func dispatch_io_create_with_io(
  _ type: UInt, _ channel: UnsafeMutableRawPointer?, _ queue: UnsafeMutableRawPointer?,
  _ handler: UnsafeMutableRawPointer?
) -> UnsafeMutableRawPointer? {
  let channel = Object.channel(channel, "dispatch_io_create_with_io")
  return create(type, channel, Object.queue(queue, "dispatch_io_create_with_io"), cleanup(handler))
}

@c(dispatch_io_create_with_io_f)
package func dispatch_io_create_with_io_f(
  _ type: UInt, _ channel: UnsafeMutableRawPointer?, _ queue: UnsafeMutableRawPointer?,
  _ context: UnsafeMutableRawPointer?,
  _ handler: (@convention(c) (UnsafeMutableRawPointer?, Int32) -> Void)?
) -> UnsafeMutableRawPointer? {
  let channel = Object.channel(channel, "dispatch_io_create_with_io_f")
  return create(type, channel, Object.queue(queue, "dispatch_io_create_with_io_f"), cleanup(handler, context))
}

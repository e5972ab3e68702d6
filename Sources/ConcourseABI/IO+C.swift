// swift-format-ignore-file: AlwaysUseLowerCamelCase
// (Functions carry their C names.)

internal import ConcourseEvents

// io.h: single operations, and operations on existing channels. Lengths and water marks above `Int.max` become
// negative, which the engine treats as no limit.

// MARK: Single operations

private func read(
  _ descriptor: Int32, _ length: UInt, _ queue: Unmanaged<DispatchQueue>, _ callback: IOCallback<OnceFunction>
) {
  DispatchIO.read(
    descriptor, Int(bitPattern: length), queue.takeUnretainedValue(), callback.handler(none: .empty))
}

private func write(
  _ descriptor: Int32, _ data: Unmanaged<DataObject>, _ queue: Unmanaged<DispatchQueue>,
  _ callback: IOCallback<OnceFunction>
) {
  DispatchIO.write(
    descriptor, DispatchData(showing: data.takeUnretainedValue()), queue.takeUnretainedValue(),
    callback.handler())
}

@c(dispatch_read)
package func dispatch_read(
  _ descriptor: Int32, _ length: UInt, _ queue: UnsafeMutableRawPointer?, _ handler: UnsafeMutableRawPointer?
) {
  read(
    descriptor, length, Object.queue(queue, "dispatch_read"), IOCallback(Block(handler, "dispatch_read")))
}

@c(dispatch_read_f)
package func dispatch_read_f(
  _ descriptor: Int32, _ length: UInt, _ queue: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?,
  _ handler: (@convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, Int32) -> Void)?
) {
  guard let handler else { Reject.null("dispatch_read_f", "function") }
  read(descriptor, length, Object.queue(queue, "dispatch_read_f"), IOCallback(handler, context))
}

@c(dispatch_write)
package func dispatch_write(
  _ descriptor: Int32, _ data: UnsafeMutableRawPointer?, _ queue: UnsafeMutableRawPointer?,
  _ handler: UnsafeMutableRawPointer?
) {
  write(
    descriptor, Object.data(data, "dispatch_write"), Object.queue(queue, "dispatch_write"),
    IOCallback(Block(handler, "dispatch_write")))
}

@c(dispatch_write_f)
package func dispatch_write_f(
  _ descriptor: Int32, _ data: UnsafeMutableRawPointer?, _ queue: UnsafeMutableRawPointer?,
  _ context: UnsafeMutableRawPointer?,
  _ handler: (@convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, Int32) -> Void)?
) {
  guard let handler else { Reject.null("dispatch_write_f", "function") }
  write(
    descriptor, Object.data(data, "dispatch_write_f"), Object.queue(queue, "dispatch_write_f"),
    IOCallback(handler, context))
}

// MARK: Operations of channels

// A handler or barrier that these calls start may release the channel's last reference, so each call holds its own.

private func read(
  _ channel: Unmanaged<DispatchIO>, _ offset: Int, _ length: UInt, _ queue: Unmanaged<DispatchQueue>,
  _ callback: IOCallback<PiecesFunction>
) {
  channel.takeUnretainedValue().read(
    offset, Int(bitPattern: length), queue.takeUnretainedValue(), callback.handler)
}

private func write(
  _ channel: Unmanaged<DispatchIO>, _ offset: Int, _ data: Unmanaged<DataObject>,
  _ queue: Unmanaged<DispatchQueue>, _ callback: IOCallback<PiecesFunction>
) {
  channel.takeUnretainedValue().write(
    offset, DispatchData(showing: data.takeUnretainedValue()), queue.takeUnretainedValue(), callback.handler)
}

@c(dispatch_io_read)
package func dispatch_io_read(
  _ channel: UnsafeMutableRawPointer?, _ offset: Int, _ length: UInt, _ queue: UnsafeMutableRawPointer?,
  _ handler: UnsafeMutableRawPointer?
) {
  read(
    Object.channel(channel, "dispatch_io_read"), offset, length, Object.queue(queue, "dispatch_io_read"),
    IOCallback(Block(handler, "dispatch_io_read")))
}

@c(dispatch_io_read_f)
package func dispatch_io_read_f(
  _ channel: UnsafeMutableRawPointer?, _ offset: Int, _ length: UInt, _ queue: UnsafeMutableRawPointer?,
  _ context: UnsafeMutableRawPointer?,
  _ handler: (@convention(c) (UnsafeMutableRawPointer?, Bool, UnsafeMutableRawPointer?, Int32) -> Void)?
) {
  guard let handler else { Reject.null("dispatch_io_read_f", "function") }
  read(
    Object.channel(channel, "dispatch_io_read_f"), offset, length,
    Object.queue(queue, "dispatch_io_read_f"), IOCallback(handler, context))
}

@c(dispatch_io_write)
package func dispatch_io_write(
  _ channel: UnsafeMutableRawPointer?, _ offset: Int, _ data: UnsafeMutableRawPointer?,
  _ queue: UnsafeMutableRawPointer?, _ handler: UnsafeMutableRawPointer?
) {
  write(
    Object.channel(channel, "dispatch_io_write"), offset, Object.data(data, "dispatch_io_write"),
    Object.queue(queue, "dispatch_io_write"), IOCallback(Block(handler, "dispatch_io_write")))
}

@c(dispatch_io_write_f)
package func dispatch_io_write_f(
  _ channel: UnsafeMutableRawPointer?, _ offset: Int, _ data: UnsafeMutableRawPointer?,
  _ queue: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?,
  _ handler: (@convention(c) (UnsafeMutableRawPointer?, Bool, UnsafeMutableRawPointer?, Int32) -> Void)?
) {
  guard let handler else { Reject.null("dispatch_io_write_f", "function") }
  write(
    Object.channel(channel, "dispatch_io_write_f"), offset, Object.data(data, "dispatch_io_write_f"),
    Object.queue(queue, "dispatch_io_write_f"), IOCallback(handler, context))
}

@c(dispatch_io_barrier)
package func dispatch_io_barrier(_ channel: UnsafeMutableRawPointer?, _ barrier: UnsafeMutableRawPointer?) {
  let block = OwnedBlock(copying: Block(barrier, "dispatch_io_barrier"))
  Object.channel(channel, "dispatch_io_barrier").takeUnretainedValue().barrier(block.call, code: block.code)
}

@c(dispatch_io_barrier_f)
package func dispatch_io_barrier_f(
  _ channel: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?,
  _ barrier: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
) {
  guard let barrier else { Reject.null("dispatch_io_barrier_f", "function") }
  Object.channel(channel, "dispatch_io_barrier_f").takeUnretainedValue().barrier(
    { barrier(context) }, code: ItemRecording.code(of: barrier, context))
}

// MARK: Control

@c(dispatch_io_close)
package func dispatch_io_close(_ channel: UnsafeMutableRawPointer?, _ flags: UInt) {
  // The cleanup handler may release the last reference.
  Object.channel(channel, "dispatch_io_close").takeUnretainedValue().close(
    flags: DispatchIO.CloseFlags(rawValue: flags))
}

@c(dispatch_io_get_descriptor)
package func dispatch_io_get_descriptor(_ channel: UnsafeMutableRawPointer?) -> Int32 {
  Object.channel(channel, "dispatch_io_get_descriptor")._withUnsafeGuaranteedRef { $0.fileDescriptor }
}

@c(dispatch_io_set_high_water)
package func dispatch_io_set_high_water(_ channel: UnsafeMutableRawPointer?, _ mark: UInt) {
  Object.channel(channel, "dispatch_io_set_high_water")._withUnsafeGuaranteedRef {
    $0.setLimit(highWater: Int(bitPattern: mark))
  }
}

@c(dispatch_io_set_low_water)
package func dispatch_io_set_low_water(_ channel: UnsafeMutableRawPointer?, _ mark: UInt) {
  Object.channel(channel, "dispatch_io_set_low_water")._withUnsafeGuaranteedRef {
    $0.setLimit(lowWater: Int(bitPattern: mark))
  }
}

@c(dispatch_io_set_interval)
package func dispatch_io_set_interval(
  _ channel: UnsafeMutableRawPointer?, _ nanoseconds: UInt64, _ flags: UInt
) {
  let isStrict = DispatchIO.IntervalFlags(rawValue: flags).contains(.strictInterval)
  Object.channel(channel, "dispatch_io_set_interval")._withUnsafeGuaranteedRef {
    $0.setInterval(nanoseconds: nanoseconds, isStrict: isStrict)
  }
}

/// No effect. Benchmarks set the toolchain's request sizes with this. Here the sizes are constants (`ReadBuffer`).
@c(_dispatch_iocntl)
package func _dispatch_iocntl(_ parameter: UInt32, _ value: UInt64) {}

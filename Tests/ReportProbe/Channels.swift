import ConcourseEvents
import Glibc

/// One handler of each kind that an I/O channel and a single operation have, of Swift and of C; and a source's block.
enum Channels {
  typealias Function = @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, Int32) -> Void
  typealias Body = @convention(block) () -> Void

  // SAFETY: x86-64 passes these arguments in the same registers to functions of C and of Swift.
  @_silgen_name("dispatch_read_f")
  private static func dispatchRead(
    _ descriptor: Int32, _ length: UInt, _ queue: UnsafeMutableRawPointer,
    _ context: UnsafeMutableRawPointer?, _ handler: Function)
  @_silgen_name("dispatch_source_set_event_handler")
  private static func setEventHandler(_ source: UnsafeMutableRawPointer, _ handler: @escaping Body)
  @_silgen_name("dispatch_io_barrier")
  private static func dispatchBarrier(_ channel: UnsafeMutableRawPointer, _ body: @escaping Body)

  private static let queue = DispatchQueue(label: "com.example.channel")
  private static let called = DispatchSemaphore(value: 0)

  private static func open(_ descriptor: Int32) -> DispatchIO {
    DispatchIO(type: .stream, fileDescriptor: descriptor, queue: queue) { _ in called.signal() }
  }

  private static func read(_ channel: DispatchIO) {
    channel.read(offset: 0, length: 1, queue: queue) { isLast, _, _ in if isLast { called.signal() } }
    called.wait()
  }

  private static func write(_ channel: DispatchIO, _ data: DispatchData) {
    channel.write(offset: 0, data: data, queue: queue) { isLast, _, _ in if isLast { called.signal() } }
    called.wait()
  }

  private static func wait(for channel: DispatchIO) {
    channel.barrier { called.signal() }
    called.wait()
    dispatchBarrier(Unmanaged.passUnretained(channel).toOpaque()) { called.signal() }
    called.wait()
  }

  private static func readOnce(_ descriptor: Int32) {
    DispatchIO.read(fromFileDescriptor: descriptor, maxLength: 1, runningHandlerOn: queue) { _, _ in
      called.signal()
    }
    called.wait()
    dispatchRead(descriptor, 1, Unmanaged.passUnretained(queue).toOpaque(), nil) { _, _, _ in
      Channels.called.signal()
    }
    called.wait()
  }

  private static func writeOnce(_ descriptor: Int32, _ data: DispatchData) {
    DispatchIO.write(toFileDescriptor: descriptor, data: data, runningHandlerOn: queue) { _, _ in
      called.signal()
    }
    called.wait()
  }

  private static func raise() {
    let source = DispatchSource.makeUserDataAddSource(queue: queue)
    setEventHandler(Unmanaged.passUnretained(source as! DispatchSource).toOpaque()) { called.signal() }
    source.activate()
    source.add(data: 1)
    called.wait()
  }

  static func run() -> Never {
    var ends: [Int32] = [0, 0]
    pipe(&ends)
    let data = [UInt8](repeating: 0, count: 2).withUnsafeBytes { DispatchData(bytes: $0) }
    writeOnce(ends[1], data)
    readOnce(ends[0])
    let (reader, writer) = (open(ends[0]), open(ends[1]))
    write(writer, data)
    read(reader)
    wait(for: reader)
    raise()
    for channel in [reader, writer] {
      channel.close()
      called.wait()
    }
    // The end of the last handler, too, is recorded by then.
    queue.sync {}
    exit(0)
  }
}

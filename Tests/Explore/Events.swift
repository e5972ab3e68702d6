import Dispatch
import Glibc

/// Bugs in the use of timers, sources and channels.
extension ExplorePrograms {
  static let events: [(name: String, body: Body)] = [
    ("timer-cancelled", .plain(timerCancelled)),
    ("source-closed", .plain(sourceClosed)),
    ("channel-stopped", .plain(channelStopped)),
  ]

  /// After `cancel` the handler may still run: what it uses must live until the cancel handler.
  @Sendable private static func timerCancelled(mended: Bool) {
    let isOpen = Cell(true)
    let ended = DispatchSemaphore(value: 0)
    let timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "timer"))
    timer.schedule(deadline: .now())
    timer.setEventHandler { require(isOpen.value, "the timer uses a closed connection") }
    timer.setCancelHandler {
      if mended { isOpen.value = false }
      ended.signal()
    }
    timer.resume()
    timer.cancel()
    if !mended { isOpen.value = false }
    ended.wait()
  }

  /// The descriptor is closed while the handler is about to read it.
  @Sendable private static func sourceClosed(mended: Bool) {
    let (reading, writing) = makePipe()
    let ended = DispatchSemaphore(value: 0)
    let source = DispatchSource.makeReadSource(
      fileDescriptor: reading, queue: DispatchQueue(label: "reader"))
    source.setEventHandler {
      var byte: UInt8 = 0
      require(read(reading, &byte, 1) == 1 || errno == EAGAIN, "reads a closed descriptor")
    }
    source.setCancelHandler {
      if mended { close(reading) }
      ended.signal()
    }
    source.resume()
    write(writing, "x", 1)
    source.cancel()
    if !mended { close(reading) }
    ended.wait()
  }

  /// A channel is stopped before its read has ended.
  @Sendable private static func channelStopped(mended: Bool) {
    let (reading, writing) = makePipe()
    write(writing, "hello", 5)
    close(writing)
    let queue = DispatchQueue(label: "channel")
    let received = Cell(0)
    let ended = DispatchSemaphore(value: 0)
    let channel = DispatchIO(type: .stream, fileDescriptor: reading, queue: queue) { _ in close(reading) }
    channel.read(offset: 0, length: 5, queue: queue) { isDone, data, _ in
      received.update { $0 += data?.count ?? 0 }
      if isDone { ended.signal() }
    }
    if mended { ended.wait() }
    pass(4)
    channel.close(flags: .stop)
    if !mended { ended.wait() }
    require(received.value == 5, "received \(received.value) of 5 bytes")
  }

  /// Lets some time pass, as a program does between two user's actions.
  private static func pass(_ turns: Int) {
    let queue = DispatchQueue(label: "other work")
    for _ in 1...turns {
      let turn = DispatchSemaphore(value: 0)
      queue.async { turn.signal() }
      turn.wait()
    }
  }

  private static func makePipe() -> (reading: Int32, writing: Int32) {
    var ends: [Int32] = [0, 0]
    require(pipe(&ends) == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0, "no pipe")
    return (ends[0], ends[1])
  }
}

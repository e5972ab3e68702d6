import CBench
import Glibc

extension Row {
  static let events: [Row] = [
    pipeEventRoundTrip,
    echo(connections: 1, trips: 20_000),
    echo(connections: 64, trips: 200_000),
    echo(connections: 1_000, trips: 200_000),
    readCachedFile,
    idleContextSwitches,
  ]

  private static let pipeEventRoundTrip = Row(
    "pipe-event-round-trip", count: 20_000,
    "write to a pipe, whose read source's handler reads and signals a semaphore: the round trip"
  ) { count in
    let pipe = Pipe()
    let answer = DispatchSemaphore(value: 0)
    // Written on the source's queue while the main thread waits for the answer.
    let trips = Cell()
    let source = DispatchSource.makeReadSource(
      fileDescriptor: pipe.reading, queue: DispatchQueue(label: "pipe"))
    source.setEventHandler {
      pipe.receive()
      trips.add(1)
      answer.signal()
    }
    source.setCancelHandler {
      close(pipe.reading)
      answer.signal()
    }
    source.resume()
    let result = perOperation(count, adding: count, to: trips, "events handled") {
      elapsed {
        for _ in 0..<count {
          pipe.send()
          answer.wait()
        }
      }
    }
    source.cancel()
    answer.wait()
    close(pipe.writing)
    return result
  }

  private static let idleContextSwitches = Row(
    "idle-context-switches",
    [
      Figure(
        "idle-context-switches", .switches,
        "context switches of all threads but the measuring one within 5 s, with 1,000 far timers and 1,000 quiet fds"
      )
    ]
  ) { scale in
    let count = 1_000
    let seconds = scale.quick ? 1 : 5
    bench_raise_descriptor_limit()
    let queue = DispatchQueue(label: "idle")
    let fired = Cell()
    let registered = DispatchGroup()
    var sources: [any DispatchSourceProtocol] = []
    var pipes: [Pipe] = []
    for index in 0..<count {
      let timer = DispatchSource.makeTimerSource(queue: queue)
      timer.schedule(deadline: .now() + .seconds(3_600 + index))
      sources.append(timer)
      let pipe = Pipe()
      pipes.append(pipe)
      sources.append(DispatchSource.makeReadSource(fileDescriptor: pipe.reading, queue: queue))
    }
    for source in sources {
      registered.enter()
      source.setRegistrationHandler { registered.leave() }
      source.setEventHandler { fired.add(1) }
      source.resume()
    }
    registered.wait()
    waitUntilOtherThreadsSleep()
    // Work that a runtime does once, such as ending spare threads, may take a moment; work that it repeats comes back
    // within the five seconds.
    sleep(scale.quick ? 1 : 12)

    let before = contextSwitches()
    sleep(UInt32(seconds))
    let after = contextSwitches()
    var switches = 0
    for (thread, count) in after { switches += count - (before[thread] ?? 0) }
    // A thread had to run in order to end.
    for thread in before.keys where after[thread] == nil { switches += 1 }

    // The quiet descriptors are watched.
    let answered = DispatchGroup()
    for (index, pipe) in pipes.enumerated() {
      answered.enter()
      sources[2 * index + 1].setEventHandler {
        pipe.receive()
        fired.add(1)
        answered.leave()
      }
      pipe.send()
    }
    answered.wait()
    queue.sync {}
    verify(fired.value, equals: count, "events of descriptors, and none of timers")
    for source in sources { source.cancel() }
    return [Measurement(value: Double(switches), operations: count, check: fired.value)]
  }

  private static let readCachedFile = Row(
    "read-cached-file", .seconds, count: 1 << 30,
    "sequential read of a cached 1 GiB file by one DispatchIO stream with default settings: wall seconds"
  ) { size in
    let file = bench_make_cached_file(size)
    verify(file >= 0, equals: true, "a temporary file")
    var sample: UInt64?
    let time = quickest {
      verify(lseek(file, 0, SEEK_SET), equals: 0, "lseek")
      let reading = Reading()
      let time = elapsed { reading.read(file, size) }
      verify(reading.offset, equals: size, "bytes read")
      verify(reading.sample, equals: sample ?? reading.sample, "the sample of the bytes read")
      sample = reading.sample
      return time
    }
    close(file)
    return Measurement(
      value: Double(time) / 1e9, operations: size, check: Int(truncatingIfNeeded: (sample ?? 0) >> 1))
  }
}

/// Voluntary and involuntary context switches of every thread but the calling one, the main thread.
private func contextSwitches() -> [String: Int] {
  var switches: [String: Int] = [:]
  for thread in otherThreads() {
    // A thread that ends between the listing and the reading is not counted.
    guard let status = readSmallFile("/proc/self/task/\(thread)/status") else { continue }
    var sum = 0
    for line in String(decoding: status, as: UTF8.self).split(separator: "\n") {
      let words = line.split { $0 == "\t" || $0 == " " }
      guard words.count == 2, words[0].hasSuffix("voluntary_ctxt_switches:") else { continue }
      guard let count = Int(words[1]) else { fail("cannot read: \(line)") }
      sum += count
    }
    switches[thread] = sum
  }
  return switches
}

/// SAFETY: the fields are written by the handlers of one serial queue, and read after `done`.
private final class Reading: @unchecked Sendable {
  private(set) var offset = 0
  private(set) var sample: UInt64 = 0
  private let done = DispatchSemaphore(value: 0)
  private let queue = DispatchQueue(label: "reading")

  func read(_ file: Int32, _ size: Int) {
    let channel = DispatchIO(type: .stream, fileDescriptor: file, queue: queue) { [done] error in
      verify(error, equals: 0, "error of the channel")
      done.signal()
    }
    channel.read(offset: 0, length: size, queue: queue) { [self] finished, data, error in
      verify(error, equals: 0, "error of a read")
      if let data { take(data) }
      if finished { channel.close() }
    }
    done.wait()
  }

  /// Samples the bytes in place, region by region, as the rival samples its buffer.
  private func take(_ data: DispatchData) {
    data.enumerateBytes { bytes, _, _ in
      if let base = bytes.baseAddress { sample &+= bench_sample(base, bytes.count, offset) }
      offset += bytes.count
    }
  }
}

/// A pipe whose ends do not block and are not inherited.
struct Pipe: Sendable {
  let reading: Int32
  let writing: Int32

  init() {
    var ends: [Int32] = [-1, -1]
    verify(pipe(&ends), equals: 0, "pipe")
    for end in ends {
      verify(fcntl(end, F_SETFD, FD_CLOEXEC), equals: 0, "fcntl")
      verify(fcntl(end, F_SETFL, O_NONBLOCK), equals: 0, "fcntl")
    }
    (reading, writing) = (ends[0], ends[1])
  }

  func send() {
    var byte: UInt8 = 1
    verify(write(writing, &byte, 1), equals: 1, "bytes written")
  }

  func receive() {
    var byte: UInt8 = 0
    verify(read(reading, &byte, 1), equals: 1, "bytes in the pipe")
  }
}

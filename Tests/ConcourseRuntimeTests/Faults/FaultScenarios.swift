import Glibc

@testable import ConcourseEvents
@testable import ConcourseRuntime

/// A short program that uses one road of the engine, and demands what the contract promises under any refusal.
struct FaultScenario: Sendable {
  let name: String
  /// Whether it watches descriptors of the runtime. The kernel answers EBADF for them only if the program has closed
  /// them, which the contract forbids.
  let watchesOwnDescriptors: Bool
  let run: @Sendable (FaultTrial) -> Void

  init(_ name: String, watchesOwnDescriptors: Bool = false, _ run: @escaping @Sendable (FaultTrial) -> Void) {
    self.name = name
    self.watchesOwnDescriptors = watchesOwnDescriptors
    self.run = run
  }

  static let all: [FaultScenario] = [
    FaultScenario("async") { submit($0) },
    FaultScenario("after") { submitLater($0) },
    FaultScenario("item after") { submitItemLater($0) },
    FaultScenario("timer") { fireTimers($0) },
    FaultScenario("read source") { readPipe($0) },
    FaultScenario("write source") { writeSocket($0) },
    FaultScenario("both directions") { useBothDirections($0) },
    FaultScenario("file source", watchesOwnDescriptors: true) { watchFile($0) },
    FaultScenario("directory source", watchesOwnDescriptors: true) { watchDirectory($0) },
    FaultScenario("process source", watchesOwnDescriptors: true) { watchProcess($0) },
    FaultScenario("fork source", watchesOwnDescriptors: true) { watchForks($0) },
    FaultScenario("signal source", watchesOwnDescriptors: true) { watchSignal($0) },
    FaultScenario("memory pressure", watchesOwnDescriptors: true) { watchMemory($0) },
    FaultScenario("stream channels") { streamThroughPipe($0) },
    FaultScenario("random channel, threads") { useFile($0, .random, .threads) },
    FaultScenario("random channel, ring", watchesOwnDescriptors: true) { useFile($0, .random, .ring) },
    FaultScenario("stream channel, threads") { useFile($0, .stream, .threads) },
    FaultScenario("stream channel, ring", watchesOwnDescriptors: true) { useFile($0, .stream, .ring) },
    FaultScenario("path channel") { usePath($0) },
  ]

  /// The errors of a client's descriptor, for which its source may be silent.
  private static let badDescriptor: [SystemCall: Set<Int32>] = [.epollControl: [EBADF]]

  /// The errors after which a file source may miss an event: it cannot read the status of the file, and so does not know
  /// what has changed.
  private static let unknownFile: [SystemCall: Set<Int32>] = [
    .status: SystemCall.status.manualErrors,
    // A directory that is said to be gone has no parent to watch.
    .inotifyAdd: [ENOENT],
  ]

  // MARK: Queues and timers

  private static func submit(_ trial: FaultTrial) {
    let done = DispatchSemaphore(value: 0)
    let serial = DispatchQueue(label: "serial")
    for level in [DispatchQoS.QoSClass.background, .utility, .default, .userInteractive] {
      DispatchQueue.global(qos: level).async { serial.async { done.signal() } }
    }
    for _ in 0..<4 { trial.await(done) }
    trial.idle()
  }

  /// Each time is the only one that is set.
  private static func submitLater(_ trial: FaultTrial) {
    let done = DispatchSemaphore(value: 0)
    let queue = DispatchQueue(label: "later")
    queue.asyncAfter(deadline: .now() + .milliseconds(2)) { done.signal() }
    trial.await(done)
    queue.asyncAfter(wallDeadline: .now() + .milliseconds(2)) { done.signal() }
    trial.await(done)
    trial.idle()
  }

  /// The first use of the event loop comes from a work item, which can be cancelled.
  private static func submitItemLater(_ trial: FaultTrial) {
    let done = DispatchSemaphore(value: 0)
    let item = DispatchWorkItem { done.signal() }
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(2), execute: item)
    trial.await(done)
    trial.idle()
  }

  private static func fireTimers(_ trial: FaultTrial) {
    for isWall in [false, true] {
      let (fired, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      let timer = DispatchSource.makeTimerSource()
      timer.setEventHandler { fired.signal() }
      timer.setCancelHandler { ended.signal() }
      if isWall {
        timer.schedule(wallDeadline: .now() + .milliseconds(1), repeating: .milliseconds(2))
      } else {
        timer.schedule(deadline: .now() + .milliseconds(1), repeating: .milliseconds(2))
      }
      timer.activate()
      for _ in 0..<3 { trial.await(fired) }
      timer.schedule(deadline: .distantFuture)
      trial.idle()
      timer.cancel()
      trial.await(ended)
    }
  }

  // MARK: Descriptors

  private static func readPipe(_ trial: FaultTrial) {
    let pipe = Ends.pipe()
    let reader = pipe.reader
    let (came, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let source = DispatchSource.makeReadSource(fileDescriptor: reader)
    source.setEventHandler {
      var bytes: (UInt64, UInt64) = (0, 0)
      let count = read(reader, &bytes, 1)
      trial.demand(count == 1, "a read source called its handler for nothing: \(count)")
      came.signal()
    }
    source.setCancelHandler { ended.signal() }
    source.activate()
    for _ in 0..<3 {
      trial.demand(write(pipe.writer, "x", 1) == 1, "write")
      if !trial.isSilenced(by: badDescriptor) { trial.await(came) }
    }
    trial.idle()
    source.cancel()
    trial.await(ended)
  }

  private static func writeSocket(_ trial: FaultTrial) {
    let sockets = Ends.sockets()
    let writer = sockets.writer
    _ = fcntl(writer, F_SETFL, O_NONBLOCK)
    _ = fcntl(sockets.reader, F_SETFL, O_NONBLOCK)
    let (came, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let source = DispatchSource.makeWriteSource(fileDescriptor: writer)
    source.setEventHandler {
      let bytes = [UInt8](repeating: 1, count: 64 << 10)
      while write(writer, bytes, bytes.count) > 0 {}
      came.signal()
    }
    source.setCancelHandler { ended.signal() }
    source.activate()
    var bytes = [UInt8](repeating: 0, count: 64 << 10)
    for _ in 0..<2 {
      if !trial.isSilenced(by: badDescriptor) { trial.await(came) }
      // The socket is full, so the next call comes only after this.
      while read(sockets.reader, &bytes, bytes.count) > 0 {}
    }
    trial.idle()
    source.cancel()
    trial.await(ended)
  }

  /// Two sources share the registration of a descriptor.
  private static func useBothDirections(_ trial: FaultTrial) {
    let sockets = Ends.sockets()
    let here = sockets.writer
    for end in [here, sockets.reader] { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
    var bytes = [UInt8](repeating: 0, count: 64 << 10)
    let (readable, writable, ended) = (
      DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
    )
    let reading = DispatchSource.makeReadSource(fileDescriptor: here)
    let writing = DispatchSource.makeWriteSource(fileDescriptor: here)
    reading.setEventHandler {
      var byte: UInt8 = 0
      _ = recv(here, &byte, 1, Int32(MSG_DONTWAIT))
      readable.signal()
    }
    writing.setEventHandler {
      let bytes = [UInt8](repeating: 1, count: 64 << 10)
      while write(here, bytes, bytes.count) > 0 {}
      writable.signal()
    }
    for source in [reading as any DispatchSourceProtocol, writing] {
      source.setCancelHandler { ended.signal() }
      source.activate()
    }
    for _ in 0..<2 {
      trial.demand(write(sockets.reader, "x", 1) == 1, "write")
      if trial.isSilenced(by: badDescriptor) { break }
      trial.await(readable)
      trial.await(writable)
      while read(sockets.reader, &bytes, bytes.count) > 0 {}
    }
    trial.idle()
    reading.cancel()
    writing.cancel()
    for _ in 0..<2 { trial.await(ended) }
  }

  // MARK: Files, processes, signals, memory

  private static func watchFile(_ trial: FaultTrial) {
    let file = TemporaryFile()
    observe(trial, file.descriptor, .all) { expect in
      expect(.write) { _ = pwrite(file.descriptor, "x", 1, 0) }
      expect(.delete) { unlink(file.path) }
    }
  }

  private static func watchDirectory(_ trial: FaultTrial) {
    let directory = TemporaryDirectory()
    let descriptor = open(directory.path, O_RDONLY | O_CLOEXEC)
    defer { close(descriptor) }
    observe(trial, descriptor, [.write, .delete]) { expect in
      expect(.write) { close(open(directory.path + "/x", O_CREAT | O_WRONLY, 0o600)) }
      expect(.delete) {
        unlink(directory.path + "/x")
        rmdir(directory.path)
      }
    }
  }

  private static func observe(
    _ trial: FaultTrial, _ descriptor: Int32, _ mask: DispatchSource.FileSystemEvent,
    _ body: ((DispatchSource.FileSystemEvent, () -> Void) -> Void) -> Void
  ) {
    let (came, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let seen = Shared(DispatchSource.FileSystemEvent())
    let source = DispatchSource.makeFileSystemObjectSource(fileDescriptor: descriptor, eventMask: mask)
    source.setEventHandler {
      let data = source.data
      seen.change { $0.formUnion(data) }
      came.signal()
    }
    source.setCancelHandler { ended.signal() }
    source.setRegistrationHandler { came.signal() }
    source.activate()
    trial.await(came)
    body { events, action in
      seen.change { $0 = [] }
      action()
      while !seen.value.isSuperset(of: events), !trial.isSilenced(by: unknownFile) {
        trial.await(came)
      }
    }
    trial.idle()
    source.cancel()
    trial.await(ended)
  }

  private static func spawn(_ arguments: [String]) -> pid_t {
    var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var process: pid_t = 0
    return posix_spawn(&process, arguments[0], nil, nil, &words, environ) == 0 ? process : -1
  }

  private static func watchProcess(_ trial: FaultTrial) {
    let (came, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let process = spawn(["/bin/sh", "-c", "read x"])
    let source = DispatchSource.makeProcessSource(identifier: process, eventMask: .exit)
    source.setEventHandler { came.signal() }
    source.setCancelHandler { ended.signal() }
    source.setRegistrationHandler { came.signal() }
    source.activate()
    trial.await(came)
    trial.idle()
    kill(process, SIGKILL)
    // ESRCH: the kernel says that there is no such process, which is taken for its end.
    trial.await(came)
    var status: Int32 = 0
    waitpid(process, &status, 0)
    source.cancel()
    trial.await(ended)
  }

  /// The kernel may refuse its announcements, which is reported at creation.
  private static func watchForks(_ trial: FaultTrial) {
    guard case .success(let source) = DispatchSource.makeProcess(getpid(), .fork, nil) else { return }
    let (came, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    source.setEventHandler { came.signal() }
    source.setCancelHandler { ended.signal() }
    source.activate()
    let process = spawn(["/bin/true"])
    if !trial.isSilenced(by: badDescriptor) { trial.await(came) }
    var status: Int32 = 0
    waitpid(process, &status, 0)
    trial.idle()
    source.cancel()
    trial.await(ended)
  }

  private static func watchSignal(_ trial: FaultTrial) {
    // Without a source the signal is ignored, and every thread of the program blocks it.
    signal(SIGUSR1, SIG_IGN)
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGUSR1)
    pthread_sigmask(SIG_BLOCK, &set, nil)
    let (came, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let source = DispatchSource.makeSignalSource(signal: SIGUSR1)
    source.setEventHandler { came.signal() }
    source.setCancelHandler { ended.signal() }
    source.setRegistrationHandler { came.signal() }
    source.activate()
    trial.await(came)
    for _ in 0..<2 where trial.refusal?.call != .signalAction {
      kill(getpid(), SIGUSR1)
      trial.await(came)
    }
    trial.idle()
    source.cancel()
    trial.await(ended)
  }

  /// A source with the kernel's notices, and one that reads.
  private static func watchMemory(_ trial: FaultTrial) {
    let root = TemporaryDirectory()
    root.write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 20 kB\n")
    let reading = MemoryPressureBackend(
      mask: .all, gauge: MemoryGauge(root: root.path), pause: 2_000_000, openTriggers: { nil })
    guard case .success(let noticing) = MemoryPressureBackend.make(mask: .all) else {
      trial.fail("no backend")
    }
    let (came, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let sources = [reading, noticing].map { DispatchSource(memoryPressure: $0, .all, nil) }
    sources[0].setEventHandler { came.signal() }
    for source in sources {
      source.setCancelHandler { ended.signal() }
      source.activate()
    }
    trial.await(came)
    root.write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 900 kB\n")
    trial.await(came)
    for source in sources { source.cancel() }
    for _ in sources { trial.await(ended) }
    trial.idle()
  }

  // MARK: Channels

  /// The calls of an operation's handler: the last error, and the bytes.
  private final class Outcome: Sendable {
    let ended = DispatchSemaphore(value: 0)
    let state = Shared<(error: Int32, bytes: [UInt8])>((0, []))

    var handler: (Bool, DispatchData?, Int32) -> Void {
      { [self] isLast, data, error in
        state.change {
          $0.error = error
          if let data { $0.bytes += Array(data) }
        }
        if isLast { ended.signal() }
      }
    }

    /// Waits for the last call, and demands that it had the bytes or an error.
    func demand(_ trial: FaultTrial, _ bytes: [UInt8], _ what: String) {
      trial.await(ended)
      trial.demand(trial.allows(error: state.value.error), "\(what) ended with error \(state.value.error)")
      let all = state.value.bytes
      if state.value.error == 0 {
        trial.demand(all == bytes, "\(what) had \(all.count) of \(bytes.count) bytes")
      }
    }
  }

  private static func channel(
    _ cleaned: DispatchSemaphore, _ make: (DispatchQueue, @escaping (Int32) -> Void) -> DispatchIO
  )
    -> DispatchIO
  {
    make(DispatchQueue(label: "cleanup")) { _ in cleaned.signal() }
  }

  private static func streamThroughPipe(_ trial: FaultTrial) {
    let pipe = Ends.pipe()
    let cleaned = DispatchSemaphore(value: 0)
    let bytes = pattern(200_000)
    let queue = DispatchQueue(label: "handlers")
    let writer = channel(cleaned) {
      DispatchIO(type: .stream, fileDescriptor: pipe.writer, queue: $0, cleanupHandler: $1)
    }
    let written = Outcome()
    writer.write(offset: 0, data: bytesData(bytes), queue: queue, ioHandler: written.handler)
    let reader = channel(cleaned) {
      DispatchIO(type: .stream, fileDescriptor: pipe.reader, queue: $0, cleanupHandler: $1)
    }
    let got = Outcome()
    reader.read(offset: 0, length: .max, queue: queue, ioHandler: got.handler)
    // If reading has failed, writing waits for a reader.
    DispatchQueue.global().async {
      got.ended.wait()
      if got.state.value.error != 0 { writer.close(flags: .stop) }
      got.ended.signal()
    }
    written.ended.wait()
    let error = written.state.value.error
    let isStopped = error == ECANCELED
    trial.demand(trial.allows(error: error) || isStopped, "the write ended with error \(error)")
    writer.close()
    trial.await(cleaned)
    pipe.closeWriter()
    got.ended.wait()
    trial.demand(
      trial.allows(error: got.state.value.error), "the read ended with error \(got.state.value.error)")
    if error == 0 && got.state.value.error == 0 {
      trial.demand(got.state.value.bytes == bytes, "the read had \(got.state.value.bytes.count) bytes")
    }
    reader.close()
    trial.await(cleaned)
    trial.idle()
  }

  private static func useFile(_ trial: FaultTrial, _ type: DispatchIO.StreamType, _ policy: FilePolicy) {
    let before = FilePolicy.current
    FilePolicy.current = policy
    defer { FilePolicy.current = before }
    let bytes = pattern(300_000)
    let file = TemporaryFile(bytes)
    let cleaned = DispatchSemaphore(value: 0)
    let queue = DispatchQueue(label: "handlers")
    let io = channel(cleaned) {
      DispatchIO(type: type, fileDescriptor: file.descriptor, queue: $0, cleanupHandler: $1)
    }
    let (read, written) = (Outcome(), Outcome())
    io.read(offset: 0, length: bytes.count, queue: queue, ioHandler: read.handler)
    read.demand(trial, bytes, "the read")
    io.write(
      offset: off_t(bytes.count), data: bytesData([1, 2, 3]), queue: queue, ioHandler: written.handler)
    written.ended.wait()
    trial.demand(trial.allows(error: written.state.value.error), "the write")
    trial.idle()
    io.close()
    trial.await(cleaned)
    if trial.refusal == nil { trial.demand(file.bytes == bytes + [1, 2, 3], "the file is wrong") }
  }

  private static func usePath(_ trial: FaultTrial) {
    let bytes = pattern(100_000)
    let file = TemporaryFile(bytes)
    let cleaned = DispatchSemaphore(value: 0)
    let queue = DispatchQueue(label: "handlers")
    let io = channel(cleaned) { queue, cleanup in
      DispatchIO(
        type: .stream, path: file.path, oflag: O_RDONLY, mode: 0, queue: queue, cleanupHandler: cleanup)!
    }
    let read = Outcome()
    io.read(offset: 0, length: .max, queue: queue, ioHandler: read.handler)
    read.demand(trial, bytes, "the read")
    io.close()
    trial.await(cleaned)
    trial.idle()
  }
}

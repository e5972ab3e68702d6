import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  /// Events that could be lost, or reported twice, between a source and the kernel.
  @Suite("Sources and the kernel", .serialized)
  struct SourceKernelTests {
    @Test("S97 a timer that fired while it had no handler is not replayed when it gets one")
    func firedUnheard() {
      let queue = DispatchQueue(label: "timers")
      let reports = Reports()
      let once = DispatchSource.makeTimerSource(queue: queue)
      let timer = DispatchSource.makeTimerSource(queue: queue)
      let start = DispatchTime.now()
      once.schedule(deadline: start)
      timer.schedule(deadline: start, repeating: .milliseconds(200))
      once.activate()
      timer.activate()
      // Later timers of the same queue have been handled, so both have fired, without a handler.
      let later = DispatchSemaphore(value: 0)
      queue.asyncAfter(deadline: start + .milliseconds(450)) { later.signal() }
      #expect(comes(later))
      once.setEventHandler { reports.note(1000) }
      timer.setEventHandler { reports.note(timer.data) }
      #expect(reports.comes(1))
      timer.cancel()
      queue.sync {}
      // The count is one unless the machine slept through several intervals.
      let elapsed = DispatchTime.now().uptimeNanoseconds - start.uptimeNanoseconds
      let first = reports.all[0]
      #expect(first == 1 || elapsed > 800_000_000 && first < 1000)
      #expect(!reports.all.contains(1000))
      once.cancel()
    }

    /// Calls of the signal handler, which cannot capture.
    private static let handled = Tally()

    @Test(
      "S112 a delivery that an earlier handler unblocks while it runs is counted and handled")
    func letIn() {
      // A real-time signal: no other code uses it.
      let signal: Int32 = 39
      let former = Glibc.signal(signal) { signal in
        guard SourceKernelTests.handled.add() == 1 else { return }
        unblock(signal)
        raise(signal)
      }
      let total = Shared<UInt>(0)
      let came = DispatchSemaphore(value: 0)
      let source = DispatchSource.makeSignalSource(signal: signal, queue: DispatchQueue(label: "signals"))
      source.setEventHandler {
        total.change { $0 += source.data }
        came.signal()
      }
      source.activate()
      let ended = onThreads(1) { _ in
        unblock(signal)
        raise(signal)
      }
      #expect(ended)
      #expect(Self.handled.value == 2)
      while total.value < 2 { guard comes(came) else { break } }
      #expect(total.value == 2)
      source.setCancelHandler { came.signal() }
      source.cancel()
      #expect(comes(came))
      Glibc.signal(signal, former)
    }

    /// Deliveries of the second signal while the handler of the first one ran, and after it.
    private static let (inside, late) = (Tally(), Tally())
    private static let (entered, left) = (Tally(), Tally())

    @Test(
      "S113 the previous handler keeps the signals that it blocks",
      .enabled(if: !Sanitizer.isThread, "it holds handlers back"))
    func maskOfPrevious() throws {
      let (signal, other): (Int32, Int32) = (41, 42)
      let formerOther = Glibc.signal(other) { _ in
        let isInside = SourceKernelTests.entered.value > SourceKernelTests.left.value
        _ = (isInside ? SourceKernelTests.inside : SourceKernelTests.late).add()
      }
      var action = sigaction()
      action.__sigaction_handler.sa_handler = { _ in
        SourceKernelTests.entered.add()
        raise(42)
        SourceKernelTests.left.add()
      }
      sigaddset(&action.sa_mask, other)
      var former = sigaction()
      sigaction(signal, &action, &former)
      let source = observe(signal)
      let ended = onThreads(1) { _ in
        unblock(signal)
        unblock(other)
        raise(signal)
      }
      #expect(ended)
      #expect((Self.inside.value, Self.late.value) == (0, 1))
      source.cancel()
      sigaction(signal, &former, nil)
      Glibc.signal(other, formerOther)
    }

    private static let once = Tally()

    @Test("S113 the previous handler keeps its flags: calls are interrupted, and it is called once")
    func flagsOfPrevious() throws {
      let signal: Int32 = 43
      var action = sigaction()
      action.__sigaction_handler.sa_handler = { _ in _ = SourceKernelTests.once.add() }
      action.sa_flags = Int32(bitPattern: UInt32(SA_RESETHAND))
      var former = sigaction()
      sigaction(signal, &action, &former)
      let source = observe(signal)
      var present = sigaction()
      sigaction(signal, nil, &present)
      #expect(present.sa_flags & SA_RESTART == 0)
      let ended = onThreads(1) { _ in
        unblock(signal)
        raise(signal)
        raise(signal)
      }
      #expect(ended)
      #expect(Self.once.value == 1)
      source.cancel()
      sigaction(signal, &former, nil)
    }

    @Test("S113 an ignored signal is not called, whatever its flags")
    func ignoredWithInformation() throws {
      let signal: Int32 = 44
      var action = sigaction()
      action.__sigaction_handler.sa_handler = SIG_IGN
      action.sa_flags = SA_SIGINFO
      var former = sigaction()
      sigaction(signal, &action, &former)
      let source = observe(signal)
      var present = sigaction()
      sigaction(signal, nil, &present)
      #expect(present.sa_flags & SA_RESTART != 0)
      let ended = onThreads(1) { _ in
        unblock(signal)
        raise(signal)
      }
      #expect(ended)
      source.cancel()
      sigaction(signal, &former, nil)
    }

    /// A source whose handler is installed.
    private func observe(_ signal: Int32) -> any DispatchSourceSignal {
      let registered = DispatchSemaphore(value: 0)
      let source = DispatchSource.makeSignalSource(signal: signal)
      source.setEventHandler {}
      source.setRegistrationHandler { registered.signal() }
      source.activate()
      #expect(comes(registered))
      return source
    }

    @Test("S97, S108 bytes that a new writer writes while there is no handler are reported to the next one")
    func newWriterUnheard() {
      let directory = TemporaryDirectory()
      let name = "\(directory.path)/pipe"
      #expect(mkfifo(name, 0o600) == 0)
      defer { withExtendedLifetime(directory) {} }
      let reader = open(name, O_RDONLY | O_NONBLOCK)
      var writer = open(name, O_WRONLY | O_NONBLOCK)
      #expect(reader >= 0 && writer >= 0)
      let called = DispatchSemaphore(value: 0)
      let queue = DispatchQueue(label: "reader")
      let source = DispatchSource.makeReadSource(fileDescriptor: reader, queue: queue)
      source.setEventHandler { called.signal() }
      source.activate()
      close(writer)
      #expect(comes(called))
      source.setEventHandler(handler: nil)
      writer = open(name, O_WRONLY | O_NONBLOCK)
      #expect(write(writer, "x", 1) == 1)
      // Once another pipe's events have been reported and the queue is idle, the event has been consumed.
      let (others, otherWriter) = Self.pipe()
      let other = DispatchSource.makeReadSource(fileDescriptor: others, queue: queue)
      other.setEventHandler {
        Self.take(others)
        called.signal()
      }
      other.activate()
      for _ in 0..<3 {
        #expect(write(otherWriter, "x", 1) == 1)
        #expect(comes(called))
      }
      queue.sync {}
      source.setEventHandler {
        Self.take(reader)
        called.signal()
      }
      #expect(comes(called))
      for source in [source, other] as [any DispatchSourceProtocol] {
        source.setCancelHandler { called.signal() }
        source.cancel()
        #expect(comes(called))
      }
      for descriptor in [reader, writer, others, otherWriter] { close(descriptor) }
    }

    private static func pipe() -> (reader: Int32, writer: Int32) {
      var ends: [Int32] = [0, 0]
      #expect(Glibc.pipe(&ends) == 0)
      return (ends[0], ends[1])
    }

    private static func take(_ descriptor: Int32) {
      var bytes = [UInt8](repeating: 0, count: 16)
      #expect(read(descriptor, &bytes, bytes.count) > 0)
    }

    @Test(
      "S109, S111 a read source that waits for a new writer is notified after another source of its pipe has gone"
    )
    func newWriter() {
      let directory = TemporaryDirectory()
      let name = "\(directory.path)/pipe"
      #expect(mkfifo(name, 0o600) == 0)
      defer { withExtendedLifetime(directory) {} }
      let reader = open(name, O_RDONLY | O_NONBLOCK)
      var writer = open(name, O_WRONLY | O_NONBLOCK)
      #expect(reader >= 0 && writer >= 0)
      let ended = DispatchSemaphore(value: 0)
      let bytes = DispatchSemaphore(value: 0)
      let waiting = DispatchSource.makeReadSource(
        fileDescriptor: reader, queue: DispatchQueue(label: "waiting"))
      waiting.setEventHandler {
        guard waiting.data > 0 else {
          _ = ended.signal()
          return
        }
        var buffer = [UInt8](repeating: 0, count: 16)
        #expect(read(reader, &buffer, 16) == 1)
        bytes.signal()
      }
      waiting.activate()
      close(writer)
      #expect(comes(ended))
      let (told, goOn, gone) = (
        DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
      )
      let other = DispatchSource.makeReadSource(fileDescriptor: reader, queue: DispatchQueue(label: "other"))
      other.setEventHandler {
        told.signal()
        #expect(comes(goOn))
      }
      other.setCancelHandler { gone.signal() }
      other.activate()
      #expect(comes(told))
      // It never asks for more.
      other.cancel()
      writer = open(name, O_WRONLY | O_NONBLOCK)
      #expect(write(writer, "x", 1) == 1)
      #expect(comes(bytes))
      goOn.signal()
      #expect(comes(gone))
      waiting.setCancelHandler { gone.signal() }
      waiting.cancel()
      #expect(comes(gone))
      close(writer)
      close(reader)
    }

    @Test("S112 the thread that takes signals has the process's nice value, whichever thread makes it")
    func nicenessOfTaker() async {
      await #expect(processExitsWith: .success) { takerIsMade(by: .background) }
      await #expect(processExitsWith: .success) { takerIsMade(by: .userInteractive) }
      // The address sanitizer's leak search traces the process at its end. After setuid it reports a thread that it
      // cannot suspend, and one run ended by SIGKILL there, for an unknown reason.
      if Sanitizer.name == "address" { return }
      await #expect(processExitsWith: .success) {
        // Without the right to raise threads.
        if geteuid() == 0 { #expect(setuid(65534) == 0) }
        takerIsMade(by: .background)
      }
    }
  }
}

/// A first signal source, activated in an item of a given class.
private func takerIsMade(by qosClass: DispatchQoS.QoSClass) {
  // SAFETY: only the item uses it once it has a handler.
  nonisolated(unsafe) let source = DispatchSource.makeSignalSource(signal: SIGUSR2)
  source.setEventHandler {}
  DispatchQueue.global(qos: qosClass).async { source.activate() }
  let found = Shared<Int32?>(nil)
  #expect(
    awaitValue {
      let nice = nice(ofThreadNamed: "concourse-sig")
      found.change { $0 = nice }
      return nice != nil
    })
  #expect(found.value == threadNice())
  withExtendedLifetime(source) {}
}

private func nice(ofThreadNamed name: String) -> Int32? {
  guard let directory = opendir("/proc/self/task") else { return nil }
  defer { closedir(directory) }
  while let entry = readdir(directory) {
    let id = withUnsafePointer(to: &entry.pointee.d_name) { name in
      name.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
    }
    guard let number = id_t(id), let file = fopen("/proc/self/task/\(id)/comm", "re") else { continue }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 32)
    guard fgets(&line, 32, file) != nil else { continue }
    let bytes = line.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }
    if String(decoding: bytes, as: UTF8.self) == name {
      return getpriority(__priority_which_t(PRIO_PROCESS.rawValue), number)
    }
  }
  return nil
}

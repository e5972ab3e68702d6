import CConcourse
import Glibc
import Testing

@testable import ConcourseRuntime

extension Crash {
  /// The flight recorder of a process leaves a file if the process does not end by itself.
  @Suite("Flight recorder")
  struct FlightRecorderTests {
    @Test("a trap leaves the last events of each thread")
    func trap() async throws {
      let folder = try RecorderFolder("trap")
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        RecorderFolder.begin("trap", "100")
        let queue = DispatchQueue(label: "flight.trap")
        for _ in 0..<1000 { queue.async {} }
        queue.async {
          // The test's thread sleeps below.
          let isAsleep = awaitValue {
            RecordedMemory.ofProcess()?.events.contains { $0.event == .waitBegan } == true
          }
          if isAsleep { DispatchGroup().leave() }
        }
        awaitDeath()
      }
      end.says("leave() on a group that is empty")
      let memory = try #require(folder.recording())
      #expect(memory.header.ring_capacity == 128)
      #expect(memory.rings.contains { $0.head > 128 })
      let last = try #require(memory.events(of: "flight.trap").last { $0.event != .submitted })
      #expect(last.event == .started)
      #expect(memory.events.last { $0.event == .waitBegan }?.node == UInt(Recording.Wait.semaphore.rawValue))
    }

    @Test("a queue on which threads only wait has a name, and an empty setting is none")
    func waits() async throws {
      let folder = try RecorderFolder("waits")
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        setenv("CONCOURSE_RECORDER_PARENT", "", 1)
        RecorderFolder.begin("waits", "100")
        let queues = [DispatchQueue(label: "flight.a"), DispatchQueue(label: "flight.b")]
        let both = DispatchGroup()
        for _ in queues { both.enter() }
        for index in queues.indices {
          startThread {
            queues[index].sync {
              both.leave()
              both.wait()
              queues[1 - index].sync {}
            }
          }
        }
        awaitDeath()
      }
      let spoken = String(decoding: end?.standardErrorContent ?? [], as: UTF8.self)
      #expect(spoken.contains("deadlock: 2 threads"), "\(spoken)")
      let memory = try #require(folder.recording())
      for label in ["flight.a", "flight.b"] {
        #expect(memory.events.contains { $0.event == .waitBegan && memory.names[$0.object] == label })
      }
    }

    @Test("a process that is killed leaves its events")
    func kill() async throws {
      let folder = try RecorderFolder("kill")
      await #expect(processExitsWith: .signal(SIGKILL)) {
        RecorderFolder.begin("kill", "5000")
        let queue = DispatchQueue(label: "flight.kill", attributes: .concurrent)
        for _ in 0..<10 { queue.async {} }
        queue.sync(flags: .barrier) {}
        Glibc.kill(getpid(), SIGKILL)
      }
      let memory = try #require(folder.recording())
      #expect(memory.header.ring_capacity == 8192)
      #expect(memory.events(of: "flight.kill").map(\.event).filter { $0 == .ended }.count == 10)
    }

    @Test("a process that exits leaves nothing, and a child that it forked leaves its file alone")
    func exit() async throws {
      let folder = try RecorderFolder("exit")
      await #expect(processExitsWith: .exitCode(7)) {
        RecorderFolder.begin("exit", "100")
        let queue = DispatchQueue(label: "flight.exit")
        queue.async {}
        queue.sync {}
        let file = RecorderFolder.path("exit") + "/concourse-\(getpid()).recording"
        // Workers of this process may go on writing.
        let thread = CurrentThread.kernelID
        func head() -> UInt64? { RecordedMemory(path: file)?.rings.first { $0.thread == thread }?.head }
        let before = head()
        let status = inForkedChild {
          let wasOn = Recording.isOn
          // As a tool does that looks at the child.
          Recording.begin(until: .max)
          for _ in 0..<10 { Recording.threadParked() }
          // As `exit` does, without the address sanitizer's search for leaks: it does not see the parent's threads.
          RecordingMemory.removeFile()
          _exit(wasOn || concourse_recording_missed() != 10 ? 4 : 3)
        }
        // The child has neither removed the file nor written to it.
        Glibc.exit(status == 3 << 8 && before != nil && before == head() ? 7 : 8)
      }
      #expect(folder.recording() == nil)
    }

    @Test("a file beyond the limit of the process is not made")
    func limit() async throws {
      let folder = try RecorderFolder("limit")
      let end = await #expect(processExitsWith: .exitCode(0), observing: [\.standardErrorContent]) {
        RecorderFolder.begin("limit", "100")
        // The runner may have blocked or ignored it.
        signal(SIGXFSZ, SIG_DFL)
        var signals = sigset_t()
        sigaddset(&signals, SIGXFSZ)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        var limit = rlimit(rlim_cur: 1 << 20, rlim_max: .max)
        setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
        DispatchQueue(label: "q").sync {}
        Glibc.exit(Recording.isOn ? 1 : 0)
      }
      let said = String(decoding: end?.standardErrorContent ?? [], as: UTF8.self)
      #expect(said.hasSuffix(".recording cannot be written: File too large\n"), "\(said)")
      #expect(folder.recording() == nil)
    }

    @Test(
      "when the file has no room for another ring, its thread loses its events, and the process goes on",
      .enabled(if: canPopulate, "needs Linux 5.14"))
    func full() async throws {
      let folder = try RecorderFolder("full")
      await #expect(processExitsWith: .signal(SIGKILL)) {
        RecorderFolder.begin("full", "100")
        // Makes the file, and the ring of this thread.
        DispatchQueue(label: "q").sync {}
        Recording.threadParked()
        // A mapping beyond the end of its file cannot be written, like one of a full disk.
        let header = try #require(concourse_recording_memory()).pointee
        let records = Int(header.ring_capacity) * MemoryLayout<concourse_event_record>.stride
        let file = RecorderFolder.path("full") + "/concourse-\(getpid()).recording"
        try #require(truncate(file, off_t(Int(header.records) + records)) == 0)
        let ended = DispatchSemaphore(value: 0)
        startThread {
          for _ in 0..<1000 { Recording.threadParked() }
          ended.signal()
        }
        #expect(comes(ended))
        Glibc.kill(getpid(), SIGKILL)
      }
      let memory = try #require(folder.recording())
      #expect(memory.header.ring_count == 2)
      #expect(memory.header.lost >= 1000)
    }

    @Test("the recorder keeps no descriptor, which the program could close and use for a file of its own")
    func descriptors() async throws {
      let folder = try RecorderFolder("descriptors")
      await #expect(processExitsWith: .exitCode(0)) {
        RecorderFolder.begin("descriptors", "100")
        Recording.beginIfAsked()
        Recording.threadParked()
        let isOpen = (0..<1024).contains { number in
          guard let target = realpath("/proc/self/fd/\(number)", nil) else { return false }
          defer { free(target) }
          return String(cString: target).hasSuffix(".recording")
        }
        Glibc.exit(concourse_recording_memory() == nil || isOpen ? 1 : 0)
      }
      #expect(folder.recording() == nil)
    }

    @Test("the file that an earlier process with the same number has left stays")
    func leftFile() async throws {
      let folder = try RecorderFolder("left")
      await #expect(processExitsWith: .signal(SIGKILL)) {
        RecorderFolder.begin("left", "100")
        close(
          open(RecorderFolder.path("left") + "/concourse-\(getpid()).recording", O_CREAT | O_WRONLY, 0o600))
        Recording.beginIfAsked()
        Recording.threadParked()
        Glibc.kill(getpid(), SIGKILL)
      }
      let recordings = folder.files.map { RecordedMemory(path: $0) }
      #expect(recordings.count == 2)
      #expect(recordings.compactMap { $0 }.map { $0.events.last?.event } == [.parked])
    }

    @Test("the file is removed at exit when the program has changed its folder")
    func changedFolder() async throws {
      let folder = try RecorderFolder("changed")
      await #expect(processExitsWith: .exitCode(0)) {
        RecorderFolder.begin("changed", "100")
        setenv("CONCOURSE_RECORDER_DIR", ".", 1)
        try #require(chdir(RecorderFolder.path("changed")) == 0)
        Recording.beginIfAsked()
        try #require(chdir("/") == 0)
        Glibc.exit(concourse_recording_memory() == nil ? 1 : 0)
      }
      #expect(folder.files.isEmpty)
    }

    @Test("only the child of the process that is named as its parent records")
    func parent() async throws {
      let folder = try RecorderFolder("parent")
      await #expect(processExitsWith: .exitCode(0)) {
        RecorderFolder.begin("parent", "100")
        setenv("CONCOURSE_RECORDER_PARENT", "\(getpid())", 1)
        Recording.beginIfAsked()
        let isOther = concourse_recording_memory() == nil
        setenv("CONCOURSE_RECORDER_PARENT", "\(getppid())", 1)
        Recording.beginIfAsked()
        Glibc.exit(isOther && concourse_recording_memory() != nil ? 0 : 1)
      }
      #expect(folder.files.isEmpty)
    }

    @Test("a number that is none, and a folder that cannot be written, are said in one line")
    func refusals() async throws {
      let number = await #expect(processExitsWith: .exitCode(0), observing: [\.standardErrorContent]) {
        RecorderFolder.begin("none", "many")
        DispatchQueue(label: "q").sync {}
        Glibc.exit(Recording.isOn ? 1 : 0)
      }
      #expect(
        String(decoding: number?.standardErrorContent ?? [], as: UTF8.self)
          == "Concourse: CONCOURSE_RECORDER is \"many\"; it must be a number of events\n")
      let folder = await #expect(processExitsWith: .exitCode(0), observing: [\.standardErrorContent]) {
        RecorderFolder.begin("missing/folder", "100")
        DispatchQueue(label: "q").sync {}
        Glibc.exit(Recording.isOn ? 1 : 0)
      }
      let said = String(decoding: folder?.standardErrorContent ?? [], as: UTF8.self)
      #expect(
        said.hasPrefix("Concourse: CONCOURSE_RECORDER: ") && said.hasSuffix(": No such file or directory\n"))
    }
  }
}

/// Whether the kernel knows `MADV_POPULATE_WRITE`.
private let canPopulate: Bool = {
  let page = mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
  defer { munmap(page, 4096) }
  return madvise(page, 4096, 23) == 0
}()

/// A folder for the file of an exit test's process, whose parent finds it by its own process id.
private final class RecorderFolder {
  let path: String

  init(_ name: String) throws {
    path = Self.path(name, getpid())
    // Of an ended process with the same number.
    for name in Self.names(in: path) { unlink(path + "/" + name) }
    try #require(mkdir(path, 0o700) == 0 || errno == EEXIST)
  }

  deinit {
    for name in Self.names(in: path) { unlink(path + "/" + name) }
    rmdir(path)
  }

  static func path(_ name: String, _ process: pid_t = getppid()) -> String {
    "/tmp/concourse-flight-\(process)-\(name)"
  }

  /// Called in the exit test's process before it uses the runtime.
  static func begin(_ name: String, _ number: String) {
    setenv("CONCOURSE_RECORDER", number, 1)
    setenv("CONCOURSE_RECORDER_DIR", path(name), 1)
  }

  private static func names(in path: String) -> [String] {
    guard let folder = opendir(path) else { return [] }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) {
        String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name.hasPrefix("concourse-") { names.append(name) }
    }
    return names
  }

  var files: [String] { Self.names(in: path).map { path + "/" + $0 } }

  /// The only recording in the folder.
  func recording() -> RecordedMemory? { files.first.flatMap { RecordedMemory(path: $0) } }
}

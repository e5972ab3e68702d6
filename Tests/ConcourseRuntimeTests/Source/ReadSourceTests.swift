import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  /// What read sources count, and what they take for the end.
  @Suite("What read sources report", .serialized)
  struct ReadSourceTests {
    /// The first report of a read source on the descriptor, as from a source that is cancelled then.
    private static func firstReport(_ descriptor: Int32) -> UInt? {
      let reports = Reports()
      let (came, cancelled) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      let source = DispatchSource.makeReadSource(
        fileDescriptor: descriptor, queue: DispatchQueue(label: "reader"))
      source.setEventHandler { [unowned source = source as! DispatchSource] in
        reports.note(source.core.data)
        source.cancel()
        came.signal()
      }
      source.setCancelHandler { cancelled.signal() }
      source.activate()
      guard comes(came) else { return nil }
      #expect(comes(cancelled))
      return reports.all.first
    }

    private static let gibi = 1 << 30

    @Test(
      "S108, S109 files with more bytes than an int counts, and positions past the end",
      arguments: [
        (3 * gibi, 0), (4 * gibi, 0), (5 * gibi + 7, gibi), (100, 100), (100, 104), (100, 3 * gibi),
      ])
    func longFile(size: Int, position: Int) {
      let file = TemporaryFile()
      #expect(ftruncate(file.descriptor, size) == 0)
      #expect(lseek(file.descriptor, position, SEEK_SET) == position)
      #expect(Self.firstReport(file.descriptor) == UInt(max(0, size - position)))
    }

    @Test("S109 bytes that a writer leaves between the count and the question whether it has gone")
    func lastBytes() {
      defer { SystemScript.clear() }
      let pipe = Ends.pipe()
      pipe.send("last")
      pipe.closeWriter()
      // As if the writer had written and closed after the count.
      let counts = Tally()
      SystemScript.redirect(.deviceControl) { call in counts.add() == 1 ? 0 : call() }
      #expect(Self.firstReport(pipe.reader) == 4)
    }

    @Test("S108 an empty datagram is something to read, not the end")
    func emptyDatagram() {
      var ends: [Int32] = [0, 0]
      #expect(socketpair(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0, &ends) == 0)
      defer { for end in ends { close(end) } }
      #expect(send(ends[1], "", 0, 0) == 0)
      #expect(Self.firstReport(ends[0]) == 1)
    }

    @Test(
      "S109 the end is reported once by a pipe, and until the cancellation by a socket whose peer has closed")
    func ends() {
      let sockets = Ends.sockets()
      sockets.closeWriter()
      let (calls, cancelled) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      let source = DispatchSource.makeReadSource(
        fileDescriptor: sockets.reader, queue: DispatchQueue(label: "reader"))
      source.setEventHandler { calls.signal() }
      source.setCancelHandler { cancelled.signal() }
      source.activate()
      for _ in 0..<3 { #expect(comes(calls)) }
      source.cancel()
      #expect(comes(cancelled))
    }

    @Test("S109 a terminal whose other side has been closed reports its end once", arguments: [false, true])
    func hungUpTerminal(fromTheStart: Bool) {
      let (other, terminal) = Self.terminal()
      defer { close(terminal) }
      if fromTheStart { close(other) }
      let reader = ReadingSource(terminal, hub: .shared)
      defer { reader.cancel() }
      if !fromTheStart {
        #expect(write(other, "line\n", 5) == 5)
        reader.reports([5])
        close(other)
      }
      let expected: [UInt] = fromTheStart ? [0] : [5, 0]
      reader.reports(expected)
      // Another report would come with the kernel's next event.
      let pipe = Ends.pipe()
      for _ in 0..<3 {
        pipe.send("x")
        #expect(Self.firstReport(pipe.reader) != nil)
      }
      reader.reports(expected)
    }

    /// A pseudoterminal: its leader and its follower.
    private static func terminal() -> (leader: Int32, follower: Int32) {
      // `posix_openpt` and its companions, which the module of the C library does not show.
      let (setLock, getNumber): (UInt, UInt) = (0x4004_5431, 0x8004_5430)
      let leader = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
      var (isLocked, number): (Int32, UInt32) = (0, 0)
      #expect(ioctl(leader, setLock, &isLocked) == 0 && ioctl(leader, getNumber, &number) == 0)
      return (leader, open("/dev/pts/\(number)", O_RDWR | O_NOCTTY | O_CLOEXEC))
    }

    // MARK: Files that grow

    @Test(
      "S108, S109 a file reports its end once and then what is appended, without spinning",
      arguments: FileSystemSourceTests.Road.allCases)
    func growing(road: FileSystemSourceTests.Road) {
      defer { SystemScript.clear() }
      road.prepare()
      let directory = TemporaryDirectory()
      let (file, writer) = (directory.open("file"), directory.open("file"))
      defer { for descriptor in [file, writer] { close(descriptor) } }
      let hub = InotifyHub()
      defer { hub.close() }
      let reader = ReadingSource(file, hub: hub)
      var expected: [UInt] = [0]
      reader.reports(expected)
      for count in 1...5 {
        write(writer, "lines", count)
        expected += [UInt(count), 0]
        reader.reports(expected)
      }
      if road == .notices { #expect(awaitValue { hub.watchCount == 1 }) }
      reader.cancel()
      #expect(hub.watchCount == 0)
      write(writer, "after", 5)
      reader.source.core.currentTarget.sync {}
      reader.reports(expected)
    }

    @Test("S109 a suspended source does not watch a file to which others write, and misses nothing")
    func suspended() {
      let directory = TemporaryDirectory()
      let (file, writer) = (directory.open("file"), directory.open("file"))
      defer { for descriptor in [file, writer] { close(descriptor) } }
      let hub = InotifyHub()
      defer { hub.close() }
      let reader = ReadingSource(file, hub: hub)
      defer { reader.cancel() }
      var expected: [UInt] = [0]
      for _ in 0..<3 {
        reader.reports(expected)
        #expect(awaitValue { hub.watchCount == 1 })
        reader.source.suspend()
        var count: UInt = 0
        // The first notice ends the wait, the second the watch. The kernel may make one notice of several writes.
        let isGivenUp = awaitValue {
          write(writer, "x", 1)
          count += 1
          return hub.watchCount == 0
        }
        #expect(isGivenUp)
        reader.reports(expected)
        reader.source.resume()
        expected += [count, 0]
      }
      reader.reports(expected)
    }

    @Test("S109 a file that is cut and grows again", arguments: FileSystemSourceTests.Road.allCases)
    func truncated(road: FileSystemSourceTests.Road) {
      defer { SystemScript.clear() }
      road.prepare()
      let file = TemporaryFile(pattern(10))
      let hub = InotifyHub()
      defer { hub.close() }
      let reader = ReadingSource(file.descriptor, hub: hub)
      defer { reader.cancel() }
      reader.reports([10, 0])
      #expect(truncate(file.path, 3) == 0)
      #expect(truncate(file.path, 9) == 0)
      // Beyond the position, which is 10.
      #expect(truncate(file.path, 14) == 0)
      reader.reports([10, 0, 4, 0])
      // The client goes back to the start, which the source sees at the next write.
      #expect(truncate(file.path, 5) == 0)
      #expect(lseek(file.descriptor, 0, SEEK_SET) == 0)
      #expect(pwrite(file.descriptor, "x", 1, 0) == 1)
      reader.reports([10, 0, 4, 0, 5, 0])
    }

    @Test("S109 a file without a name grows", arguments: FileSystemSourceTests.Road.allCases, [false, true])
    func nameless(road: FileSystemSourceTests.Road, fromTheStart: Bool) {
      defer { SystemScript.clear() }
      road.prepare()
      let directory = TemporaryDirectory()
      let (file, writer) = (directory.open("file"), directory.open("file"))
      defer { for descriptor in [file, writer] { close(descriptor) } }
      if fromTheStart { unlink(directory.file("file")) }
      let hub = InotifyHub()
      defer { hub.close() }
      let reader = ReadingSource(file, hub: hub)
      defer { reader.cancel() }
      reader.reports([0])
      unlink(directory.file("file"))
      write(writer, "one", 3)
      reader.reports([0, 3, 0])
      write(writer, "four", 4)
      reader.reports([0, 3, 0, 4, 0])
    }

    @Test(
      "S108, S109 the kernel's own files are read to their end, which they report once",
      arguments: [
        "/proc/self/status", "/proc/self/mounts", "/proc/loadavg", "/sys/devices/system/cpu/possible",
      ])
    func kernelFile(path: String) {
      let file = open(path, O_RDONLY | O_CLOEXEC)
      defer { close(file) }
      let reader = ReadingSource(file, hub: .shared)
      defer { reader.cancel() }
      #expect(awaitValue { reader.reports.all.last == 0 })
      let reports = reader.reports.all
      // Byte by byte; the last 1 is for the read that finds the end.
      #expect(reports.count > 2 && reports.dropLast().allSatisfy { $0 == 1 })
      var byte: UInt8 = 0
      #expect(read(file, &byte, 1) == 0)
      #expect(lseek(file, 0, SEEK_CUR) == reports.count - 2)
      #expect(reader.reports.all == reports)
    }

    @Test(
      "S109 an empty file of the kernel's reports its end once", .enabled(if: access(noTimers, R_OK) == 0))
    func emptyKernelFile() {
      let file = open(noTimers, O_RDONLY | O_CLOEXEC)
      defer { close(file) }
      let reader = ReadingSource(file, hub: .shared)
      defer { reader.cancel() }
      #expect(awaitValue { reader.reports.all.count >= 2 })
      #expect(reader.reports.all == [1, 0])
    }

    @Test("S101, S109 a source of a file that waits for growth is released")
    func released() {
      let file = TemporaryFile()
      let hub = InotifyHub()
      defer { hub.close() }
      for road in FileSystemSourceTests.Road.allCases {
        defer { SystemScript.clear() }
        road.prepare()
        weak var backend: ReadBackend?
        do {
          let reader = ReadingSource(file.descriptor, hub: hub)
          reader.reports([0])
          backend = reader.backend
          #expect(backend != nil)
        }
        #expect(awaitValue { backend == nil })
        #expect(hub.watchCount == 0)
      }
    }

    @Test("S104 a file that the client closes too early is not watched for long")
    func closed() {
      let file = TemporaryFile()
      let hub = InotifyHub()
      defer { hub.close() }
      // A number that no other descriptor gets meanwhile.
      let early = fcntl(file.descriptor, F_DUPFD_CLOEXEC, 700)
      let reader = ReadingSource(early, hub: hub)
      reader.reports([0])
      #expect(awaitValue { hub.watchCount == 1 })
      close(early)
      write(file.descriptor, "late", 4)
      #expect(awaitValue { hub.watchCount == 0 })
      reader.cancel()
      reader.reports([0])
    }
  }
}

/// A file in /proc that can be read, and is empty while the process has no POSIX timers. Not every kernel has it.
private let noTimers = "/proc/self/timers"

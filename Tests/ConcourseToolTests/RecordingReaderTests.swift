import Foundation
import Glibc
import Testing

@testable import ConcourseRecording
@testable import ConcourseTool

@Suite("Reading recordings")
struct RecordingReaderTests {
  private func read(_ bytes: [UInt8]) throws -> RecordedRun {
    let reader = try RecordingReader(BytesInMemory(bytes))
    reader.poll()
    return reader.recording()
  }

  @Test("events of all threads come in the order of time, in nanoseconds")
  func order() throws {
    let recording = try read(RecordingBuilder.sample.bytes)
    #expect(recording.process == 4711)
    #expect(recording.events.count == 10)
    #expect(recording.events.map(\.time) == recording.events.map(\.time).sorted())
    #expect(recording.events[1].time == RecordingBuilder.firstUptime + 100)
    #expect(recording.events.last?.time == RecordingBuilder.firstUptime + 550)
    #expect(recording.threads == [100: "main", 101: "worker"])
    #expect(recording.modules == [RecordedModule(base: 0x1000, path: "/bin/program")])
    #expect(recording.lost == 0)
    let labels = recording.namesByQueue
    #expect(recording.label(of: 0xA0, at: recording.start, labels) == "queue \"a\"\n")
    #expect(recording.label(of: 0xB0, at: recording.start, labels) == "queue 0xb0")
  }

  @Test("the later reading of both clocks counts, which is the reader's in the process itself")
  func clocks() throws {
    var builder = RecordingBuilder.sample
    // Two readings apart by less than they are off by.
    builder.latestUptime = RecordingBuilder.firstUptime + 10
    let reader = try RecordingReader(BytesInMemory(builder.bytes))
    reader.poll()
    #expect(reader.recording().events.allSatisfy { $0.time <= RecordingBuilder.firstUptime + 10 })
    reader.clocks = (RecordingBuilder.firstTicks + 20_000_000, RecordingBuilder.firstUptime + 10_000_000)
    #expect(reader.recording().events.last?.time == RecordingBuilder.firstUptime + 550)
  }

  @Test("a full ring has lost its oldest events, and the one that may be being replaced")
  func loss() throws {
    var builder = RecordingBuilder()
    builder.lost = 5
    builder.rings = [
      .init(
        thread: 1,
        records: (0..<64).map { .init(ticks: RecordingBuilder.firstTicks + $0, event: .parked, object: $0) },
        gone: 1000)
    ]
    let recording = try read(builder.bytes)
    #expect(recording.events.map(\.object) == Array(1..<64))
    #expect(recording.lost == 5 + 1000 + 1)
  }

  @Test("records that are replaced while they are read are discarded")
  func overtaken() throws {
    var builder = RecordingBuilder()
    let records = (0..<64).map { RecordingBuilder.Record(ticks: $0, event: .parked, object: $0) }
    builder.rings = [.init(thread: 1, records: Array(records[..<60]))]
    let bytes = BytesInMemory(builder.bytes)
    let reader = try RecordingReader(bytes)
    // While the reader copies the records, 24 more are written.
    var later = builder
    later.rings[0].gone = 20
    later.rings[0].records = (20..<84).map { .init(ticks: $0, event: .parked, object: $0) }
    bytes.beforeRead = { bytes, offset in
      if offset >= 16384 { bytes.bytes = later.bytes }
    }
    reader.poll()
    #expect(reader.recording().events.map(\.object) == Array(21..<60))
    bytes.beforeRead = { _, _ in }
    reader.poll()
    #expect(reader.recording().events.map(\.object) == Array(21..<84))
    #expect(reader.recording().lost == 21)
  }

  @Test("records before a change of owner belong to the former one")
  func owners() throws {
    var builder = RecordingBuilder()
    builder.rings = [
      .init(
        thread: 9,
        records: [
          .init(ticks: 1, event: .parked), .init(ticks: 2, event: .threadBegan, object: 8, function: 7),
          .init(ticks: 3, event: .woken), .init(ticks: 4, event: .threadBegan, object: 9, function: 8),
          .init(ticks: 5, event: .parked),
        ])
    ]
    #expect(try read(builder.bytes).events.map(\.thread) == [7, 8, 8, 9, 9])
  }

  @Test("a ring that changes hands between two looks belongs to the former thread until then")
  func ownersOfParts() throws {
    var builder = RecordingBuilder()
    builder.rings = [
      .init(
        thread: 7,
        records: [.init(ticks: 1, event: .threadBegan, object: 7), .init(ticks: 2, event: .parked)])
    ]
    let bytes = BytesInMemory(builder.bytes)
    let reader = try RecordingReader(bytes)
    reader.poll()
    // The next thread has the ring, and has not written its first record.
    builder.rings[0].records.append(.init(ticks: 3, event: .woken))
    builder.rings[0].thread = 8
    bytes.bytes = builder.bytes
    reader.poll()
    builder.rings[0].records += [
      .init(ticks: 4, event: .threadBegan, object: 8, function: 7), .init(ticks: 5, event: .parked),
    ]
    bytes.bytes = builder.bytes
    #expect(reader.take().events.map(\.thread) == [7, 7, 7])
    reader.poll()
    #expect(reader.take().events.map(\.thread) == [8, 8])
    #expect(reader.recording().events.isEmpty)
  }

  @Test("a reader of a running process leaves out what was recorded before")
  func skipped() throws {
    var builder = RecordingBuilder.sample
    builder.lost = 5
    let bytes = BytesInMemory(builder.bytes)
    let reader = try RecordingReader(bytes)
    reader.skipPast()
    reader.poll()
    #expect(reader.recording().events.isEmpty && reader.recording().lost == 0)
    builder.lost = 7
    builder.rings[1].records.append(.init(ticks: 1, event: .parked))
    builder.rings.append(.init(thread: 102, records: [.init(ticks: 2, event: .threadBegan, object: 102)]))
    bytes.bytes = builder.bytes
    reader.poll()
    #expect(reader.recording().events.map(\.thread) == [101, 102])
    #expect(reader.recording().lost == 2)
  }

  @Test("a name that is not complete yet is read later")
  func unfinishedName() throws {
    var builder = RecordingBuilder.sample
    builder.names = [(0xA0, RecordingBuilder.firstTicks, "a"), (0xB0, RecordingBuilder.firstTicks + 2, "b")]
    let bytes = BytesInMemory(builder.bytes)
    let complete = 12288 + 25
    bytes.bytes[complete] = 0
    let reader = try RecordingReader(bytes)
    reader.poll()
    #expect(reader.recording().names.map(\.text) == ["b"])
    bytes.bytes[complete] = 1
    reader.poll()
    #expect(reader.recording().names.map(\.text) == ["a", "b"])
    // Once more: the times are converted only once.
    #expect(
      reader.recording().names.map(\.time) == [
        RecordingBuilder.firstUptime, RecordingBuilder.firstUptime + 1,
      ])
  }

  @Test("a queue in the memory of an older one has its own name")
  func reusedQueue() throws {
    var builder = RecordingBuilder.sample
    builder.names = [
      (0xA0, RecordingBuilder.firstTicks, "old"), (0xA0, RecordingBuilder.firstTicks + 550, "new"),
    ]
    let recording = try read(builder.bytes)
    let labels = recording.namesByQueue
    #expect(recording.label(of: 0xA0, at: RecordingBuilder.firstUptime + 250, labels) == "old")
    #expect(recording.label(of: 0xA0, at: RecordingBuilder.firstUptime + 300, labels) == "new")
  }

  @Test("a queue whose name had no room is not shown with the name of an older queue")
  func unnamed() throws {
    var builder = RecordingBuilder.sample
    builder.lostNames = 3
    builder.unnamed = [0xA0]
    builder.names[1].text = "b"
    let recording = try read(builder.bytes)
    let labels = recording.namesByQueue
    #expect(recording.label(of: 0xA0, at: recording.start, labels) == "queue 0xa0")
    #expect(recording.label(of: 0xB0, at: recording.start, labels) == "b")
    #expect(recording.losses == "; 3 queues have no name: there was no room")
    let reader = try RecordingReader(BytesInMemory(builder.bytes))
    reader.poll()
    #expect(reader.latestNames.map(\.text) == ["b"])
    var statistics = EventStatistics(start: recording.start)
    statistics.add(recording, before: .max)
    #expect(statistics.names.mapValues(\.text) == [0xB0: "b"])
  }

  @Test("what was read of a process that has ended stays")
  func ended() throws {
    let bytes = BytesInMemory(RecordingBuilder.sample.bytes)
    let reader = try RecordingReader(bytes)
    #expect(reader.poll())
    bytes.bytes = []
    #expect(!reader.poll())
    #expect(reader.recording().modules == [RecordedModule(base: 0x1000, path: "/bin/program")])
    #expect(reader.recording().events.count == 10)
  }

  @Test("impossible times, unknown events and records beyond the end of the file are counted and left out")
  func impossible() throws {
    var builder = RecordingBuilder.sample
    builder.hasTicks = false
    let last = builder.rings[0].records.count - 1
    builder.rings[0].records[last].ticks = .max
    var bytes = builder.bytes
    let recording = try read(bytes)
    #expect(recording.unreadable == 1 && recording.events.count == 9)
    for format in [TraceFormat.html, .json, .pftrace] { _ = try format.write(recording) { _ in "f" } }
    bytes.removeLast(bytes.count - 16384)
    let cut = try read(bytes)
    #expect(cut.events.isEmpty && cut.losses == "; 10 events cannot be read: the recording is damaged")
  }

  @Test("a process that has recorded for a year has its latest events")
  func longRecording() throws {
    var builder = RecordingBuilder.sample
    builder.hasTicks = false
    let year: UInt64 = 365 * 86400 * 1_000_000_000
    builder.latestUptime = RecordingBuilder.firstUptime + year
    builder.rings[0].records[0].ticks = builder.latestUptime
    let recording = try read(builder.bytes)
    #expect(recording.unreadable == 0 && recording.events.last?.time == builder.latestUptime)
  }

  @Test("damaged records are counted once, and stay counted in later parts")
  func damageOfParts() throws {
    var builder = RecordingBuilder.sample
    builder.hasTicks = false
    builder.rings[0].records[0].ticks = .max
    let bytes = BytesInMemory(builder.bytes)
    let reader = try RecordingReader(bytes)
    reader.poll()
    #expect(reader.take().lost == 1)
    #expect(reader.take().lost == 1)
    builder.rings[0].records.append(.init(ticks: .max, event: .parked))
    bytes.bytes = builder.bytes
    reader.poll()
    #expect(reader.take().lost == 2)
  }

  @Test("the text of a recording shows what each thread was in, and the last events")
  func text() throws {
    let text = RecordingText.text(try read(RecordingBuilder.sample.bytes)) { "f\($0)" }
    #expect(text.contains("Recording of process 4711 (program): 10 events of 2 threads in 550 ns\n"))
    #expect(text.contains("  101 worker          in f4128 on queue 0xb0, since 0 ns before the last event\n"))
    #expect(text.contains("  1       queue \"a\"?\n"))
    #expect(text.hasSuffix("0 ns      101     started    f4128 on queue 0xb0"))
  }

  @Test("concourse report reads a recording, and refuses what is none in one line")
  func report() throws {
    let fixture = try ReportFixture()
    let folder = try TemporaryFolder()
    let good = try folder.write(RecordingBuilder.sample.bytes, to: "good")
    let shown = try fixture.report(["--recording", good])
    #expect(
      shown.ending == .exit(0) && shown.text.hasPrefix("Recording of process 4711 (program): 10 events"))
    var other = RecordingBuilder.sample.bytes
    other[8] = 7
    var damaged = RecordingBuilder.sample.bytes
    damaged[16] = 65
    for (bytes, reason) in [
      (nil, " cannot be read: No such file or directory"),
      (Array("#!/bin/sh\n".utf8), ": not a recording of Concourse"),
      (other, ": made by another version of Concourse: layout 7, not 2"),
      (damaged, ": its header is damaged"),
      (RecordingBuilder().bytes, " has no events"),
    ] {
      let path = folder.path + "/bad"
      if let bytes { try folder.write(bytes, to: "bad") }
      let result = try fixture.report(["--recording=" + path])
      #expect(result.ending == .exit(125) && result.text.isEmpty)
      #expect(result.complaint == "concourse: \(path)\(reason)\n")
    }
  }

  @Test("a queue without a label is named by the function that made it, in reports and traces")
  func makers() throws {
    let fixture = try ReportFixture()
    let folder = try TemporaryFolder()
    let program = try fixture.spawn(
      fixture.waits, ["nameless"],
      environment: [
        "CONCOURSE_RECORDER=1000", "CONCOURSE_RECORDER_DIR=\(folder.path)", "CONCOURSE_RECORDER_KEEP=1",
      ])
    let path = "\(folder.path)/concourse-\(program.identifier).recording"
    #expect(try program.wait().ending == .exit(0))
    let shown = try fixture.report(["--recording", path]).text
    let trace = folder.path + "/trace.json"
    let traced = try fixture.spawn(fixture.command, ["trace", "--recording", path, "-o", trace]).wait()
    #expect(traced.ending == .exit(0), "\(traced.complaint)")
    let file = try #require(FileBytes(path: trace))
    let json = String(decoding: file.read(at: 0, count: Int(file.size)) ?? [], as: UTF8.self)
    for text in [shown, json] {
      #expect(text.contains("(made in Nameless.makeCache()"), "\(shown)")
      #expect(text.contains("(made in Nameless.makeLoader()"), "\(shown)")
      #expect(text.contains("com.example.named"))
    }
  }

  @Test(
    "the items of a Swift program that was built for the toolchain's Dispatch have the names of their closures",
    .enabled(if: getenv("CONCOURSE_SANITIZER") == nil))
  func closuresOfFinishedPrograms() throws {
    let fixture = try ReportFixture()
    let folder = try TemporaryFolder()
    let built = fixture.command.dropLastPart
    let finished = built + "/programs-on-incumbent"
    let program = try fixture.spawn(
      finished, ["--count", "3", "--seed", "302211495"],
      environment: [
        "LD_LIBRARY_PATH=\(built)", "CONCOURSE_RECORDER=10000", "CONCOURSE_RECORDER_DIR=\(folder.path)",
        "CONCOURSE_RECORDER_KEEP=1",
      ])
    #expect(try program.wait().ending == .exit(0))
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    let path = folder.path + "/" + (try #require(names.first))
    let trace = folder.path + "/trace.json"
    let traced = try fixture.spawn(fixture.command, ["trace", "--recording", path, "-o", trace]).wait()
    #expect(names.count == 1 && traced.ending == .exit(0), "\(names) \(traced.complaint)")
    let shown = String(decoding: try #require(FileContents.read(trace)), as: UTF8.self)
    #expect(shown.contains(#""cat":"item","name":"closure #1 in Executor.perform(_:)""#))
    #expect(!shown.contains("thunk") && !shown.contains("a closure"))
  }

  @Test(
    "a signal that ends the command ends the traced program, and the trace is written",
    arguments: [SIGTERM, SIGHUP])
  func termination(number: Int32) throws {
    let fixture = try ReportFixture()
    let folder = try TemporaryFolder()
    let trace = folder.path + "/trace.json"
    let program = try fixture.spawn(
      fixture.command, ["trace", "-o", trace, "--", fixture.waits, "busy"],
      environment: ["TMPDIR=\(folder.path)"])
    program.waitForOutput("ready")
    kill(program.identifier, number)
    let result = try program.wait()
    #expect(result.ending == .exit(128 + number), "\(result.complaint)")
    #expect(result.complaint.contains(" events"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["trace.json"])
  }

  @Test("the name of a task is put together from its parts, one of which may come later")
  func taskNames() throws {
    var builder = RecordingBuilder()
    builder.capacity = 4
    func part(_ task: UInt64, _ part: UInt64, _ text: String) -> RecordingBuilder.Record {
      let words = [text.utf8.prefix(8), text.utf8.dropFirst(8)].map { half in
        half.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      }
      return .init(
        ticks: RecordingBuilder.firstTicks, event: .taskName, node: task << 8 | part, object: words[0],
        function: words[1])
    }
    let first = [part(7, 0, "sixteen letters."), part(8, 1, "no beginning")]
    builder.rings = [.init(thread: 100, records: first)]
    let bytes = ChangingBytes(builder.bytes)
    let reader = try RecordingReader(bytes)
    reader.poll()
    #expect(reader.recording().tasks.isEmpty && reader.recording().events.isEmpty)
    builder.rings[0].records = first + [part(7, 0, "sixteen letters."), part(7, 1, " and more")]
    bytes.bytes = builder.bytes
    reader.poll()
    #expect(reader.recording().tasks == [7: "sixteen letters. and more"])
    #expect(reader.recording().events.isEmpty)
  }

  private final class ChangingBytes: RecordingBytes {
    var bytes: [UInt8]
    init(_ bytes: [UInt8]) { self.bytes = bytes }
    func read(at offset: UInt64, count: Int) -> [UInt8]? {
      BytesInMemory(bytes).read(at: offset, count: count)
    }
  }

  @Test("a trace has the priorities of jobs, and the names of tasks that have submitted an item")
  func jobs() throws {
    let fixture = try ReportFixture()
    let folder = try TemporaryFolder()
    let trace = folder.path + "/trace.json"
    let traced = try fixture.spawn(fixture.command, ["trace", "-o", trace, fixture.waits, "tasks"]).wait()
    #expect(traced.ending == .exit(0), "\(traced.complaint)")
    let file = try #require(FileBytes(path: trace))
    let json = String(decoding: file.read(at: 0, count: Int(file.size)) ?? [], as: UTF8.self)
    // 95 bytes at most, and no half of a character.
    let name = "fetch " + String(repeating: "é", count: 44)
    let item = #""cat":"item","name":"task \"\#(name)\" (high)""#
    for queue in ["com.example.tasks", "com.example.actor"] {
      #expect(json.split(separator: "\n").contains { $0.contains(item) && $0.contains(queue) }, "\(json)")
    }
    #expect(json.contains(#" (background)""#))
  }

  @Test("handlers of channels and operations, and blocks of sources, are named by the client's functions")
  func channels() throws {
    let fixture = try ReportFixture()
    let folder = try TemporaryFolder()
    let trace = folder.path + "/trace.json"
    let traced = try fixture.spawn(fixture.command, ["trace", "-o", trace, fixture.waits, "channels"]).wait()
    #expect(traced.ending == .exit(0), "\(traced.complaint)")
    let file = try #require(FileBytes(path: trace))
    let json = String(decoding: file.read(at: 0, count: Int(file.size)) ?? [], as: UTF8.self)
    let names = json.split(separator: "\n").filter {
      $0.contains(#""cat":"item""#) && $0.contains(#""queue":"com.example.channel"#)
    }.map { $0.components(separatedBy: "\"")[15] }
    // The compiler passes closures of Swift to C as functions and blocks that call them.
    let expected = [
      "#1 in Channels.open(_:)", "#1 in Channels.read(_:)", "#1 in Channels.write(_:_:)",
      "#1 in Channels.wait(for:)", "#2 in Channels.wait(for:)", "#1 in Channels.readOnce(_:)",
      "#2 in Channels.readOnce(_:)", "#1 in Channels.writeOnce(_:_:)", "#1 in Channels.raise()",
    ]
    // No closure of the engine stands for a handler.
    #expect(Set(names) == Set(expected.map { "closure \($0)" }), "\(names)")
  }

  @Test("trace --seconds ends the recording of the program that it has started, which goes on")
  func seconds() throws {
    let fixture = try ReportFixture()
    let folder = try TemporaryFolder()
    let traced = try fixture.spawn(
      fixture.command,
      ["trace", "--seconds", "0.3", "-o", folder.path + "/trace.json", fixture.waits, "busy"])
    traced.waitForOutput("ready")
    let children = "/proc/\(traced.identifier)/task/\(traced.identifier)/children"
    let text = String(decoding: try #require(FileContents.read(children)), as: UTF8.self)
    let program = try #require(Int32(text.split(separator: " ").first ?? ""))
    defer {
      kill(program, SIGKILL)
      _ = try? traced.wait()
    }
    let live = try LiveRecording(program)
    // A guard against a hang: until then the program records.
    for _ in 0..<2000 where live.isFlightRecorder { usleep(10_000) }
    #expect(!live.isFlightRecorder)
    #expect(kill(program, 0) == 0)
  }

  @Test("a recording of a process ends with the last look, however long it takes to write")
  func endOfRecording() throws {
    let fixture = try ReportFixture()
    let program = try fixture.spawn(fixture.waits, ["busy"])
    defer {
      kill(program.identifier, SIGKILL)
      _ = try? program.wait()
    }
    program.waitForOutput("ready")
    let live = try LiveRecording(program.identifier)
    // A guard against a hang.
    for _ in 0..<2000 {
      _ = try live.poll()
      if live.reader?.hasEvents == true { break }
      usleep(10_000)
    }
    let before = UptimeClock.now
    _ = try live.poll()
    let after = UptimeClock.now
    let recording = try #require(live.reader).recording()
    let end = try #require(recording.end)
    #expect(end >= before && end <= after)
    let last = recording.last(nanoseconds: 1)
    #expect(last.end == end)
  }

  @Test("other files and other layouts are refused in one line")
  func refusals() {
    #expect(throws: RecordingFailure("not a recording of Concourse")) { try read([]) }
    #expect(throws: RecordingFailure("not a recording of Concourse")) { try read(Array("#!/bin/sh\n".utf8)) }
    var bytes = RecordingBuilder.sample.bytes
    bytes[8] = 7
    #expect(throws: RecordingFailure("made by another version of Concourse: layout 7, not 2")) {
      try read(bytes)
    }
    bytes[8] = UInt8(RecordingLayout.version)
    bytes[16] = 65
    #expect(throws: RecordingFailure("its header is damaged")) { try read(bytes) }
  }

  @Test("a file that is cut anywhere, and any damaged byte of its tables, is survived")
  func damage() throws {
    let bytes = RecordingBuilder.sample.bytes
    func use(_ bytes: [UInt8]) {
      guard let recording = try? read(bytes) else { return }
      _ = TraceJSON.write(recording) { _ in "f" }
      _ = RecordingText.text(recording) { _ in "f" }
    }
    for length in stride(from: 0, to: bytes.count, by: 8) { use(Array(bytes[..<length])) }
    for place in Array(0..<128) + Array(4096..<4224) + Array(12288..<12416) + Array(16384..<16704) {
      for value: UInt8 in [0, 1, 0x7F, 0x80, 0xFF] {
        var damaged = bytes
        damaged[place] = value
        use(damaged)
      }
    }
  }

  @Test("random bytes after a valid beginning are survived")
  func random() {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<200 {
      var bytes = RecordingBuilder.sample.bytes
      for place in 64..<bytes.count where UInt8.random(in: 0..<4, using: &generator) == 0 {
        bytes[place] = .random(in: 0...255, using: &generator)
      }
      guard let recording = try? read(bytes) else { continue }
      _ = TraceJSON.write(recording) { _ in "f" }
      _ = RecordingText.text(recording) { _ in "f" }
    }
  }
}

import ConcourseRecording
import Testing

@testable import ConcourseTool

/// Numbers that no process and no engine has, but a damaged or forged core dump, program or recording may have. Each of
/// these ended the command. The targets in `Tests/Fuzz` have found the process number, the stack and the functions.
@Suite("numbers from elsewhere")
struct ForeignNumbersTests {
  /// Memory that ends where all memory ends.
  private static let top = UInt64.max - 4096

  private func process(_ core: CoreBuilder, _ folder: TemporaryFolder) throws -> TargetProcess {
    try folder.write(core.bytes, to: "core")
    return try CoreFile.open(folder.path + "/core")
  }

  @Test("a type, a stack and nodes at the end of all memory")
  func endOfMemory() throws {
    let folder = try TemporaryFolder()
    // A class: zeros, then what it says of itself.
    var bytes = [UInt8](repeating: 0, count: 4096)
    let descriptor = Self.top + 4090
    bytes.replaceSubrange(4000 + 40..<4000 + 48, with: descriptor.littleBytes)
    bytes.replaceSubrange(4090..<4094, with: UInt32(16).littleBytes)
    let core = CoreBuilder(
      stackPointer: Self.top + 4090,
      segments: [
        (0x40_0000, 5, ElfBuilder().bytes(), nil), (Self.top - 60_000, 6, [], 60_000),
        (Self.top, 6, bytes, nil),
      ])
    let process = try process(core, folder)
    #expect(SwiftType(metadata: Self.top + 4000, in: process.memory) == nil)
    #expect(process.memory.text(at: Self.top + 4090) == nil)
    let thread = try #require(process.threads.first)
    #expect(StackWalk.addresses(of: thread, in: process) { _ in nil } == [0x40_0010])
    var nodes = NodeIndex(in: process)
    #expect(nodes.takeList(endingAt: 16) == [16])
    // A region of whole slabs.
    let large = CoreBuilder(segments: [(.max - 3 << 16, 6, [], 3 << 16)])
    nodes = NodeIndex(in: try self.process(large, folder))
    #expect(nodes.takeList(endingAt: 16) == [16])
  }

  @Test("a core dump with a mapping whose place in its file is beyond all files")
  func mapping() throws {
    let folder = try TemporaryFolder()
    var core = CoreBuilder(pageSize: 1)
    core.mapping = (0x3F_0000, 0x51_0000, .max)
    core.segments = [(0x40_0000, 5, [], 4096), (0x50_0000, 6, [UInt8](repeating: 1, count: 64), 32)]
    let process = try process(core, folder)
    #expect(process.memory.word(0x40_0000) == nil)
    // No more than the region.
    #expect(process.regions.map { process.memory.populated($0).map(\.count) } == [[], [32]])
  }

  @Test("a core dump with more bytes of a segment than the segment has, at the end of all memory")
  func segment() throws {
    let folder = try TemporaryFolder()
    let core = CoreBuilder(segments: [
      (0x40_0000, 5, ElfBuilder().bytes(), nil), (.max - 15, 6, [UInt8](repeating: 1, count: 4096), 8),
    ])
    let process = try process(core, folder)
    #expect(process.memory.word(.max - 15) == 0x0101_0101_0101_0101)
    #expect(process.memory.word(.max - 7) == nil)
  }

  @Test("a core dump shows no file but the program that the process had mapped")
  func mappedFile() throws {
    let folder = try TemporaryFolder()
    let image = ElfBuilder().bytes()
    let program = image + [UInt8](repeating: 7, count: 8192 - image.count)
    let secret = [UInt8](repeating: 8, count: 8192)
    func word(of file: [UInt8], dumped: [UInt8], rights: UInt32 = 5) throws -> UInt64? {
      let path = try folder.write(file, to: "mapped")
      // The dump has the first page only.
      let core = CoreBuilder(
        mapping: (0x40_0000, 0x40_2000, 0), mappedPath: path,
        segments: [(0x40_0000, rights, Array(dumped.prefix(4096)), 8192)])
      return try process(core, folder).memory.word(0x40_1000)
    }
    #expect(try word(of: program, dumped: program) == 0x0707_0707_0707_0707)
    #expect(try word(of: program, dumped: program, rights: 6) == nil)
    #expect(try word(of: secret, dumped: program) == nil)
    #expect(try word(of: secret, dumped: secret) == nil)
    // Replaced by another version.
    var other = program
    other[image.count] = 9
    #expect(try word(of: other, dumped: program) == nil)
    #expect(try word(of: program, dumped: []) == nil)
  }

  @Test("a recording of more records than the library makes")
  func recording() {
    var recording = RecordingBuilder().bytes
    recording.replaceSubrange(16..<20, with: UInt32(1 << 21).littleBytes)
    #expect(throws: RecordingFailure.self) { try RecordingLayout(BytesInMemory(recording)) }
  }

  @Test("a ring that has had more records than there are numbers")
  func head() throws {
    var builder = RecordingBuilder()
    builder.rings = [.init(thread: 7)]
    builder.rings[0].gone = .max - 1
    let reader = try RecordingReader(BytesInMemory(builder.bytes))
    reader.poll()
    #expect(reader.recording().events.isEmpty)
  }

  @Test("a core dump of a process with a negative number")
  func processNumber() throws {
    let core = CoreBuilder(
      process: -77, segments: [(0x40_0000, 5, CoreBuilder.engine, nil), (0x50_0000, 6, [0], nil)])
    let report = try Report.make(of: try process(core, TemporaryFolder()))
    #expect(!report.snapshot.isStarted)
    #expect(report.snapshot.threads.map(\.role) == [.other])
    #expect(ReportText.text(report, showsAll: true, isColoured: false).contains("-77"))
  }

  @Test("an image whose notes and functions end beyond all memory")
  func image() throws {
    let folder = try TemporaryFolder()
    var elf = ElfBuilder(functions: [("near", .max - 1, 1 << 40), ("far", 8, .max)]).bytes()
    // The second header becomes one of notes.
    elf.replaceSubrange(64 + 56..<64 + 60, with: UInt32(4).littleBytes)
    elf.replaceSubrange(64 + 56 + 16..<64 + 56 + 24, with: (UInt64.max - 100).littleBytes)
    try folder.write(elf, to: "image")
    let table = FunctionTable(path: folder.path + "/image")
    #expect(table.range(at: .max) == UInt64.max - 1..<UInt64.max)
    #expect(table.range(at: 10) == 8..<UInt64.max)

    let core = CoreBuilder(segments: [(0x40_0000, 5, elf, nil), (0x50_0000, 6, [0], nil)])
    let images = MappedImage.all(of: try process(core, folder))
    #expect(images.map(\.notes.count) == [1])
    // Moved so far that the notes would end beyond all memory.
    elf.replaceSubrange(64 + 16..<64 + 24, with: UInt64(0x40_0000 - 80).littleBytes)
    let moved = CoreBuilder(segments: [(0x40_0000, 5, elf, nil), (0x50_0000, 6, [0], nil)])
    #expect(MappedImage.all(of: try process(moved, folder)).map(\.notes.count) == [0])
  }

  @Test("items that have run for centuries, all at once")
  func durations() {
    let long: UInt64 = 1 << 60
    let begin = (1...40).map { thread in
      RecordedEvent(time: 1, thread: thread, kind: .started, node: 0, object: 7, function: 9)
    }
    let end = (1...40).map { thread in
      RecordedEvent(time: long, thread: thread, kind: .ended, node: 0, object: 7, function: 9)
    }
    var statistics = EventStatistics(start: 0)
    statistics.add(
      RecordedRun(events: begin + end, threads: [:], queue: 7, label: "q", program: "/p"), before: .max)
    #expect(statistics.finish(at: .max).queues[7]?.run.count == 40)
  }
}

import Testing

@testable import ConcourseTool

/// Memory made up of a few pieces.
private final class PiecedMemory: TargetMemory {
  var pieces: [(start: UInt64, bytes: [UInt8])] = []

  func populated(_ region: MappedRegion) -> [Range<UInt64>] { [region.start..<region.end] }

  func read(_ address: UInt64, into bytes: UnsafeMutableRawBufferPointer) -> Bool {
    for piece in pieces where address >= piece.start {
      let offset = address - piece.start
      let size = UInt64(piece.bytes.count)
      guard offset <= size, UInt64(bytes.count) <= size - offset else { continue }
      bytes.copyBytes(from: piece.bytes[Int(offset)..<Int(offset) + bytes.count])
      return true
    }
    return false
  }

  func set<Number: FixedWidthInteger>(_ number: Number, at address: UInt64) {
    for index in pieces.indices
    where address >= pieces[index].start && address - pieces[index].start < UInt64(pieces[index].bytes.count)
    {
      let offset = Int(address - pieces[index].start)
      pieces[index].bytes.replaceSubrange(
        offset..<offset + number.littleBytes.count, with: number.littleBytes)
    }
  }
}

@Suite("tasks in memory")
struct TaskReaderTests {
  private static let heap: UInt64 = 0x50_0000
  private static let code: UInt64 = 0x40_0000
  private static let layout = TaskLayout(
    taskClass: 0x60_0000, size: 208, startAdapters: [0x40_0010])
  private static let first = heap + 0x1000

  private let memory = PiecedMemory()

  private var process: TargetProcess {
    func region(_ start: UInt64, _ rights: String) -> MappedRegion {
      MappedRegion(
        start: start, end: start + 0x1_0000, isReadable: true, isWritable: rights == "w",
        isExecutable: rights == "x", isPrivate: true, offset: 0, path: "")
    }
    return TargetProcess(
      id: 1, name: "made up", memory: memory, regions: [region(Self.code, "x"), region(Self.heap, "w")],
      threads: [])
  }

  /// A task that awaits a continuation in a function that two others have called.
  init() {
    memory.pieces = [(Self.heap, [UInt8](repeating: 0, count: 0x1_0000))]
    write(task: Self.first, number: 7)
  }

  private func write(task: UInt64, number: UInt32) {
    let (context, record) = (task + 0x200, task + 0x300)
    for (place, word) in [
      (0, Self.layout.taskClass), (8, 3), (32, 0x0200_1500 | UInt64(number) << 32), (56, Self.code + 0x100),
      (64, context), (96, 0x4015), (104, record), (152, 0x15), (160, record),
    ] as [(UInt64, UInt64)] { memory.set(word, at: task + place) }
    for (place, word) in [
      (0, context + 0x20), (8, Self.code + 0x100), (0x20, context + 0x40), (0x28, Self.code + 0x200),
      (0x48, Self.code + 0x300),
    ] as [(UInt64, UInt64)] { memory.set(word, at: context + place) }
    for (place, word) in [(16, context), (32, 2), (40, task)] as [(UInt64, UInt64)] {
      memory.set(word, at: record + place)
    }
  }

  private func tasks(_ candidates: [UInt64] = [first]) -> [TaskInfo] {
    TaskReader.tasks(at: candidates, in: process, Self.layout)
  }

  @Test("a suspended task: what it awaits, and where it and its callers go on")
  func suspended() throws {
    let task = try #require(tasks().first)
    #expect(task.id == 7 && task.state == .suspended && task.awaits == .continuation)
    #expect(task.priority == 21 && task.basePriority == 21 && !task.isCancelled && task.name == nil)
    #expect(task.frames == [0x100, 0x200, 0x300].map { Self.code + $0 })
  }

  @Test(
    "memory that only looks like a task is none",
    arguments: [
      // Another class; an object that is being destroyed, has none that owns it, or is in another place.
      (0, 0x60_0010), (8, 0x1_0000_0003), (8, 0), (8, 0xC000_0000_0000_0003), (8, 0x8000_0004_FFFF_FFFF),
      // Freed memory, with the size of its block.
      (8, 0x271), (8, 0xC1),
      // Another kind of job; no number; a reserved word; no code to go on at.
      (32, 0x7_0200_15FF), (32, 0x0200_1500), (48, 1), (56, 0x50_0000), (56, 0), (56, .max),
      // States that exclude each other; unknown bits; a priority that does not exist.
      (96, 0x5815), (96, 0x6015), (96, 0x1815), (96, 0x1_4015), (96, 1 << 40 | 0x4015),
      (96, 0x4022), (152, 34), (152, .max),
      // Enqueued, by a record that says otherwise; no record; one that is of another task, or of another kind.
      (96, 0x5015), (160, 0), (160, .max), (160, 0x50_1304), (0x328, 0x50_2000), (0x300, 1), (0x320, 5),
    ] as [(UInt64, UInt64)])
  func impostors(place: UInt64, word: UInt64) {
    memory.set(word, at: Self.first + place)
    #expect(tasks().isEmpty)
  }

  @Test(
    "the states",
    arguments: [
      (0x15, .created), (0x815, .running), (0x2015, .completed), (0x4115, .suspended),
      // With an executor preference.
      (0x8815, .running), (0xC015, .suspended),
    ] as [(UInt64, TaskInfo.State)])
  func states(status: UInt64, state: TaskInfo.State) throws {
    memory.set(status, at: Self.first + 96)
    let task = try #require(tasks().first)
    #expect(task.state == state && task.isCancelled == (status & 0x100 != 0))
  }

  @Test("what a task waits for")
  func awaited() throws {
    memory.set(UInt64(0xABC0), at: Self.first + 0x310)
    for (kind, awaited) in [(1, .task(0xABC0)), (2, .continuation), (3, .group)]
      as [(UInt64, TaskInfo.Awaited)]
    {
      memory.set(kind, at: Self.first + 0x320)
      #expect(try #require(tasks().first).awaits == awaited)
    }
    memory.set(UInt64(4), at: Self.first + 0x320)
    memory.set(UInt64(0x5015), at: Self.first + 96)
    let task = try #require(tasks().first)
    #expect(task.awaits == .executor(0xABC0) && task.state == .enqueued)
  }

  @Test("a task that has not begun: the function that it will call")
  func start() throws {
    memory.set(Self.code + 0x10, at: Self.first + 56)
    memory.set(Self.code + 0x555, at: Self.first + 0x200 - 24)
    #expect(try #require(tasks().first).frames.first == Self.code + 0x555)
  }

  @Test("contexts, records and children in circles end; addresses outside memory are not followed")
  func circles() throws {
    // The second context leads back to the first one.
    memory.set(Self.first + 0x200, at: Self.first + 0x220)
    // The dependency, a name, then a record of children that leads back to the name.
    let (name, children) = (Self.first + 0x340, Self.first + 0x380)
    memory.set(name, at: Self.first + 0x308)
    for (place, word) in [(0, 6), (8, children), (16, Self.first + 0x3C0)] as [(UInt64, UInt64)] {
      memory.set(word, at: name + place)
    }
    for (place, word) in [(0, 2), (8, name), (16, Self.first)] as [(UInt64, UInt64)] {
      memory.set(word, at: children + place)
    }
    memory.set(UInt32(0x64_6F_6F_67), at: Self.first + 0x3C0)
    // Its own next sibling.
    memory.set(Self.first, at: Self.first + 208 + 8)
    let task = try #require(tasks().first)
    #expect(task.name == "good" && task.frames.count <= 65)
    for (place, word) in [(64, .max), (64, .max - 15), (104, .max - 7), (104, 1)] as [(UInt64, UInt64)] {
      memory.set(word, at: Self.first + place)
      #expect(tasks().count == 1)
    }
    #expect(tasks([.max - 15, .max, 0, 16, Self.first + 8, Self.heap + 0x1_0000 - 16]).isEmpty)
  }

  @Test("an `async let` in its parent's memory counts as long as the parent names it")
  func inner() throws {
    let child = Self.first + 0x4000
    write(task: child, number: 8)
    memory.set(UInt64(0x8000_0004_FFFF_FFFF), at: child + 8)
    memory.set(UInt64(8 << 32 | 0x1300_1500), at: child + 32)
    memory.set(Self.first, at: child + 208)
    let both = [child, Self.first]
    #expect(tasks(both).map(\.id) == [7])
    // The record of the child.
    let record = Self.first + 0x340
    memory.set(record, at: Self.first + 0x308)
    memory.set(UInt64(1), at: record)
    memory.set(child, at: record + 16)
    let found = tasks(both)
    #expect(found.map(\.id) == [7, 8] && found.map(\.kind) == [.unstructured, .asyncLet])
    #expect(found.last?.parent == Self.first)
    // A parent that it does not name.
    memory.set(child, at: child + 208)
    #expect(tasks(both).map(\.id) == [7])
  }

  @Test("tasks that are each other's parents are listed once")
  func tree() {
    let second = Self.first + 0x4000
    write(task: second, number: 8)
    for (task, parent) in [(Self.first, second), (second, Self.first)] {
      memory.set(UInt32(0x0700_1500), at: task + 32)
      memory.set(parent, at: task + 208)
    }
    var snapshot = EngineSnapshot(process: process)
    snapshot.tasks = tasks([Self.first, second])
    #expect(snapshot.tasks.map(\.kind) == [.group, .group])
    let text = TaskText(snapshot, showsEach: true, showsAll: true)
    #expect(
      text.lines.map { $0.split(separator: " ").prefix(2).joined(separator: " ") } == ["task 7", "task 8"])
  }

  @Test("of many places the first are shown, and the others are counted")
  func places() {
    var snapshot = EngineSnapshot(process: process)
    for number in 1...30 {
      var task = TaskInfo(
        address: UInt64(number) << 8, id: UInt64(number), state: .suspended, priority: 21, basePriority: 21,
        isCancelled: false)
      task.awaits = .continuation
      // The first place has three tasks.
      let function = "place\(max(number, 3))()"
      task.stack = [StackEntry(address: 1, image: "/x", symbol: nil, function: function, origin: .client)]
      snapshot.tasks.append(task)
    }
    let lines = TaskText(snapshot, showsEach: false, showsAll: false).lines
    #expect(lines.prefix(2) == ["  3 tasks await a continuation", "    at place3()"])
    #expect(lines.last == "  … and 20 tasks at 20 other places; --tasks lists all")
    #expect(lines.count == 17)
    #expect(TaskText.summary(of: snapshot.tasks) == "30 suspended")
  }
}

import Testing

@testable import ConcourseEvents
@testable import ConcourseTool

/// When sleeps of tasks end, from made-up memory: a list of timers, the tasks that they submit, and closures.
@Suite("ends of sleeps")
struct TaskSleepsTests {
  private static let (list, now): (UInt64, UInt64) = (0x10000, 1_000_000_000)
  private let memory = WritableMemory()

  @Test("the layout of the engine's timers")
  func layout() {
    #expect(MemoryLayout<TimerHeap.Entry>.stride == Int(TimerList.stride))
    #expect(MemoryLayout<TimerHeap.Entry>.offset(of: \.payload) == TimerList.placeOfPayload)
    #expect(MemoryLayout<TimerHeap.Entry>.offset(of: \.time) == 0)
  }

  /// A timer that submits the task `maker`, by the node at `node`.
  private func addTimer(_ index: UInt64, time: UInt64, node: UInt64, maker: UInt64) {
    let element = Self.list + TimerList.header + index * TimerList.stride
    memory.words[element] = time
    memory.words[element + 16] = node
    memory.words[node + 8] = 0xC0DE
    memory.words[node + 16] = maker
  }

  private func sleeps(
    of sleepers: Set<UInt64>, makers: Set<UInt64>, first: UInt64 = 0, count: UInt64, now: UInt64? = now
  ) -> [UInt64: Int64] {
    var process = TargetProcess(id: 1, name: "made up", memory: memory, regions: [], threads: [])
    process.now = now
    var snapshot = EngineSnapshot(process: process)
    snapshot.timerLists = [.init(isWall: false, array: 0x8000, first: 0x8008)]
    (memory.words[0x8000], memory.words[0x8008]) = (Self.list, first)
    (memory.words[Self.list + 16], memory.words[Self.list + 24]) = (count, 2 * count)
    return TaskSleeps(snapshot, sleepers: sleepers, makers: makers).left
  }

  @Test("through a closure, and directly; with bits of the state, and without")
  func found() {
    addTimer(0, time: Self.now + 5000, node: 0x20000, maker: 0x30000)
    memory.words[0x30000 + 256] = 0x40000
    memory.words[0x40000 + 16] = 0x50000
    memory.words[0x50000] = 0x60000
    addTimer(1, time: Self.now - 7000, node: 0x20100, maker: 0x31000)
    memory.words[0x31000 + 240] = 0x50008
    memory.words[0x50008] = 0x61000 | 1
    #expect(
      sleeps(of: [0x60000, 0x61000, 0x62000], makers: [0x30000, 0x31000], count: 2)
        == [0x60000: 5000, 0x61000: -7000])
    // Before the list's first element, and behind its last.
    #expect(
      sleeps(of: [0x60000, 0x61000], makers: [0x30000, 0x31000], first: 1, count: 2) == [0x61000: -7000])
    #expect(sleeps(of: [0x60000, 0x61000], makers: [0x30000, 0x31000], count: 1) == [0x60000: 5000])
    // Of a core dump the time is not known.
    #expect(sleeps(of: [0x60000], makers: [0x30000], count: 2, now: nil).isEmpty)
  }

  @Test("other timers, other tasks, and memory that cannot be read name no sleep")
  func notFound() {
    addTimer(0, time: Self.now, node: 0x20000, maker: 0x30000)
    // Its closure leads to a task that does not sleep.
    memory.words[0x30000 + 256] = 0x40000
    memory.words[0x40000 + 16] = 0x50000
    memory.words[0x50000] = 0x62000
    #expect(sleeps(of: [0x60000], makers: [0x30000], count: 1).isEmpty)
    memory.words[0x50000] = 0x60000
    #expect(sleeps(of: [0x60000], makers: [0x31000], count: 1).isEmpty)
    #expect(sleeps(of: [], makers: [0x30000], count: 1).isEmpty)
    memory.isReadable = false
    #expect(sleeps(of: [0x60000], makers: [0x30000], count: 1 << 39).isEmpty)
  }

  @Test("what the report says")
  func wording() {
    var snapshot = EngineSnapshot(
      process: TargetProcess(id: 1, name: "made up", memory: memory, regions: [], threads: []))
    for (id, left) in [(1, 90_000_000_000), (2, -1_500_000_000), (3, nil)] as [(UInt64, Int64?)] {
      var task = TaskInfo(
        address: id << 8, id: id, state: .suspended, priority: 21, basePriority: 21, isCancelled: false)
      (task.awaits, task.sleepLeft) = (.sleep, left)
      snapshot.tasks.append(task)
    }
    let words = TaskWording(snapshot)
    #expect(
      snapshot.tasks.map { words.activity($0) } == [
        "awaits a sleep that ends in 1 min 30 s", "awaits a sleep that should have ended 1.5 s ago",
        "awaits a sleep",
      ])
    // Tasks that sleep at one place are one row, whenever each wakes up.
    #expect(words.rows.map { words.sentence($0) } == ["3 tasks await a sleep"])
  }
}

/// Words, and zeros around them.
private final class WritableMemory: TargetMemory {
  var words: [UInt64: UInt64] = [:]
  var isReadable = true

  func populated(_ region: MappedRegion) -> [Range<UInt64>] { [] }

  func read(_ address: UInt64, into bytes: UnsafeMutableRawBufferPointer) -> Bool {
    guard isReadable else { return false }
    for offset in bytes.indices {
      let place = address &+ UInt64(offset)
      bytes[offset] = UInt8(truncatingIfNeeded: (words[place & ~7] ?? 0) >> (place % 8 * 8))
    }
    return true
  }
}

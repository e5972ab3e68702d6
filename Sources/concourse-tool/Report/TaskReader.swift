/// What `TaskReader` needs to know of Swift's runtime.
struct TaskLayout {
  /// The class of tasks.
  let taskClass: UInt64
  /// The size of a task without what follows it: its place among its parent's children, and its result.
  let size: UInt64
  /// Functions that a task begins with. Their context has the function of the program before it.
  let startAdapters: Set<UInt64>
}

/// Reads the tasks of a process out of its memory.
///
/// The runtime keeps no list of tasks. So each word that is the address of their class may begin one (`MemoryScan`).
/// What follows must agree in all that can be checked, since memory that was a task once looks much like one. A task
/// that has ended says so, and its memory keeps that until it is something else.
struct TaskReader {
  /// Offsets in a task. The children's list and the result follow at the size of a task.
  private enum Place {
    static let counts = 8
    static let flags = 32
    static let number = 36
    static let reserved = 48
    static let resume = 56
    static let context = 64
    static let status = 96
    static let records = 104
    static let upperNumber = 144
    static let basePriority = 152
    static let dependency = 160
    static let end = 168
  }

  /// In the flags of a job.
  private enum Flag {
    static let isChild: UInt32 = 1 << 24
    static let isGroupChild: UInt32 = 1 << 26
    static let isAsyncLet: UInt32 = 1 << 28
  }

  /// In the state of a task, above its priority.
  private enum Status {
    static let cancelled: UInt64 = 1 << 8
    static let running: UInt64 = 1 << 11
    static let enqueued: UInt64 = 1 << 12
    static let complete: UInt64 = 1 << 13
    static let depends: UInt64 = 1 << 14
    static let prefersExecutor: UInt64 = 1 << 15
    static let all: UInt64 = 1 << 16 - 1
  }

  /// The kinds of a task's records.
  private enum Record {
    static let dependency: UInt8 = 0
    static let child: UInt8 = 1
    static let group: UInt8 = 2
    static let name: UInt8 = 6
  }

  /// What a damaged process may cost at most.
  private enum Limit {
    static let records = 10_000
    static let allRecords = 4_000_000
    static let contexts = 64
    static let frames = 1_000_000
    static let children = 1_000_000
  }

  private let process: TargetProcess
  private let layout: TaskLayout
  private var memory: any TargetMemory { process.memory }
  private var recordsLeft = Limit.allRecords
  private var framesLeft = Limit.frames
  private var childrenLeft = Limit.children
  /// The tasks that the records of others name as their children, by their parents.
  private var children: [UInt64: [UInt64]] = [:]

  private init(_ process: TargetProcess, _ layout: TaskLayout) {
    (self.process, self.layout) = (process, layout)
  }

  /// The tasks that have not been freed, the oldest first.
  static func tasks(at candidates: [UInt64], in process: TargetProcess, _ layout: TaskLayout) -> [TaskInfo] {
    var reader = TaskReader(process, layout)
    var found: [UInt64: TaskInfo] = [:]
    /// Those inside their parent's memory, which is not freed when they end: they count if the parent names them.
    var inner: [UInt64: TaskInfo] = [:]
    for address in candidates {
      guard let (task, isInner) = reader.read(address) else { continue }
      if isInner { inner[address] = task } else { found[address] = task }
    }
    var parents = Array(found.keys)
    while let parent = parents.popLast() {
      for child in reader.children[parent] ?? [] {
        guard let task = inner.removeValue(forKey: child), task.parent == parent else { continue }
        found[child] = task
        parents.append(child)
      }
    }
    return found.values.sorted { ($0.id, $0.address) < ($1.id, $1.address) }
  }

  /// The task at an address once more; nil if it has gone.
  static func task(at address: UInt64, in process: TargetProcess, _ layout: TaskLayout) -> TaskInfo? {
    var reader = TaskReader(process, layout)
    return reader.read(address)?.task
  }

  /// A task that changes while it is read may look like none, so it is read again.
  private mutating func read(_ address: UInt64) -> (task: TaskInfo, isInner: Bool)? {
    for _ in 0..<4 {
      let before = memory.word(address &+ UInt64(Place.status))
      if let task = readOnce(address) { return task }
      guard memory.word(address &+ UInt64(Place.status)) != before else { break }
    }
    return nil
  }

  private mutating func readOnce(_ address: UInt64) -> (task: TaskInfo, isInner: Bool)? {
    guard address > 4096, address % 16 == 0, let bytes = memory.bytes(at: address, count: Place.end)
    else { return nil }
    func word(_ place: Int) -> UInt64 { bytes.number(at: place)! }
    func half(_ place: Int) -> UInt32 { bytes.number(at: place)! }
    let (flags, status, counts) = (half(Place.flags), word(Place.status), word(Place.counts))
    let number = UInt64(half(Place.upperNumber)) << 32 | UInt64(half(Place.number))
    // An `async let` in its parent's memory has an immortal reference count.
    let isInner = counts & 0x8000_0000_FFFF_FFFF == 0x8000_0000_FFFF_FFFF
    // The lower half of a live task's count is 3. Freed memory has the size of the block in this place.
    let isAlive = isInner || counts >> 63 == 0 && counts >> 32 & 1 == 0 && counts & 0xFFFF_FFFF == 3
    guard word(0) == layout.taskClass, isAlive, isInner == (flags & Flag.isAsyncLet != 0), flags & 0xFF == 0,
      half(Place.number) > 0, word(Place.reserved) == 0, status & ~Status.all == 0,
      Self.isPriority(status & 0xFF), Self.isPriority(word(Place.basePriority))
    else { return nil }
    var task = TaskInfo(
      address: address, id: number, state: .created, priority: UInt8(status & 0xFF),
      basePriority: UInt8(word(Place.basePriority)), isCancelled: status & Status.cancelled != 0)
    if flags & Flag.isChild != 0 {
      guard let parent = memory.word(address &+ layout.size) else { return nil }
      task.parent = parent
      task.kind = flags & Flag.isGroupChild != 0 ? .group : .asyncLet
    }
    switch status & (Status.running | Status.enqueued | Status.complete | Status.depends) {
    case 0: task.state = .created
    case Status.running: task.state = .running
    case Status.complete: task.state = .completed
    case Status.depends: task.state = .suspended
    case Status.depends | Status.enqueued: task.state = .enqueued
    default: return nil
    }
    let groups = readRecords(of: &task, from: word(Place.records))
    if task.state == .completed { return (task, isInner) }
    if status & Status.depends != 0 {
      guard let awaited = dependency(of: address, at: word(Place.dependency)),
        { if case .executor = awaited { true } else { false } }() == (task.state == .enqueued)
      else { return nil }
      task.awaits = awaited
      if awaited == .group, let group = memory.word(word(Place.dependency) &+ 16) {
        // A group begins with its class; its record follows.
        task.awaitedChildren = groups[group &+ 8] ?? []
      }
    }
    if task.state != .running {
      guard isCode(word(Place.resume)) else { return nil }
      task.frames = frames(from: word(Place.resume), context: word(Place.context))
    }
    // The task changed while it was read, so its fields do not belong together.
    if memory.word(address &+ UInt64(Place.status)) != status {
      (task.state, task.frames, task.awaits) = (.running, [], nil)
    }
    return (task, isInner)
  }

  /// `TaskPriority` goes from 0 to 33.
  private static func isPriority(_ word: UInt64) -> Bool { word <= 33 }

  private func isCode(_ address: UInt64) -> Bool { process.region(of: address)?.isExecutable ?? false }

  /// Reads the name and the children.
  /// - Returns: The children of each group, by its record.
  private mutating func readRecords(of task: inout TaskInfo, from first: UInt64) -> [UInt64: [UInt64]] {
    var groups: [UInt64: [UInt64]] = [:]
    var place = first
    var count = 0
    while place != 0, count < Limit.records, recordsLeft > 0, let bytes = memory.bytes(at: place, count: 24) {
      let (kind, next, content): (UInt8, UInt64, UInt64) = (
        bytes[0], bytes.number(at: 8)!, bytes.number(at: 16)!
      )
      switch kind {
      case Record.name where task.name == nil: task.name = memory.text(at: content, limit: 256)
      case Record.child, Record.group:
        let found = readChildren(from: content)
        children[task.address, default: []] += found
        if kind == Record.group { groups[place] = found }
      default: break
      }
      place = next
      count += 1
      recordsLeft -= 1
    }
    return groups
  }

  private mutating func readChildren(from first: UInt64) -> [UInt64] {
    var found: [UInt64] = []
    var seen: Set<UInt64> = []
    var child = first
    while child != 0, childrenLeft > 0, seen.insert(child).inserted {
      childrenLeft -= 1
      found.append(child)
      child = memory.word(child &+ layout.size &+ 8) ?? 0
    }
    return found
  }

  /// A record that names what the task waits for, how, and the task itself.
  private func dependency(of task: UInt64, at place: UInt64) -> TaskInfo.Awaited? {
    guard place % 8 == 0, let bytes = memory.bytes(at: place, count: 48), bytes[0] == Record.dependency,
      bytes.number(at: 40) == task, let kind: UInt32 = bytes.number(at: 32),
      let object: UInt64 = bytes.number(at: 16)
    else { return nil }
    switch kind {
    case 1: return .task(object)
    case 2: return .continuation
    case 3: return .group
    case 4: return .executor(object)
    default: return nil
    }
  }

  /// The resume address of the task, then those of its callers.
  private mutating func frames(from resume: UInt64, context first: UInt64) -> [UInt64] {
    var frames = [resume]
    if layout.startAdapters.contains(resume), let start = memory.word(first &- 24), isCode(start) {
      frames = [start]
    }
    var context = first
    var count = 0
    while context > 4096, context % 16 == 0, count < Limit.contexts, framesLeft > 0,
      let bytes = memory.bytes(at: context, count: 16), let parent: UInt64 = bytes.number(at: 0),
      let code: UInt64 = bytes.number(at: 8), isCode(code)
    {
      // A continuation has a context of its own, in the function that awaits it.
      if count > 0 || code != resume { frames.append(code) }
      framesLeft -= 1
      count += 1
      guard parent != context else { break }
      context = parent
    }
    return frames
  }
}

/// Reads the state of the engine out of the memory of a process.
///
/// The process may run meanwhile. Everything that is read is checked before it is believed, and what a verdict rests on
/// is read once more (`Verdicts`).
struct EngineReader {
  typealias Failure = TargetProcess.Failure

  let process: TargetProcess
  let record: InspectionRecord
  let types: EngineTypes
  let taskClass: UInt64
  var snapshot: EngineSnapshot
  let links: LinkBudget

  var memory: any TargetMemory { process.memory }

  /// The waiting thread's entry in a queue's list, by its address.
  var waiterQueues: [UInt64: UInt64] = [:]
  /// Objects found, by class.
  var objects: [String: [UInt64]] = [:]
  private let threadNumbers: Set<UInt32>

  /// - Parameter taskClass: The class of Swift Concurrency's tasks; 0 if they are not asked for.
  static func read(
    _ process: TargetProcess, _ record: InspectionRecord, taskClass: UInt64 = 0,
    links: LinkBudget = LinkBudget()
  ) throws(Failure) -> EngineSnapshot {
    var reader = EngineReader(process: process, record: record, taskClass: taskClass, links: links)
    do {
      try reader.readAll()
    } catch {
      guard process.core != nil || TargetProcess.isAlive(process.id) else {
        throw Failure(reason: "process \(process.id) (\(process.name)) has ended")
      }
      throw Failure(
        reason:
          "process \(process.id) (\(process.name)) runs on another version of Concourse: \(record.image.path) "
          + "has no \(error.what)")
    }
    return reader.snapshot
  }

  private init(process: TargetProcess, record: InspectionRecord, taskClass: UInt64, links: LinkBudget) {
    self.process = process
    self.record = record
    self.taskClass = taskClass
    self.links = links
    types = EngineTypes(record.types, in: process.memory)
    snapshot = EngineSnapshot(process: process)
    snapshot.links = links
    threadNumbers = Set(process.threads.map(\.id))
  }

  private mutating func readAll() throws(EngineTypes.Missing) {
    guard record.roots != 0 else {
      snapshot.isStarted = false
      snapshot.threads = process.threads.map { ThreadInfo(id: $0.id, thread: $0, role: role(of: $0)) }
      for index in snapshot.threads.indices { classifyForeign(&snapshot.threads[index]) }
      return
    }
    snapshot.width = memory.count(at: record.width)
    snapshot.cap = memory.count(at: record.cap)
    snapshot.poolThreads = memory.count(at: record.threads)
    let blocks = ThreadBlocks(process)
    let scan = MemoryScan(
      of: process, classes: Array(types.byMetadata.keys), taskClass: taskClass, blocks)
    snapshot.taskCandidates = scan.tasks
    for (address, metadata) in scan.objects where isAlive(address) {
      if let type = types.byMetadata[metadata] { objects[type.name, default: []].append(address) }
    }
    try readQueues()
    try readGroups()
    try readThreads(scan.threadPointers, blocks)
    try countRunning()
    try readBands()
    try readSources()
    try readChannels()
    readTimers()
  }

  /// Whether an object's reference count says that it is in use.
  private func isAlive(_ address: UInt64) -> Bool {
    guard let counts = memory.word(address &+ 8) else { return false }
    // The highest bit: the count is elsewhere. Bit 32: the object is being destroyed.
    return counts >> 63 != 0 || (counts >> 32 & 1 == 0 && counts & 1 != 0)
  }

  func object(_ address: UInt64, isA name: String) -> Bool {
    guard let metadata = memory.word(address), let type = types.byMetadata[metadata] else { return false }
    return types.isKind(type, of: name)
  }

  func isThread(_ id: UInt32) -> Bool { threadNumbers.contains(id) }

  /// The object of a class that an address is in, behind the object's first word. They are sorted, as the memory was read.
  func object(around address: UInt64, ofClass name: String) -> UInt64? {
    guard let all = objects[name], let size = types[name]?.size,
      case let next = all.sortedIndex(where: { $0 >= address }), next > 0,
      address - all[next - 1] < UInt64(size)
    else { return nil }
    return all[next - 1]
  }
}

extension Array {
  /// The index of the first element that satisfies a condition which all later ones satisfy, too.
  func sortedIndex(where isBehind: (Element) -> Bool) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if isBehind(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}

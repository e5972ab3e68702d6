/// Reads a recording, once for a file that nothing writes any more, or again and again while the process runs.
package final class RecordingReader {
  private let bytes: any RecordingBytes
  package let layout: RecordingLayout
  private var rings: [Ring] = []
  private var names = RecordedNames()
  private var threadNames: [UInt32: String] = [:]
  private var tasks: [UInt64: String] = [:]
  private var losses = Losses()
  /// Both clocks as a reader in the recorded process has read them after the records; nil in another process, which may
  /// have another uptime. The readings of the rings are too close together at the start of a recording.
  package var clocks: (ticks: UInt64, uptime: UInt64)?
  /// When the last look at a process began; nil for what a process has left.
  package var watchedUntil: UInt64?
  /// When recording was found to be off.
  package var pauses: [UInt64] = []

  /// What was read last: the process may end at any time.
  private var counts = RecordingLayout.Counts()
  private var modules: [RecordedModule] = []
  private var unnamed: [UInt8] = []
  /// How much of its ring the fastest thread has filled between the last two calls of `poll`.
  package private(set) var fill = 0.0

  private struct Losses {
    var overwritten: UInt64 = 0
    var unreadable: UInt64 = 0
    /// Events while the process had no memory for them.
    var missed: UInt64 = 0
    /// The events that had no ring before this reader began.
    var before: UInt64 = 0
  }

  /// Events while the process had no memory for them.
  package var missed: UInt64 {
    get { losses.missed }
    set { losses.missed = newValue }
  }

  /// What has been read of one ring.
  private struct Ring {
    /// The first record not read yet.
    var next: UInt64 = 0
    /// The thread of the record before that; nil if it is not known.
    var owner: UInt32?
    var ticks: UInt64 = 0
    var uptime: UInt64 = 0
    var records: [Record] = []
    /// The parts that have been read of a task's name.
    var task: UInt64 = 0
    var taskName: [UInt8] = []
    /// The ticks of the records before which others are missing.
    /// Their times are ticks.
    var gaps: [RecordedGap] = []
  }

  private struct Record {
    var thread: UInt32 = 0
    var ticks: UInt64
    var eventAndNode: UInt64
    var object: UInt64
    var function: UInt64
  }

  private let readsModules: Bool

  /// - Parameter readsModules: Whether the list of modules, which names functions, is read.
  package init(_ bytes: any RecordingBytes, readsModules: Bool = true) throws(RecordingFailure) {
    self.bytes = bytes
    self.readsModules = readsModules
    layout = try RecordingLayout(bytes)
  }

  /// Leaves out what has been recorded so far.
  package func skipPast() {
    guard let counts = layout.counts(bytes) else { return }
    losses.before = counts.lostEvents
    rings = (0..<counts.rings).map { Ring(next: header(of: $0)?.number(at: 0) ?? 0) }
  }

  /// Reads what has been recorded since the last call.
  /// - Returns: false if the bytes are gone.
  @discardableResult
  package func poll() -> Bool {
    guard let counts = layout.counts(bytes) else { return false }
    if readsModules, counts.moduleBytes != self.counts.moduleBytes, let list = readModules(counts.moduleBytes)
    {
      modules = list
    }
    if counts.lostNames > 0 {
      unnamed =
        bytes.read(at: RecordingLayout.unnamedOffset, count: RecordingLayout.unnamedSize) ?? unnamed
    }
    self.counts = counts
    while rings.count < counts.rings { rings.append(Ring()) }
    fill = 0
    for index in rings.indices { poll(index) }
    names.read(upTo: counts.names, from: bytes, at: layout.names)
    return true
  }

  private func header(of index: Int) -> [UInt8]? {
    bytes.read(at: layout.rings + UInt64(index * RecordingLayout.ringSize), count: RecordingLayout.ringSize)
  }

  private func poll(_ index: Int) {
    guard let header = header(of: index) else { return }
    let head: UInt64 = header.number(at: 0)!
    let capacity = UInt64(layout.capacity)
    // A head that has gone back is damage.
    guard head > rings[index].next else { return }
    var first = rings[index].next
    fill = max(fill, Double(head - first) / Double(capacity))
    if head - first > capacity {
      losses.overwritten &+= head - capacity - first
      first = head - capacity
    }
    // A process that is watched for long, or a forged recording, must not fill the memory.
    let kept = rings.reduce(0) { $0 + $1.records.count }
    let end = first + min(head - first, UInt64(max(Self.mostRecords - kept, 0)))
    var records = read(index, first..<end)
    losses.unreadable &+= head - first - UInt64(records.count)
    // What was overwritten meanwhile, and what is being overwritten now.
    guard let after = self.header(of: index), let newHead: UInt64 = after.number(at: 0), newHead >= head
    else { return }
    if newHead >= capacity {
      let firstValid = newHead - capacity + 1
      if firstValid > first {
        let stale = Int(min(firstValid - first, UInt64(records.count)))
        // The record that may be in the making is not lost but old.
        losses.overwritten &+= UInt64(stale)
        records.removeFirst(stale)
        first += UInt64(stale)
      }
    }
    let isAfterGap = first > rings[index].next
    if isAfterGap { rings[index].owner = nil }
    rings[index].next = head
    assignThreads(&records, in: index, latest: header.number(at: 12)!)
    if isAfterGap, let record = records.first {
      rings[index].gaps.append(RecordedGap(time: record.ticks, thread: record.thread))
    }
    takeTaskNames(&records, of: index)
    rings[index].records += records
    // Not if the owner was just writing them.
    if header[16..<32] == after[16..<32] {
      rings[index].ticks = after.number(at: 16)!
      rings[index].uptime = after.number(at: 24)!
    }
    let name = after[40..<56].prefix { $0 != 0 }
    threadNames[after.number(at: 12)!] = String(decoding: name, as: UTF8.self)
  }

  /// A ring may pass from thread to thread; its new owner's first record names both.
  private func assignThreads(_ records: inout [Record], in ring: Int, latest: UInt32) {
    let began = RecordedEvent.Kind.threadBegan.rawValue
    func changesOwner(_ record: Record) -> Bool { UInt8(record.eventAndNode >> 56) == began }
    var owner =
      rings[ring].owner ?? records.first(where: changesOwner).map { UInt32(truncatingIfNeeded: $0.function) }
      ?? latest
    for index in records.indices {
      if changesOwner(records[index]) { owner = UInt32(truncatingIfNeeded: records[index].object) }
      records[index].thread = owner
    }
    if !records.isEmpty { rings[ring].owner = owner }
  }

  /// Takes the parts of names out of the records. A name whose beginning is gone is not known.
  private func takeTaskNames(_ records: inout [Record], of ring: Int) {
    let kind = UInt64(RecordedEvent.Kind.taskName.rawValue)
    guard records.contains(where: { $0.eventAndNode >> 56 == kind }) else { return }
    records.removeAll { record in
      guard record.eventAndNode >> 56 == kind else { return false }
      let (task, part) = (record.eventAndNode >> 8 & (1 << 48 - 1), Int(record.eventAndNode & 0xFF))
      if part == 0 { (rings[ring].task, rings[ring].taskName) = (task, []) }
      guard task == rings[ring].task, rings[ring].taskName.count == part * 16 else { return true }
      for word in [record.object, record.function] {
        withUnsafeBytes(of: word.littleEndian) { rings[ring].taskName += $0 }
      }
      let text = rings[ring].taskName.prefix { $0 != 0 }
      if text.count < (part + 1) * 16 {
        if tasks.count >= Self.mostTasks { tasks = [:] }
        tasks[task] = String(decoding: text, as: UTF8.self)
      }
      return true
    }
  }

  /// Records that are kept at the same time; 40 bytes each.
  private static let mostRecords = 1 << 26

  /// Tasks with names that are known at the same time: a process may be watched for days.
  private static let mostTasks = 1 << 17

  private func read(_ index: Int, _ range: Range<UInt64>) -> [Record] {
    var records: [Record] = []
    records.reserveCapacity(range.count)
    let start = layout.records + UInt64(index * layout.capacity * RecordingLayout.recordSize)
    var place = range.lowerBound
    while place < range.upperBound {
      let slot = place & UInt64(layout.capacity - 1)
      let count = min(UInt64(layout.capacity) - slot, range.upperBound - place)
      guard
        let piece = bytes.read(
          at: start + slot * UInt64(RecordingLayout.recordSize),
          count: Int(count) * RecordingLayout.recordSize)
      else { return records }
      piece.withUnsafeBytes { raw in
        for offset in stride(from: 0, to: raw.count, by: RecordingLayout.recordSize) {
          func word(_ at: Int) -> UInt64 {
            UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: offset + at, as: UInt64.self))
          }
          records.append(Record(ticks: word(0), eventAndNode: word(8), object: word(16), function: word(24)))
        }
      }
      place += count
    }
    return records
  }

  /// The latest name of each queue that has one, in the order of their first.
  package var latestNames: [RecordedName] { names.latest(without: unnamed) }

  // MARK: Result

  package var hasEvents: Bool { rings.contains { !$0.records.isEmpty } }

  /// Everything read so far and not taken, in the order of time.
  package func recording() -> RecordedRun {
    let clock = RecordedClock(layout, rings.map { ($0.ticks, $0.uptime) } + [clocks].compactMap { $0 })
    var events: [RecordedEvent] = []
    var damaged: UInt64 = 0
    events.reserveCapacity(rings.reduce(0) { $0 + $1.records.count })
    for ring in rings {
      for record in ring.records {
        guard let kind = RecordedEvent.Kind(rawValue: UInt8(record.eventAndNode >> 56)) else {
          damaged += 1
          continue
        }
        let time = clock.uptime(record.ticks)
        guard clock.isPossible(time) else {
          damaged += 1
          continue
        }
        events.append(
          RecordedEvent(
            time: time, thread: record.thread, kind: kind,
            node: record.eventAndNode & (1 << 56 - 1), object: record.object, function: record.function))
      }
    }
    // Records of one thread keep their order.
    let order = events.indices.sorted { (events[$0].time, $0) < (events[$1].time, $1) }
    var names = Array(names.new)
    for index in names.indices { names[index].time = clock.uptime(names[index].time) }
    names.sort { $0.time < $1.time }
    let gaps = rings.flatMap(\.gaps).map { RecordedGap(time: clock.uptime($0.time), thread: $0.thread) }
    var recording = RecordedRun(
      process: layout.process, start: layout.firstUptime, wall: layout.firstWall,
      events: order.map { events[$0] },
      threads: threadNames, names: names, modules: modules, tasks: tasks, overwritten: losses.overwritten,
      withoutRing: counts.lostEvents &- min(losses.before, counts.lostEvents) &+ missed,
      unreadable: losses.unreadable &+ damaged,
      gaps: gaps.sorted { $0.time < $1.time }, lostNames: counts.lostNames, unnamed: unnamed,
      pauses: pauses)
    recording.end = watchedUntil
    return recording
  }

  /// As `recording()`; the next one has later events and names only.
  package func take() -> RecordedRun {
    let taken = recording()
    names.take()
    threadNames = [:]
    // Damaged records are counted once.
    losses.unreadable = taken.unreadable
    pauses = []
    for index in rings.indices { (rings[index].records, rings[index].gaps) = ([], []) }
    return taken
  }

  private func readModules(_ count: Int) -> [RecordedModule]? {
    guard let list = bytes.read(at: layout.modules, count: count) else { return nil }
    return list.split(separator: UInt8(ascii: "\n")).compactMap { line in
      guard let space = line.firstIndex(of: UInt8(ascii: " ")),
        let base = UInt64(String(decoding: line[..<space], as: UTF8.self), radix: 16)
      else { return nil }
      return RecordedModule(base: base, path: String(decoding: line[(space + 1)...], as: UTF8.self))
    }
  }
}

/// Timers of both clocks that threads of one shard have set.
final class TimerTable {
  /// One clock's timers. `concourse report` reads it.
  struct Side {
    let isWall: Bool
    var queue = TimerQueue()
  }

  let lock = Lock(.timerTable)
  // GUARDED BY `lock`, which excludes overlapping accesses without checks.
  @exclusivity(unchecked) private var uptime = Side(isWall: false)
  @exclusivity(unchecked) private var wall = Side(isWall: true)
  /// The earliest time of each clock, `.max` for none: what other threads read of a table. Written under `lock`. Not in
  /// the table, since a thread that reports reads it when no timer is due here.
  private let earliest: Earliest
  /// Keeps the lock of the table that is made next out of this one's cache lines, and of the lines that processors fetch
  /// with these.
  private let space: (Line, Line) = ((0, 0, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 0, 0, 0))

  private typealias Line = (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64)
  typealias Word = UnsafeMutablePointer<Atomic<UInt64>>
  typealias Earliest = (uptime: Word, wall: Word)

  init(_ earliest: Earliest) {
    self.earliest = earliest
  }

  // MARK: Under the lock

  /// - Parameter age: the least number that orders the timer among those of its time.
  /// - Returns: whether the timer is now the earliest of its clock here.
  func insert(_ time: UInt64, isWall: Bool, _ payload: TimerHeap.Payload, age: UInt64) -> Bool {
    isWall
      ? Self.insert(time, payload, age, into: &wall.queue, earliest.wall.pointee)
      : Self.insert(time, payload, age, into: &uptime.queue, earliest.uptime.pointee)
  }

  @inline(__always)
  private static func insert(
    _ time: UInt64, _ payload: TimerHeap.Payload, _ age: UInt64, into queue: inout TimerQueue,
    _ earliest: borrowing Atomic<UInt64>
  ) -> Bool {
    queue.insert(time, payload, age: age)
    // ORDERING: relaxed; only holders of the lock write it.
    guard time < earliest.load(ordering: .relaxed) else { return false }
    // ORDERING: sequentially consistent; see `TimerTables.first`.
    earliest.store(time, ordering: .sequentiallyConsistent)
    return true
  }

  /// Removes a timer, if it is set here. The caller takes over the heap's reference.
  func dequeue(_ timer: LoopTimer) -> Bool {
    PlainMemory.writes(beside: timer.homePlace)
    timer.isTaken = false
    guard let place = timer.place else { return false }
    if timer.isWall {
      wall.queue.remove(at: place)
      Self.publish(wall.queue.first, earliest.wall.pointee)
    } else {
      uptime.queue.remove(at: place)
      Self.publish(uptime.queue.first, earliest.uptime.pointee)
    }
    return true
  }

  /// Moves the entries of times up to `now` into `due`, the earliest first.
  /// - Returns: the first entry of such a time that is left.
  func take(
    _ now: UInt64, isWall: Bool, atMost count: Int, into due: inout [TimerHeap.Entry]
  ) -> TimerHeap.Entry? {
    isWall
      ? Self.take(now, count, &wall.queue, earliest.wall.pointee, &due)
      : Self.take(now, count, &uptime.queue, earliest.uptime.pointee, &due)
  }

  private static func take(
    _ now: UInt64, _ count: Int, _ queue: inout TimerQueue, _ earliest: borrowing Atomic<UInt64>,
    _ due: inout [TimerHeap.Entry]
  ) -> TimerHeap.Entry? {
    let limit = due.count + count
    while due.count < limit, let entry = queue.popDue(now) { due.append(entry) }
    publish(queue.first, earliest)
    guard let left = queue.earliest, left.time <= now else { return nil }
    return left
  }

  /// Marks what `take` took from one of several tables, so that it can be put back.
  func mark(_ taken: [TimerHeap.Entry]) {
    for entry in taken {
      guard case .timer(let timer) = entry.payload else { continue }
      timer._withUnsafeGuaranteedRef { timer in
        PlainMemory.writes(beside: timer.homePlace)
        timer.isTaken = true
      }
    }
  }

  /// Puts back what `take` took.
  func restore(_ entry: TimerHeap.Entry, isWall: Bool) {
    if isWall {
      wall.queue.restore(entry)
      Self.publish(wall.queue.first, earliest.wall.pointee)
    } else {
      uptime.queue.restore(entry)
      Self.publish(uptime.queue.first, earliest.uptime.pointee)
    }
  }

  /// Publishes the earliest time after a removal, or for the calling thread, which reports.
  @inline(__always)
  private static func publish(_ first: UInt64?, _ earliest: borrowing Atomic<UInt64>) {
    let first = first ?? .max
    // ORDERING: relaxed; only holders of the lock write it.
    guard first != earliest.load(ordering: .relaxed) else { return }
    // ORDERING: releasing; a thread that sees that a timer is gone sees that a report has begun, if one took it
    // (`TimerTables.hasPassed`).
    earliest.store(first, ordering: .releasing)
  }

  /// How many timers are set here.
  var count: Int { uptime.queue.count + wall.queue.count }
}

// SAFETY: GUARDED BY `lock`; `earliest` has atomics.
extension TimerTable: @unchecked Sendable {}

/// Timers of one clock, the earliest first; equal times keep the order of insertion.
///
/// Most delays of a program are the same few, so most timers come in the order of their times. Of these, the ones that
/// cannot be cancelled are in a line, where insertion and removal are O(1). All others are in a heap.
struct TimerQueue {
  typealias Entry = TimerHeap.Entry

  private var heap = TimerHeap()
  private var line = TimerLine()
  private var inserted: UInt64 = 0

  /// The earliest time, or nil.
  var first: UInt64? {
    guard let inLine = line.first else { return heap.first }
    guard let inHeap = heap.first else { return inLine.time }
    return min(inLine.time, inHeap)
  }

  /// The earliest entry, or nil.
  var earliest: Entry? {
    guard let inLine = line.first, let inHeap = heap.earliest else { return line.first ?? heap.earliest }
    return Entry.isBefore(inLine, inHeap) ? inLine : inHeap
  }

  var count: Int { heap.count + line.count }

  /// - Parameter age: The least number that orders the timer among those of its time.
  mutating func insert(_ time: UInt64, _ payload: TimerHeap.Payload, age: UInt64 = 0) {
    inserted = max(inserted + 1, age)
    let entry = Entry(time: time, sequence: inserted, payload: payload)
    switch payload {
    case .submission: if !line.append(entry) { heap.insert(entry) }
    case .timer: heap.insert(entry)
    }
  }

  /// Removes the earliest entry if its time is not after `now`.
  mutating func popDue(_ now: UInt64) -> Entry? {
    if let inLine = line.first, heap.earliest.map({ Entry.isBefore(inLine, $0) }) ?? true {
      guard inLine.time <= now else { return nil }
      line.removeFirst()
      return inLine
    }
    return heap.popDue(now)
  }

  /// Inserts an entry that has been removed.
  mutating func restore(_ entry: Entry) { heap.insert(entry) }

  /// Removes a timer by its index in the heap.
  mutating func remove(at place: Int) { heap.remove(at: place) }
}

/// Entries that came in the order of their times.
private struct TimerLine {
  private var entries: [TimerHeap.Entry] = []
  /// Index of the first entry. Those before it have been removed.
  private var head = 0

  var first: TimerHeap.Entry? { head < entries.count ? entries[head] : nil }
  var count: Int { entries.count - head }

  /// - Returns: false if the entry is earlier than the last.
  mutating func append(_ entry: TimerHeap.Entry) -> Bool {
    if let last = entries.last, last.time > entry.time { return false }
    entries.append(entry)
    return true
  }

  mutating func removeFirst() {
    head += 1
    if head == entries.count {
      // Frees the memory of a large number of timers.
      entries.removeAll(keepingCapacity: entries.capacity <= 1024)
      head = 0
    } else if head >= 1024 && head > entries.count / 2 {
      if entries.capacity / 4 > count {
        // Frees the memory of a large number of timers before all of them are due.
        entries = Array(entries[head...])
      } else {
        entries.removeSubrange(0..<head)
      }
      head = 0
    }
  }
}

/// Timers of one clock, the earliest first: a heap with four children per node, so that a pop touches few cache lines.
/// Insert, remove and pop are O(log n). Equal times keep the order of insertion.
struct TimerHeap {
  /// What becomes due.
  enum Payload {
    /// A submission that cannot be cancelled: the node and its queue, retained.
    case submission(NodePointer, Unmanaged<DispatchQueue>)
    /// A timer that stores its index in this heap; retained.
    case timer(Unmanaged<LoopTimer>)
  }

  struct Entry {
    /// When, in nanoseconds of the heap's clock.
    let time: UInt64
    /// A number that grows with each insertion, to order equal times.
    let sequence: UInt64
    let payload: Payload

    static func isBefore(_ a: Entry, _ b: Entry) -> Bool {
      a.time != b.time ? a.time < b.time : a.sequence < b.sequence
    }
  }

  private var entries: [Entry] = []

  /// The earliest time, or nil.
  var first: UInt64? { entries.first?.time }

  var earliest: Entry? { entries.first }

  var count: Int { entries.count }

  mutating func insert(_ entry: Entry) {
    entries.append(entry)
    rise(entry, from: entries.count - 1)
  }

  /// Removes the earliest entry if its time is not after `now`.
  mutating func popDue(_ now: UInt64) -> Entry? {
    guard let first = entries.first, first.time <= now else { return nil }
    removeEntry(at: 0)
    return first
  }

  /// Removes the entry at `place`.
  mutating func remove(at place: Int) { removeEntry(at: place) }

  // MARK: Moving

  /// Stores an entry, and its index in its timer.
  @inline(__always)
  private mutating func put(_ entry: Entry, at place: Int) {
    entries[place] = entry
    if case .timer(let timer) = entry.payload { timer._withUnsafeGuaranteedRef { $0.place = place } }
  }

  private mutating func rise(_ entry: Entry, from start: Int) {
    var hole = start
    while hole > 0 {
      let parent = (hole - 1) / 4
      guard Entry.isBefore(entry, entries[parent]) else { break }
      put(entries[parent], at: hole)
      hole = parent
    }
    put(entry, at: hole)
  }

  private mutating func sink(_ entry: Entry, from start: Int) {
    var hole = start
    while true {
      let firstChild = 4 * hole + 1
      guard firstChild < entries.count else { break }
      var least = firstChild
      for child in firstChild..<min(firstChild + 4, entries.count)
      where Entry.isBefore(entries[child], entries[least]) {
        least = child
      }
      guard Entry.isBefore(entries[least], entry) else { break }
      put(entries[least], at: hole)
      hole = least
    }
    put(entry, at: hole)
  }

  private mutating func removeEntry(at place: Int) {
    if case .timer(let timer) = entries[place].payload {
      timer._withUnsafeGuaranteedRef { $0.place = nil }
    }
    let last = entries.removeLast()
    if place < entries.count {
      if place > 0 && Entry.isBefore(last, entries[(place - 1) / 4]) {
        rise(last, from: place)
      } else {
        sink(last, from: place)
      }
    }
    // Frees the memory of a large number of timers.
    if entries.capacity > 1024 && entries.count < entries.capacity / 4 {
      var smaller: [Entry] = []
      smaller.reserveCapacity(entries.count * 2)
      smaller.append(contentsOf: entries)
      entries = smaller
    }
  }
}

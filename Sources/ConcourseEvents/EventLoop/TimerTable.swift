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

/// Timers of one clock, the earliest first; equal times keep the order of insertion.
///
/// Most delays of a program are the same few, so most timers come in the order of their times. Those that
/// nobody can call off stand in a line then, where coming and going are O(1); all others are in a heap.
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

  var count: Int { heap.count + line.count }

  mutating func insert(_ time: UInt64, _ payload: TimerHeap.Payload) {
    inserted += 1
    let entry = Entry(time: time, sequence: inserted, payload: payload)
    switch payload {
    case .submission: if !line.append(entry) { heap.insert(entry) }
    case .timer: heap.insert(entry)
    }
  }

  /// Takes the earliest entry if its time is not after `now`.
  mutating func popDue(_ now: UInt64) -> Entry? {
    if let inLine = line.first, heap.earliest.map({ Entry.isBefore(inLine, $0) }) ?? true {
      guard inLine.time <= now else { return nil }
      line.removeFirst()
      return inLine
    }
    return heap.popDue(now)
  }

  /// Takes out a timer by its place.
  mutating func remove(at place: Int) { heap.remove(at: place) }
}

/// Entries in the order of their times, by the order in which they came.
private struct TimerLine {
  private var entries: [TimerHeap.Entry] = []
  /// Where the line begins; what stands before has gone.
  private var head = 0

  var first: TimerHeap.Entry? { head < entries.count ? entries[head] : nil }
  var count: Int { entries.count - head }

  /// - Returns: false when the entry's place is not at the end.
  mutating func append(_ entry: TimerHeap.Entry) -> Bool {
    if let last = entries.last, last.time > entry.time { return false }
    entries.append(entry)
    return true
  }

  mutating func removeFirst() {
    head += 1
    if head == entries.count {
      // A crowd of timers has gone: so does its memory.
      entries.removeAll(keepingCapacity: entries.capacity <= 1024)
      head = 0
    } else if head >= 1024 && head > entries.count / 2 {
      entries.removeSubrange(0..<head)
      head = 0
    }
  }
}

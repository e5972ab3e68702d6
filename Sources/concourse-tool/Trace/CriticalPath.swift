/// The chain of causes behind the end of a recording, found backwards from what ended last: an item's run, its wait
/// in the queue for the item before it or for a thread, the run of the item that submitted it, and so on.
struct CriticalPath {
  enum Cause: Equatable {
    /// An item ran. Numbers are places in the timeline's arrays.
    case run(item: Int)
    /// An item was ready, and waited for the thread or the item before it.
    case queued(item: Int)
    /// The time of a delayed item had not come.
    case delayed(item: Int)
    /// A thread waited. What ended that is the step before, if it is recorded.
    case waited(wait: Int)
  }

  struct Step: Equatable {
    var cause: Cause
    var start: UInt64
    var end: UInt64

    var duration: UInt64 { end - start }
  }

  /// In the order of time, each from the end of the one before.
  private(set) var steps: [Step] = []

  private let timeline: Timeline
  private let serial: Set<UInt64>
  /// The items of each queue, and where an item is among those of its queue.
  private let itemsByQueue: [UInt64: [Int]]
  private var placeInQueue: [Int]
  private var waitsOfItem: [Int: [Int]] = [:]
  /// The items in the order of their ends.
  private let ends: [Int]
  private let endsByQueue: [UInt64: [Int]]

  init(_ timeline: Timeline, serial: Set<UInt64>) {
    self.timeline = timeline
    self.serial = serial
    itemsByQueue = timeline.itemsByQueue
    ends = timeline.items.indices.sorted { timeline.items[$0].end < timeline.items[$1].end }
    endsByQueue = Dictionary(grouping: ends) { timeline.items[$0].queue }
    placeInQueue = Array(repeating: 0, count: timeline.items.count)
    for members in itemsByQueue.values {
      for (place, item) in members.enumerated() { placeInQueue[item] = place }
    }
    for (place, wait) in timeline.waits.enumerated() {
      if let item = wait.item { waitsOfItem[item, default: []].append(place) }
    }
    follow()
    steps.reverse()
  }

  private mutating func follow() {
    let items = timeline.items
    let waits = timeline.waits
    var item = items.indices.max {
      (items[$0].end, items[$1].start) < (items[$1].end, items[$0].start)
    }
    // A thread that waits outside an item.
    var wait = waits.indices.filter { waits[$0].item == nil }.max { waits[$0].end < waits[$1].end }
    if let last = wait, let end = item.map({ items[$0].end }), waits[last].end < end { wait = nil }
    var time = wait.map { waits[$0].end } ?? item.map { items[$0].end } ?? 0
    // Each step leads back in time, or to an item's beginning; damaged times do not make a circle.
    for _ in 0...(items.count + waits.count) * 2 {
      if let waiting = wait {
        wait = nil
        let begin = waits[waiting].start
        if let cause = end(of: waiting, before: time) {
          add(.waited(wait: waiting), from: items[cause].end, to: time)
          (item, time) = (cause, min(items[cause].end, time))
        } else {
          add(.waited(wait: waiting), from: begin, to: time)
          (item, time) = (waits[waiting].item, min(begin, time))
        }
        continue
      }
      guard let running = item else { return }
      let start = items[running].start
      let own = waitsOfItem[running] ?? []
      let before = Self.count(own, before: time) { waits[$0].start }
      if before > 0 {
        let last = own[before - 1]
        add(.run(item: running), from: waits[last].end, to: time)
        (wait, time) = (last, min(waits[last].end, time))
        continue
      }
      add(.run(item: running), from: start, to: time)
      time = min(start, time)
      guard let submission = items[running].submission.map({ timeline.submissions[$0] }) else { return }
      if let before = itemBefore(running), items[before].end > submission.time {
        add(.queued(item: running), from: items[before].end, to: time)
        (item, time) = (before, min(items[before].end, time))
        continue
      }
      add(.queued(item: running), from: submission.time, to: time)
      add(.delayed(item: running), from: submission.call, to: min(submission.time, time))
      (item, time) = (submission.submitter, min(submission.call, time))
    }
  }

  private mutating func add(_ cause: Cause, from start: UInt64, to end: UInt64) {
    if start < end { steps.append(Step(cause: cause, start: start, end: end)) }
  }

  /// The item that ran on a serial queue before this one.
  private func itemBefore(_ item: Int) -> Int? {
    let queue = timeline.items[item].queue
    guard serial.contains(queue), placeInQueue[item] > 0 else { return nil }
    return itemsByQueue[queue]![placeInQueue[item] - 1]
  }

  /// The item whose end let a wait end: of `sync` the last one on the queue, of a group or a work item the last one at
  /// all. Who signals a semaphore is not recorded.
  private func end(of wait: Int, before time: UInt64) -> Int? {
    let waiting = timeline.waits[wait]
    guard waiting.hasEnded else { return nil }
    let candidates: [Int]
    switch waiting.kind {
    case 1, 2: candidates = endsByQueue[waiting.object] ?? []
    case 3, 5: candidates = ends
    default: return nil
    }
    let items = timeline.items
    // An end may be recorded a moment after it has let others go on.
    var place = Self.count(candidates, before: time &+ 50_000) { items[$0].end }
    while place > 0, items[candidates[place - 1]].end > waiting.start {
      place -= 1
      let item = items[candidates[place]]
      if item.thread != waiting.thread && item.start < time { return candidates[place] }
    }
    return nil
  }

  /// How many of `places`, in the order of their times, are before `time`.
  private static func count(_ places: [Int], before time: UInt64, _ key: (Int) -> UInt64) -> Int {
    var low = 0
    var high = places.count
    while low < high {
      let middle = (low + high) / 2
      if key(places[middle]) < time { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

import CBench

extension Row {
  /// Items that one unit submits. A thread has at most two units pending.
  private static let window = 1_000

  static let submissions = [oneSerialQueue, serialQueueEach, globalQueue, group]

  private static let oneSerialQueue = Row(
    "async-one-serial-queue", "a thread for each processor asyncs onto the same serial queue"
  ) { units in
    let queue = DispatchQueue(label: "serial")
    let items = Cell()
    let time = elapsed(onThreads: processors) { _ in submit(units, to: queue, countedBy: items) }
    verify(items.value, equals: processors * units * window, "items that excluded each other")
    return (items.value, time)
  }

  private static let serialQueueEach = Row(
    "async-serial-queue-each", "a thread for each processor asyncs onto a serial queue of its own"
  ) { units in
    let queues = (0..<processors).map { (DispatchQueue(label: "serial \($0)"), Cell()) }
    let time = elapsed(onThreads: processors) { submit(units, to: queues[$0].0, countedBy: queues[$0].1) }
    let items = queues.map(\.1.value).reduce(0, +)
    verify(items, equals: processors * units * window, "items")
    return (items, time)
  }

  /// The items of a serial queue run in order, so the last one of a unit answers for all of them.
  private static func submit(_ units: Int, to queue: DispatchQueue, countedBy items: Cell) {
    let room = DispatchSemaphore(value: 0)
    room.signal()
    room.signal()
    for _ in 0..<units {
      room.wait()
      for _ in 1..<window { queue.async { items.add(1) } }
      queue.async {
        items.add(1)
        room.signal()
      }
    }
    room.wait()
    room.wait()
  }

  private static let globalQueue = Row(
    "async-global-queue", "a thread for each processor asyncs onto the default global queue"
  ) { units in
    let queue = DispatchQueue.global()
    let time = elapsed(onThreads: processors) { _ in
      let halves = [Countdown(), Countdown()]
      for unit in 0..<units {
        let half = halves[unit % 2]
        half.wait()
        half.begin(window)
        for _ in 0..<window { queue.async { half.finishOne() } }
      }
      for half in halves { half.wait() }
    }
    return (processors * units * window, time)
  }

  private static let group = Row(
    "group", "a thread for each processor asyncs 1,000 items of a group, waits for it, and begins again"
  ) { units in
    let queue = DispatchQueue.global()
    let time = elapsed(onThreads: processors) { _ in
      let slots = Slots(count: window)
      let group = DispatchGroup()
      for _ in 0..<units {
        for index in 0..<window { queue.async(group: group) { slots.mark(index) } }
        group.wait()
        verify(slots.takeMarkedOnce(), equals: window, "items that ran exactly once")
      }
      slots.free()
    }
    return (processors * units * window, time)
  }
}

/// Counts a unit of items down that run in any order, on cache lines of its own.
///
/// SAFETY: the number is atomic while items run; `begin` writes it while none is pending.
final class Countdown: @unchecked Sendable {
  private let left: UnsafeMutablePointer<Int>
  private let isDone = DispatchSemaphore(value: 0)

  init() {
    // SAFETY: large and aligned enough for one Int, which is initialized here.
    let lines = UnsafeMutableRawPointer.allocate(byteCount: 128, alignment: 128)
    left = lines.bindMemory(to: Int.self, capacity: 1)
    left.initialize(to: 0)
    isDone.signal()
  }

  // SAFETY: no item is left that uses it: each holds a reference.
  deinit { left.deallocate() }

  func begin(_ count: Int) { left.pointee = count }

  func finishOne() {
    let left = bench_count_down(left)
    if left == 0 { isDone.signal() }
    verify(left >= 0, equals: true, "no item ran twice")
  }

  /// Returns when all items of the unit have run; at once before the first unit.
  func wait() { isDone.wait() }
}

/// Decides which of a descriptor's operations may run: stream operations one after another in each direction, random
/// operations side by side, and a barrier alone, after everything submitted before it.
struct DescriptorSchedule<Operation: AnyObject, Barrier> {
  /// Operations of one lane wait for one another.
  enum Lane {
    case streamRead, streamWrite, random
  }

  /// What may start now. It counts as running from then on.
  enum Start {
    case operation(Operation)
    case barrier(Barrier)
  }

  /// What has been started and has not ended.
  private struct Running {
    var streamRead = false
    var streamWrite = false
    var randoms = 0

    var isNothing: Bool { !streamRead && !streamWrite && randoms == 0 }
  }

  /// The operations between two barriers.
  private struct Stretch {
    var streamReads = Fifo<Operation>()
    var streamWrites = Fifo<Operation>()
    var randoms = Fifo<Operation>()
    /// The barrier behind them; nil at the end of the schedule.
    var barrier: Barrier?

    var isEmpty: Bool { streamReads.isEmpty && streamWrites.isEmpty && randoms.isEmpty }

    /// Removes an operation whose lane has room beside the operations that run.
    mutating func takeStartable(beside running: inout Running) -> Operation? {
      if !running.streamRead && !streamReads.isEmpty {
        running.streamRead = true
        return streamReads.removeFirst()
      }
      if !running.streamWrite && !streamWrites.isEmpty {
        running.streamWrite = true
        return streamWrites.removeFirst()
      }
      if running.randoms < randomWidth && !randoms.isEmpty {
        running.randoms += 1
        return randoms.removeFirst()
      }
      return nil
    }
  }

  /// How many random operations run side by side: enough to keep a disk busy, few enough for the pool.
  static var randomWidth: Int { 16 }

  /// The stretches that end with a barrier.
  private var stretches = Fifo<Stretch>()
  private var last = Stretch()
  private var running = Running()
  private var barrierRuns = false

  /// Whether nothing runs or waits.
  var isIdle: Bool { stretches.isEmpty && last.isEmpty && !isRunning }

  private var isRunning: Bool { !running.isNothing || barrierRuns }

  mutating func add(_ operation: Operation, _ lane: Lane) {
    switch lane {
    case .streamRead: last.streamReads.append(operation)
    case .streamWrite: last.streamWrites.append(operation)
    case .random: last.randoms.append(operation)
    }
  }

  mutating func addBarrier(_ barrier: Barrier) {
    last.barrier = barrier
    stretches.append(last)
    last = Stretch()
  }

  /// An operation that was started has ended its input or output.
  mutating func finish(_ lane: Lane) {
    switch lane {
    case .streamRead: running.streamRead = false
    case .streamWrite: running.streamWrite = false
    case .random: running.randoms -= 1
    }
  }

  mutating func finishBarrier() { barrierRuns = false }

  /// The next operation or barrier that may start.
  mutating func start() -> Start? {
    if barrierRuns { return nil }
    if let operation = stretches.isEmpty
      ? last.takeStartable(beside: &running) : stretches.first.takeStartable(beside: &running)
    {
      return .operation(operation)
    }
    guard !stretches.isEmpty && stretches.first.isEmpty && !isRunning else { return nil }
    barrierRuns = true
    return .barrier(stretches.removeFirst().barrier!)
  }

  /// Removes the operations that have not started and that satisfy `isMeant`, in their order within each lane.
  mutating func withdraw(where isMeant: (Operation) -> Bool) -> [Operation] {
    var withdrawn: [Operation] = []
    func filter(_ stretch: inout Stretch) {
      withdrawn += stretch.streamReads.removeAll(where: isMeant)
      withdrawn += stretch.streamWrites.removeAll(where: isMeant)
      withdrawn += stretch.randoms.removeAll(where: isMeant)
    }
    stretches.changeEach(filter)
    filter(&last)
    return withdrawn
  }
}

/// A queue: first in, first out, O(1) each on average.
struct Fifo<Element> {
  /// Empty places at the front that are kept at most, and the capacity that an empty queue keeps at most.
  private static var mostEmpty: Int { 64 }

  private var elements: [Element?] = []
  private var head = 0

  var isEmpty: Bool { head == elements.count }
  var count: Int { elements.count - head }

  /// The oldest; there must be one.
  var first: Element {
    get { elements[head]! }
    _modify { yield &elements[head]! }
  }

  mutating func append(_ element: Element) { elements.append(element) }

  mutating func removeFirst() -> Element {
    let element = elements[head]!
    elements[head] = nil
    head += 1
    if head == elements.count {
      elements.removeAll(keepingCapacity: head <= Self.mostEmpty)
      head = 0
    } else if head >= Self.mostEmpty && head * 2 >= elements.count {
      elements.removeFirst(head)
      head = 0
    }
    return element
  }

  mutating func changeEach(_ body: (inout Element) -> Void) {
    for index in head..<elements.count { body(&elements[index]!) }
  }

  /// Removes the elements that satisfy `isMeant`.
  mutating func removeAll(where isMeant: (Element) -> Bool) -> [Element] {
    var removed: [Element] = []
    var kept: [Element?] = []
    for case let element? in elements[head...] {
      if isMeant(element) { removed.append(element) } else { kept.append(element) }
    }
    if !removed.isEmpty { (elements, head) = (kept, 0) }
    return removed
  }
}

/// One pass over the waits of the registered threads, for cycles that can be reached from some of them.
///
/// A pass holds the locks for a slice of steps at a time, so that calls which need one of them wait for a slice at most.
/// Threads may go on between two slices. So the pass keeps ids instead of records, and reads all edges of a cycle that it
/// finds once more, under both locks. The threads that have a reader's place on a queue are one node of the graph, which
/// is visited once, however many threads wait for it.
struct WaitSearch {
  enum Node: Hashable {
    case thread(UInt32)
    /// The threads with a place on the concurrent queue, or in the group, at this address.
    case readers(UnsafeRawPointer)
  }

  private enum Mark {
    case isOnPath, isLeft
  }

  /// The steps of a slice.
  static var slice: Int { Int(Tuning.value(16, inModel: 8)) }

  let starts: [Node]
  /// The steps after which it stops, to be repeated later.
  let limit: Int
  private var begun = 0
  private var path: [(node: Node, rest: [Node])] = []
  private var marks: [Node: Mark] = [:]
  /// The registered threads by the queues on which they have a place, and the number of lists that have been read.
  private var readers: [UnsafeRawPointer: [UInt32]] = [:]
  private var listsRead = 0

  private(set) var steps = 0
  /// Whether a part of the graph changed meanwhile, or a queue was between a push and its note. Something may have been
  /// missed then.
  private(set) var isIncomplete = false

  private(set) var isOver = false

  init(from starts: [Node], limit: Int) { (self.starts, self.limit) = (starts, limit) }

  /// Goes on for one slice. Call under the lock of `BlockedThreads` and `targetLock`.
  /// - Parameter report: called with each cycle that has not been reported.
  mutating func goOn(in threads: BlockedThreads, report: ([WaitEdge]) -> Void) {
    let end = steps + Self.slice
    while steps < end {
      steps += 1
      guard let last = path.indices.last else {
        isOver = begun == starts.count
        if isOver { return }
        begun += 1
        if marks[starts[begun - 1]] == nil { enter(starts[begun - 1], threads) }
        continue
      }
      if case .readers(let queue) = path[last].node, path[last].rest.isEmpty, marks[path[last].node] == nil {
        // The node has been reached, but the lists have not been read.
        guard listsRead == BlockedThreads.listCount else {
          readList(threads)
          continue
        }
        marks[path[last].node] = .isOnPath
        path[last].rest = (readers[queue] ?? []).map { .thread($0) }
      }
      guard let next = path[last].rest.popLast() else {
        marks[path.removeLast().node] = .isLeft
        continue
      }
      switch marks[next] {
      case nil: enter(next, threads)
      case .isLeft: break
      case .isOnPath: confirm(from: next, threads, report)
      }
    }
  }

  private mutating func enter(_ node: Node, _ threads: BlockedThreads) {
    guard case .thread(let id) = node else { return path.append((node, [])) }
    marks[node] = .isOnPath
    var rest: [Node] = []
    if let blocked = threads.find(id) {
      let ahead = threads.ahead(of: blocked)
      if ahead.isUnnoted { isIncomplete = true }
      if let place = ahead.readersOf { rest.append(.readers(place)) }
      if let owner = ahead.owner { rest.append(.thread(owner.thread.pointee.thread)) }
    }
    path.append((node, rest))
  }

  private mutating func readList(_ threads: BlockedThreads) {
    threads.visitReaders(list: listsRead) { blocked in
      steps += 1
      for place in blocked.places { readers[place, default: []].append(blocked.thread) }
    }
    listsRead += 1
  }

  /// Reads the edges of the cycle that closes at a node of the path.
  private mutating func confirm(
    from first: Node, _ threads: BlockedThreads, _ report: ([WaitEdge]) -> Void
  ) {
    let ids = path[path.firstIndex { $0.node == first }!...].compactMap { step -> UInt32? in
      if case .thread(let id) = step.node { id } else { nil }
    }
    steps += ids.count
    let cycle = ids.map { threads.find($0) }
    if cycle.contains(where: { $0?.pointee.isReported == true }) { return }
    var edges: [WaitEdge] = []
    for index in cycle.indices {
      guard let from = cycle[index], let to = cycle[(index + 1) % cycle.count],
        let edge = threads.edge(from: from, to: to)
      else {
        isIncomplete = true
        return
      }
      edges.append(edge)
    }
    report(edges)
  }
}

/// How many steps searches may take: at most one twentieth of a processor in the long run.
struct SearchBudget {
  /// Steps in a row, some 5 ms.
  private static let burst = 10_000
  /// Nanoseconds that pay for one step, which takes some 500.
  private static let price: UInt64 = 10_000

  private var debt = 0
  private var paid: UInt64 = 0
  /// The limit of the next pass. A graph that is too large for it gets twice as many steps the next time.
  private(set) var limit = Self.leastLimit
  private static let leastLimit = 4_000

  /// Whether a pass may begin now.
  mutating func allows(at now: UInt64) -> Bool {
    let steps = (now &- paid) / Self.price
    if steps > 0 { (debt, paid) = (steps > UInt64(debt) ? 0 : debt - Int(steps), now) }
    return debt < Self.burst
  }

  mutating func charge(_ steps: Int, isOver: Bool, wasLimited: Bool) {
    debt += steps
    if isOver { limit = Self.leastLimit } else if !wasLimited { limit = min(limit * 2, 64 * Self.leastLimit) }
  }
}

/// The graph of waits. Edges lead from threads to queues and threads, and from queues to their holders and targets.
struct WaitGraph {
  enum Node: Hashable {
    case thread(UInt32)
    case queue(UInt64)
  }

  private(set) var edges: [Node: [Node]] = [:]
  /// The cycles that no time-out ends. Each begins with a thread.
  var cycles: [[Node]] = []

  init(_ snapshot: EngineSnapshot) {
    var hasTimeout: Set<Node> = []
    let members = Members(snapshot)
    for thread in snapshot.threads {
      let node = Node.thread(thread.id)
      edges[node] = members.targets(of: thread)
      if thread.hasTimeout { hasTimeout.insert(node) }
    }
    for queue in snapshot.queues.values {
      edges[.queue(queue.address)] = Self.targets(of: queue, snapshot, members.main)
    }
    findCycles(besides: hasTimeout)
  }

  /// What ends the waits for groups and work items, gathered once for all threads that wait.
  private struct Members {
    private var groups: [UInt64: [Node]] = [:]
    private var workItems: [UInt64: [Node]] = [:]
    let main: ThreadInfo?

    init(_ snapshot: EngineSnapshot) {
      for (address, group) in snapshot.groups { groups[address] = group.queues.map { .queue($0) } }
      for thread in snapshot.threads where thread.group != 0 {
        groups[thread.group, default: []].append(.thread(thread.id))
      }
      for queue in snapshot.queues.values {
        for item in queue.members.workItems { workItems[item, default: []].append(.queue(queue.address)) }
      }
      for (item, runner) in snapshot.runners { workItems[item, default: []].append(.thread(runner)) }
      main = snapshot.threads.first { $0.role == .main }
    }

    func targets(of thread: ThreadInfo) -> [Node] {
      switch thread.wait {
      case .turn(let queue, _), .service(let queue, _): [.queue(queue)]
      case .group(let group): groups[group] ?? []
      case .workItem(let item): workItems[item] ?? []
      case .once(let runner): [.thread(runner)]
      case .mutex(_, let owner): [.thread(owner)]
      case .semaphore, .loop, .engine, .call, .idle, .running: []
      }
    }
  }

  /// What the oldest entry of a queue waits for.
  private static func targets(of queue: QueueInfo, _ snapshot: EngineSnapshot, _ main: ThreadInfo?)
    -> [Node]
  {
    if queue.word.owner != 0 { return [.thread(queue.word.owner)] }
    if queue.word.isSuspended || queue.word.isInactive { return [] }
    if queue.kind == .concurrent && queue.word.readers > 0 && (queue.barrierIsNext || !queue.waiters.isEmpty)
    {
      return queue.holders.map { .thread($0) }
    }
    if queue.kind == .main {
      // Only the main thread serves it. While that sleeps in `dispatchMain`, it serves.
      guard let main, main.isBlocked || !main.frames.isEmpty else { return [] }
      return [.thread(main.id)]
    }
    if queue.word.isEnqueued, let target = snapshot.queues[queue.target], target.kind != .global {
      return [.queue(target.address)]
    }
    return []
  }

  private mutating func findCycles(besides timed: Set<Node>) {
    /// Not by recursion: a path may have as many queues as the process.
    struct Step {
      let node: Node
      var rest: ArraySlice<Node>
    }
    // The place on the path of what is there; -1 for what has been left.
    var places: [Node: Int] = [:]
    var path: [Step] = []
    func enter(_ node: Node) {
      places[node] = path.count
      path.append(Step(node: node, rest: timed.contains(node) ? [] : (edges[node] ?? [])[...]))
    }
    let threads = edges.keys.filter { if case .thread = $0 { true } else { false } }
    for node in threads.sorted(by: Self.isBefore) where places[node] == nil {
      enter(node)
      while let step = path.last {
        guard let next = step.rest.first else {
          path.removeLast()
          places[step.node] = -1
          continue
        }
        path[path.count - 1].rest.removeFirst()
        switch places[next] {
        case nil: enter(next)
        case .some(-1): break
        case let place?: cycles.append(Self.beginningWithThread(path[place...].map(\.node)))
        }
      }
    }
  }

  private static func beginningWithThread(_ cycle: [Node]) -> [Node] {
    let least = cycle.indices.filter { if case .thread = cycle[$0] { true } else { false } }
      .min { isBefore(cycle[$0], cycle[$1]) }
    guard let least else { return cycle }
    return Array(cycle[least...] + cycle[..<least])
  }

  private static func isBefore(_ a: Node, _ b: Node) -> Bool {
    switch (a, b) {
    case (.thread(let a), .thread(let b)): a < b
    case (.queue(let a), .queue(let b)): a < b
    case (.thread, .queue): true
    case (.queue, .thread): false
    }
  }
}

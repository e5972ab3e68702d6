/// One thread cannot go on before another one does.
struct WaitEdge {
  enum Reason {
    /// The other owns the queue.
    case owns(DispatchQueue)
    /// The other has a reader's place on the concurrent queue.
    case reads(DispatchQueue)
    /// The other must run what the queue has.
    case serves(DispatchQueue)
    /// The other runs the body.
    case runs
    /// The other runs an item of the group.
    case isCounted
  }

  let from: BlockedPointer
  let to: BlockedPointer
  let reason: Reason
}

// Everything below is called under the lock of `BlockedThreads` and `targetLock`.

extension BlockedThreads {
  /// What must go on before a thread that waits, or before a queue that has been left.
  struct Ahead {
    var owner: (thread: BlockedPointer, reason: WaitEdge.Reason)?
    /// The concurrent queue or group in which no thread may have a place.
    var readersOf: UnsafeRawPointer?
    /// Whether a queue on the way was between a push and its note.
    var isUnnoted = false
  }

  func ahead(of blocked: BlockedPointer) -> Ahead {
    let wait = blocked.pointee.wait
    var found = Ahead()
    switch blocked.pointee.ending {
    case .byThread(let runner):
      found.owner = find(runner(wait.object)).map { ($0, .runs) }
    case .byPlaces(let round, let isAwaited):
      if isAwaited(wait.object, round) { found.readersOf = wait.object }
    case .byQueue where wait.kind == .service:
      found.owner = server(of: wait.queue).map { ($0, .serves(wait.queue)) }
    case .byQueue:
      let queue = wait.queue
      let word = queue.state.confirmed
      if wait.waiter!.pointee.exclusive ? queue.kind == .concurrent : word.waitsForAllReaders {
        found.readersOf = wait.object
      }
      found.owner = owner(above: queue, word, &found.isUnnoted)
    }
    // Read last: if the thread has been given what it waits for before the words changed to what was read, the event
    // says so.
    return wait.waiter?.pointee.event.isSet == true ? Ahead(isUnnoted: found.isUnnoted) : found
  }

  /// Why `from` cannot go on before `to`; nil if it can.
  func edge(from: BlockedPointer, to: BlockedPointer) -> WaitEdge? {
    let ahead = ahead(of: from)
    if let owner = ahead.owner, owner.thread == to {
      return WaitEdge(from: from, to: to, reason: owner.reason)
    }
    guard let place = ahead.readersOf, to.pointee.places.contains(place) else { return nil }
    let wait = from.pointee.wait
    return WaitEdge(from: from, to: to, reason: wait.kind == .group ? .isCounted : .reads(wait.queue))
  }

  /// What must go on before `queue`, which has been left to its target or its readers.
  func ahead(ofQueue queue: DispatchQueue) -> [WaitSearch.Node] {
    let word = queue.state.confirmed
    var nodes: [WaitSearch.Node] = word.waitsForAllReaders ? [.readers(queue.selfPointer)] : []
    var isUnnoted = false
    if let owner = owner(above: queue, word, &isUnnoted) {
      nodes.append(.thread(owner.thread.pointee.thread))
    }
    return nodes
  }

  /// The thread that owns `first`, or the queue in whose list the entry of `first` lies, directly or through queues
  /// between them.
  private func owner(above first: DispatchQueue, _ word: QueueState.Snapshot, _ isUnnoted: inout Bool)
    -> (thread: BlockedPointer, reason: WaitEdge.Reason)?
  {
    var (queue, word) = (first, word)
    while true {
      if word.isOwned {
        // A thread that waits for this queue has just been given it, and is about to go on.
        guard let other = find(word.owner), !other.pointee.wait.isTurn(on: queue) else { return nil }
        return (other, .owns(queue))
      }
      if word.isHeld || !word.isNested { return nil }
      guard word.isEnqueued else {
        // With readers the first entry waits for them, or has been admitted. Without, it has not been noted. While some
        // are counted apart, there may be none.
        if !word.hasReaders || word.hasStanding { isUnnoted = true }
        return nil
      }
      guard let target = queue.targetQueue, target.kind != .global else { return nil }
      queue = target
      if queue.kind.isServedByCaller { return server(of: queue).map { ($0, .serves(queue)) } }
      word = queue.state.confirmed
    }
  }

  /// The thread without which a queue that ends a hierarchy runs nothing.
  private func server(of queue: DispatchQueue) -> BlockedPointer? {
    queue.kind == .main ? find(Process.id) : nil
  }
}

extension BlockedThread.Wait {
  fileprivate func isTurn(on queue: DispatchQueue) -> Bool {
    kind == .turn && object == UnsafeRawPointer(queue.selfPointer)
  }
}

// MARK: - The report

extension BlockedThreads {
  /// Counts a cycle that has been found.
  /// - Returns: a line for all, and one for each thread.
  func describe(_ cycle: [WaitEdge]) -> Report {
    deadlocks += 1
    for edge in cycle { edge.from.pointee.isReported = true }
    // The same cycle reads the same, whichever thread has closed it.
    let names = cycle.map { $0.from.pointee.wait.description }
    let first = names.indices.min { names[$0] < names[$1] }!
    let order = cycle.indices.map { (first + $0) % cycle.count }
    let threads =
      cycle.count == 1 ? "a thread waits for itself" : "\(cycle.count) threads wait for one another"
    return (
      "\(threads), for \(order.map { names[$0] }.joined(separator: ", for "))",
      order.map {
        (
          "\(cycle[$0].from.pointee.description), and waits for \(names[$0]), \(cycle[$0].explanation)",
          cycle[$0].from.pointee.frame
        )
      }
    )
  }
}

extension BlockedThread {
  fileprivate var description: String {
    var labels: [String] = []
    wait.forEachHeld { queue, _ in
      if !labels.contains(queue.quotedLabel) { labels.append(queue.quotedLabel) }
    }
    return "thread \(thread)\(thread == Process.id ? " (the main thread)" : "") holds "
      + (labels.isEmpty ? "no queue" : labels.joined(separator: ", "))
  }
}

extension BlockedThread.Wait {
  /// What the thread waits for.
  fileprivate var description: String {
    switch kind {
    case .item: return "a work item"
    case .group: return "a group"
    case .once: return "a body that runs once"
    case .turn:
      let isBarrier = waiter!.pointee.exclusive && queue.kind == .concurrent
      return "\(isBarrier ? "a barrier on " : "")queue \(queue.quotedLabel)"
    case .service:
      let asked = frames!.pointee.queue.takeUnretainedValue()
      return asked === queue
        ? "queue \(queue.quotedLabel)" : "queue \(asked.quotedLabel) on queue \(queue.quotedLabel)"
    }
  }
}

extension DispatchQueue {
  fileprivate final var quotedLabel: String { "\"\(label)\"" }
}

extension WaitEdge {
  /// Why the one thread waits for the other.
  fileprivate var explanation: String {
    let other = from == to ? "the same thread" : "thread \(to.pointee.thread)"
    switch reason {
    case .owns(let queue): return "while \(other) holds \(queue.quotedLabel)"
    case .reads(let queue): return "while \(other) runs an item of \(queue.quotedLabel)"
    case .serves(let queue): return "while \(other), which serves \(queue.quotedLabel), waits"
    case .runs: return "while \(other) runs it"
    case .isCounted: return "while \(other) runs an item of it"
    }
  }
}

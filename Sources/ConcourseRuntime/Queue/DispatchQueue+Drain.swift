/// Drains a queue that has become runnable. Called by workers.
// SAFETY: the pool passes entries that `NodeMagazine.make` of DispatchQueue+Enqueue.swift has made.
@c(concourse_run_queue)
func runQueue(_ entry: UnsafeMutableRawPointer, _: UnsafeMutableRawPointer?) {
  let node = entry.assumingMemoryBound(to: WorkNode.self)
  if node.admittedBy != nil { return Invocation.runAdmitted(node) }
  guard case .drain(let queue) = node.takeWork() else {
    Trap.runtimeBug("an item was run as a queue")
  }
  NodeMagazine.recycle(node)
  queue.drain(at: nil)
}

extension DispatchQueue {
  /// After this many items a drain yields its worker, if other queues wait for one.
  static let budget = 256

  /// Takes this queue's entries in order, and runs or forwards them, until none is left, the queue is
  /// suspended, or a waiting thread gets it. Called by the thread that has reached the queue's entry.
  /// - Parameter entry: this queue's entry, if it is still in the list of the target.
  final func drain(at entry: NodePointer?) {
    guard case .drain = state.beginDrain(CurrentThread.id) else { return }
    if mayChangeTarget && isOnFormerTarget { return leave(state.releaseToTarget(levelOfRest)) }
    let outer = Frame.current
    let frame = Frame(
      queue: .passUnretained(self), parent: outer, exclusive: true, level: outer?.pointee.level ?? level)
    Frame.run(frame) {
      switch kind {
      case .serial: takeTurn(at: entry) { drainSerial(atMost: $0) }
      case .workloop: asWorkloop.drainByLevel(at: entry)
      case .concurrent:
        takeTurn(at: entry) { drainConcurrent(atMost: $0) }
        // What has just been admitted may be for a lowered band.
        if isAwaited { boostAdmitted() }
      case .global, .main, .runLoop, .source, .group, .semaphore, .channel, .data, .mainQueueSymbol,
        .emptyDataSymbol, .attribute, .otherSymbol:
        Trap.runtimeBug("what has no items of its own was drained")
      }
    }
  }

  /// Drains until the queue or its worker has been given up.
  @inline(__always)
  private final func takeTurn(at entry: NodePointer?, _ drain: (_ most: Int) -> NodePointer?) {
    guard var first = drain(Turn.firstInterval(of: self)) else { return }
    var turn = Turn(of: self)
    if WorkerThread.isLowered { noteHigherEntry(from: first) }
    while !ends(&turn, at: entry, leaving: first) {
      guard let next = drain(turn.interval) else { return }
      first = next
    }
  }

  // MARK: Serial

  /// - Returns: the next entry if `most` items have run; nil if the queue has been given up.
  private final func drainSerial(atMost most: Int) -> NodePointer? {
    var left = most
    var streaming = false
    var first = list.first()
    while true {
      guard let node = nextEntry(&first) else { return nil }
      if node.isForOwner {
        guard case .next(let next) = serve(node) else { return nil }
        first = next
        continue
      }
      // The node stays the list's oldest while its item runs: producers then find the list non-empty
      // and need not touch the state at all.
      Frame.setLevel(node.pointee.level)
      Invocation.performInPlace(node)
      if streaming && list.next(after: node) == nil { linger(at: node) }
      streaming = list.next(after: node) != nil
      first = list.advance(past: node)
      NodeMagazine.recycle(node)

      left -= 1
      if left == 0 {
        if let first {
          list.leave(at: first)
          return first
        }
        left = 1
      }
    }
  }

  /// The owner's next entry, or nil when there is none or the queue is held, and it has been given up.
  /// - Parameter first: the owner's place in the list.
  @inline(__always)
  final func nextEntry(_ first: inout NodePointer?) -> NodePointer? {
    while true {
      if state.snapshot.isHeld {
        if let first { list.leave(at: first) }
        if case .released = state.releaseHeld(first.map(entryLevel) ?? .unspecified) { return nil }
      } else if let first {
        return first
      } else if case .released = state.releaseEmpty() {
        return nil
      }
      first = list.first()
    }
  }

  /// Waits a moment for the producer of a stream. Otherwise the producer's next push sends the queue through the pool
  /// again, which costs both threads more.
  ///
  /// It looks rarely: a consumer that reads right behind its producer takes each cache line away while the producer
  /// writes it. Letting the producer get a few items ahead costs both less.
  @inline(never)
  private final func linger(at node: NodePointer) {
    for _ in 0..<Spin.lingerLooks where list.next(after: node) == nil {
      for _ in 0..<Spin.lingerRounds { Processor.pause() }
    }
  }

  /// Gives the worker up if other entries wait for it or for the target, if the next entries are for another band's
  /// workers, if its band is held back, if the default band serves the queue from now on, or if a queue above has been
  /// suspended meanwhile, whose resume brings this one back.
  /// - Parameters:
  ///   - entry: this queue's entry, if it is still in the list of the target.
  ///   - first: this queue's next entry.
  @inline(never)
  final func ends(_ turn: inout Turn, at entry: NodePointer?, leaving first: NodePointer) -> Bool {
    if let level = higherLevel(before: first) {
      giveUpWorker(level)
      return true
    }
    guard
      turn.usesUpBudget() && (WorkerThread.shouldYield || goesBack(from: first) || isBelowHeldQueue)
        || WorkerThread.isHeldBack || turn.isOver(for: self, at: entry)
    else { return false }
    giveUpWorker(entryLevel(first))
    return true
  }

  /// Whether entries besides this queue's wait for the target.
  fileprivate final func othersWait(besides entry: NodePointer?) -> Bool {
    guard let target = targetQueue else { return false }
    switch target.kind {
    case .global: return false
    // Its thread may serve an event loop, too.
    case .main, .runLoop: return true
    case .workloop: return target.asWorkloop.hasEntries(besides: entry) || target.state.snapshot.isNested
    // A target with a target of its own gets the queue's entry back, and looks there.
    default: return target.list.last.map { $0 != entry } ?? false || target.state.snapshot.isNested
    }
  }

  private final var isBelowHeldQueue: Bool {
    var link = targetQueue
    while let queue = link {
      if queue.state.snapshot.isHeld { return true }
      link = queue.targetQueue
    }
    return false
  }

  /// Gives up the queue and puts its entry behind everything that waits now.
  final func giveUpWorker(_ level: QoSLevel) {
    if case .enqueue(let level) = state.releaseToTarget(level) { enqueue(level, last: true) }
  }

  // MARK: Concurrent

  /// As `drainSerial`.
  private final func drainConcurrent(atMost most: Int) -> NodePointer? {
    var left = most
    var first = list.first()
    while true {
      guard let node = nextEntry(&first) else { return nil }
      if let readers = readersToWaitFor(node) {
        list.leave(at: node)
        if leaveToReaders(readers, entryLevel(node)) { return nil }
        first = list.first()
        continue
      }
      let barrier = node.traits.contains(.barrier)
      if node.isForOwner {
        guard case .next(let next) = serve(node) else { return nil }
        first = next
      } else if barrier {
        Frame.setLevel(node.pointee.level)
        Invocation.performInPlace(node)
        first = list.advance(past: node)
        NodeMagazine.recycle(node)
      } else {
        first = list.advance(past: node)
        admit(node, to: state.addItemPlace(shares: !PoolSize.hasManyProcessors))
      }
      left -= 1
      if left == 0 {
        if let first {
          list.leave(at: first)
          return first
        }
        left = 1
      }
    }
  }

  /// Gives the queue up to its readers, unless they have ended or may now be more.
  private final func leaveToReaders(_ most: UInt64, _ level: QoSLevel) -> Bool {
    let address = selfPointer
    switch state.releaseToReaders(most: most, level) {
    case .lookAgain: return false
    case .released: break
    // Until then the entry at the head cannot run, and so releases nothing.
    case .releasedApart: if closeIndicators() { return false }
    }
    BlockedThreads.queueWasLeftToReaders(address)
    return true
  }

  /// The number of ordinary items that may run when `node` has its turn; nil if no more than that run now.
  @inline(__always)
  final func readersToWaitFor(_ node: NodePointer) -> UInt64? {
    if node.traits.contains(.barrier) { return state.readersAreGone ? nil : 0 }
    return isFull ? UInt64(width.value) - 1 : nil
  }
}

// MARK: - Handing over

// A queue goes to its next owner when its owner has finished, or reaches an entry that is not an item.

extension DispatchQueue {
  enum Served {
    /// The caller still owns the queue; this node is now the first in its list.
    case next(NodePointer?)
    /// The waiting thread owns the queue, or the queue is enqueued at its new target.
    case handedOver
  }

  /// Gives the waiting thread at the head of the list its turn, or changes the queue's target.
  final func serve(_ node: NodePointer) -> Served {
    let next = list.advance(past: node)
    if let next { list.leave(at: next) }
    guard node.isWaiter else {
      changeTarget(requestedBy: node)
      return .handedOver
    }
    return passTurn(toWaiterIn: node, leftovers: next != nil) ? .handedOver : .next(next)
  }

  /// Gives a waiting thread, whose node has been taken from the list, its turn. In a forked child, drops a thread of the
  /// parent.
  /// - Returns: whether that thread now owns the queue.
  final func passTurn(toWaiterIn node: NodePointer, leftovers: Bool) -> Bool {
    guard let waiter = node.takeWaiter() else { return false }
    PlainMemory.reads(beside: waiter.pointee.bodyHasRun)
    if !waiter.pointee.exclusive {
      state.addReaderPlace()
      waiter.pointee.event.signal()
      return false
    }
    // Only a drain may run the body here; a thread that hands the queue on has its own work to continue.
    if waiter.pointee.body != nil && Frame.current?.pointee.queue.toOpaque() == selfPointer {
      guard SyncWaiter.runBody(of: waiter) else { return false }
      // ORDERING: relaxed; the signal publishes it.
      waiter.pointee.bodyHasRun.store(true, ordering: .relaxed)
      waiter.pointee.event.signal()
      return false
    }
    state.transfer(to: waiter.pointee.thread, leftovers: leftovers)
    waiter.pointee.event.signal()
    return true
  }

  final var selfPointer: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  /// Gives up a queue that the calling thread owns but does not drain: to the first waiting thread, to
  /// a worker if an item is first, or to no thread if the list is empty.
  @usableFromInline @inline(never)
  final func handOn() {
    if kind == .workloop { return asWorkloop.handOnByLevel() }
    var first = list.first()
    while true {
      guard let node = nextEntry(&first) else { return }
      if let most = readersToWaitFor(node) {
        list.leave(at: node)
        if leaveToReaders(most, entryLevel(node)) { return }
        first = list.first()
        continue
      }
      guard node.isWaiter else {
        let level = entryLevel(node)
        list.leave(at: node)
        return leaveToWorker(level)
      }
      guard case .next(let next) = serve(node) else { return }
      first = next
    }
  }

  /// Leaves the queue's next entry, an item, to a worker. In a forked child, where no thread will run the item, the queue
  /// stays owned: the thread that was in `sync` at the fork has not asked for a worker.
  final func leaveToWorker(_ level: QoSLevel) {
    if hasThread { leave(state.releaseToTarget(level)) }
  }

  /// Gives back one reader's place of a concurrent queue. The caller keeps the queue.
  final func giveUpPlace() {
    let given = state.releaseReaderPlace(CurrentThread.id)
    if given.owns { handOn() }
    if given.endsReference { Unmanaged.passUnretained(self).release() }
  }

  /// Gives back the place of an asynchronous item, which has kept the queue until then.
  /// - Parameter isCounted: whether the item has a reference of its own.
  @inline(__always)
  static func giveUpPlace(ofItemOn queue: Unmanaged<DispatchQueue>, isCounted: Bool) {
    let id = CurrentThread.id
    if isCounted {
      queue._withUnsafeGuaranteedRef { if $0.state.releaseCountedPlace(id) { $0.handOn() } }
      return queue.release()
    }
    var isKept = false
    let given = queue._withUnsafeGuaranteedRef {
      $0.state.releaseReaderPlace(id) {
        if !isKept { _ = queue.retain() }
        isKept = true
      }
    }
    // Without a reference that this thread must release, the queue may be gone.
    if given.owns { queue._withUnsafeGuaranteedRef { $0.handOn() } }
    if isKept { queue.release() }
    if given.endsReference { queue.release() }
  }
}

/// When a drain looks at what else waits.
///
/// Each drain looks at the pool after a number of items; that of a lowered worker, which may be held back or asked for
/// the queue, looks more often. A drain inside that of another queue also looks for other
/// entries of that queue: it would delay them without end if its own queue were never empty. From when it finds some it
/// goes on for a quantum. The entries of a target share time, not numbers of items: a queue with long items that fill
/// another one would otherwise fill it faster than it gets turns.
struct Turn {
  private static var quantum: UInt64 { UInt64(Tuning.value(4_000_000, inModel: 0)) }
  private let longestInterval: Int

  /// Items until the next look.
  private(set) var interval: Int
  private var items = 0
  /// When the turn ends; 0 while no others wait.
  private var deadline: UInt64 = 0

  init(of queue: DispatchQueue) {
    interval = Self.firstInterval(of: queue)
    // A lowered worker may need long for each item, while a thread has come to wait.
    longestInterval = WorkerThread.isLowered ? interval : 16
  }

  @inline(__always)
  static func firstInterval(of queue: DispatchQueue) -> Int {
    queue.state.snapshot.isNested || WorkerThread.isLowered ? 2 : DispatchQueue.budget
  }

  /// Counts the items since the last look.
  /// - Returns: whether the drain must look at the pool.
  mutating func usesUpBudget() -> Bool {
    items += interval
    interval = min(2 * interval, max(interval, longestInterval))
    guard items >= DispatchQueue.budget else { return false }
    items = 0
    return true
  }

  /// Whether the drain of `queue` has gone on for long while others waited for its target.
  mutating func isOver(for queue: DispatchQueue, at entry: NodePointer?) -> Bool {
    guard queue.state.snapshot.isNested else { return false }
    if !queue.othersWait(besides: entry) {
      deadline = 0
    } else if deadline == 0 {
      deadline = Clock.uptime() &+ Self.quantum
      interval = 1
    } else if Clock.uptime() >= deadline {
      return true
    }
    return false
  }
}

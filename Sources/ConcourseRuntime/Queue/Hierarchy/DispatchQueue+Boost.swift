// The queues' part of the boost (Pool/Boost.swift): a queue that a thread of normal class waits for.

// A byte of the object counts the threads that wait. Bit 0: a thread has waited since `forgetThreads`. Bits 1 to 7: how
// many wait now; wraps at 128, so 128 threads look like none. The queue then stays in its own band.

extension DispatchQueue {
  /// Whether a thread of normal class waits for this queue, which has entries for a lowered band.
  final var isAwaited: Bool {
    // ORDERING: relaxed; read after a transition of the queue's state that follows the one in `boost`, or a hint.
    @inline(__always) get { waitingThreads.load(ordering: .relaxed) > 1 }
  }

  final func beginWaiting() {
    // ORDERING: relaxed, both; the transition in `boost` publishes them. Added first, so that `forgetThreads` fails.
    waitingThreads.wrappingAdd(2, ordering: .relaxed)
    waitingThreads.bitwiseOr(1, ordering: .relaxed)
  }

  final func endWaiting() {
    // ORDERING: relaxed; a hint.
    waitingThreads.wrappingSubtract(2, ordering: .relaxed)
  }

  /// Whether threads have waited, and none does now. Returns true once.
  private final func forgetThreads() -> Bool {
    // ORDERING: relaxed, both; a hint.
    waitingThreads.load(ordering: .relaxed) == 1
      && waitingThreads.compareExchange(expected: 1, desired: 0, ordering: .relaxed).exchanged
  }
}

extension DispatchQueue {
  /// Whether the default band must serve this queue for the calling thread, which is about to wait for it: whether the
  /// highest class of the queue and its targets, or without one the class of its items, is for a lowered band.
  final var needsBoost: Bool { needsBoost { $0.served < .default } }

  /// The same for a thread that has spun in vain. Without a class, the first entry may be for a lowered band when an owner
  /// leaves the queue. (A thread that need not sleep reads nothing more of the line, which others change.)
  final var needsBoostBeforeSleep: Bool { raisesAbove.value < 0 && needsBoost { _ in true } }

  /// - Parameter ifNoted: decides for a queue that has no class, by the level noted in it.
  @inline(__always)
  private final func needsBoost(ifNoted: (QoSLevel) -> Bool) -> Bool {
    guard !WorkerThread.isLowered else { return false }
    let own = state.snapshotWithTarget
    guard let highest = highestClass(from: own) else { return false }
    return highest == .unspecified ? ifNoted(own.level) : highest < .default
  }

  /// The highest class of the queue and its targets; unspecified if none has one, and nil if one thread serves all classes,
  /// as that of a main or run-loop queue does.
  private final func highestClass(from own: QueueState.Snapshot) -> QoSLevel? {
    var (queue, seen, highest) = (self, own, level)
    // The target of an inactive queue may be replaced at any moment.
    while highest < .default, seen.isNested && !seen.isInactive, let target = queue.targetNow {
      guard target.kind.isLane else { return nil }
      highest = max(highest, target.level)
      (queue, seen) = (target, target.state.snapshotWithTarget)
    }
    return highest
  }

  /// Puts a second entry for this queue to the default band, if there is one for a lowered band.
  ///
  /// The first entry stays: behind a backlog of the default band the queue would wait longer than without the second.
  /// Of the two, the one that is reached second finds nothing to do.
  @inline(never)
  final func boost(last: Bool = false) {
    if case .enqueue(let level) = state.boost() { enqueue(level, last: last) }
  }

  /// The calling thread, which has been counted, is about to sleep until this queue serves it.
  @inline(never)
  final func boostBeforeSleep() {
    boost()
    if kind == .concurrent { boostAdmitted() }
  }

  /// A thread waits for items that this queue has admitted: they lie in a root.
  @inline(never)
  final func boostAdmitted() {
    let queue = Unmanaged.passUnretained(self).toOpaque()
    Runtime.boost { $0.stands { $0.admittedBy?.toOpaque() == queue } }
  }

  /// The level at which a lowered worker leaves the queue, which it drains, to the default band: the queue, or a target in
  /// whose drain it is drained, has a higher item, or a thread of normal class has come to wait for one of them. Nil while
  /// the default band has a backlog, behind which the queue would wait longer, and if a thread is next. Owner only.
  final func higherLevel(before first: NodePointer) -> QoSLevel? {
    guard WorkerThread.isLowered && !first.isWaiter else { return nil }
    var (queue, highest) = (self, levelWithoutClass(entryLevel(first)))
    while highest < .userInteractive {
      let seen = queue.state.snapshot
      highest = max(highest, seen.level, queue.isAwaited ? .default : .unspecified)
      // The caller holds the queue: the target stays.
      guard seen.isNested, let target = queue.targetQueue, target.kind.isLane else { break }
      queue = target
    }
    guard highest >= .default else { return nil }
    // One root is enough: what waits for a less urgent one goes behind the queue, and a more urgent one has a larger
    // share, but no more. The queue lies in this shard's root.
    let hasBacklog = Runtime.root(at: highest)._withUnsafeGuaranteedRef { $0.hasWork }
    return hasBacklog ? nil : max(entryLevel(first), isAwaited ? .default : .unspecified)
  }

  /// Notes a higher entry among the next ones for `higherLevel`: the queue may have been raised before the calling worker, a
  /// lowered one, has reached it, and the level is forgotten when a drain begins. Owner only.
  @inline(never)
  final func noteHigherEntry(from first: NodePointer) {
    var next: NodePointer? = first
    for _ in 0..<Self.budget {
      guard let node = next else { return }
      let level = levelWithoutClass(entryLevel(node))
      if level >= .default { return carryOut(state.raise(to: level)) }
      next = list.next(after: node)
    }
  }

  /// The level that counts for an entry: one without a class, on a queue whose targets have none, is for the default band.
  final func levelWithoutClass(_ level: QoSLevel) -> QoSLevel {
    guard level == .unspecified else { return level }
    let own = state.snapshotWithTarget
    // The target of an inactive queue may be replaced by one that has a class.
    guard own.isNested else { return .default }
    return !own.isInactive && highestClass(from: own) == .unspecified ? .default : .unspecified
  }

  /// Whether a worker of the default band leaves the queue, which it has drained for threads that waited, to its own
  /// band: none waits any more, and the next entries are for a lowered band. Owner only.
  final func goesBack(from first: NodePointer) -> Bool {
    // In a target, the same worker would reach it again. Without a class it may have threads that were not counted.
    guard !state.snapshot.isNested, level != .unspecified, !WorkerThread.isLowered, forgetThreads()
    else { return false }
    // A workloop's first entry is of the highest class, as are those behind it.
    var next: NodePointer? = first
    for _ in 0..<Self.budget {
      guard let node = next else { break }
      if entryLevel(node).served >= .default { return false }
      next = list.next(after: node)
    }
    return true
  }
}

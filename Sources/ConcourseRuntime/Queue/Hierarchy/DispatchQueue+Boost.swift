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
  final var needsBoost: Bool {
    guard !WorkerThread.isLowered else { return false }
    let own = state.snapshotWithTarget
    var (queue, seen, highest) = (self, own, level)
    // The target of an inactive queue may be replaced at any moment.
    while highest < .default, seen.isNested && !seen.isInactive, let target = queue.targetNow {
      // One thread serves all classes of a main or run-loop queue.
      guard target.kind.isLane else { return false }
      highest = max(highest, target.level)
      (queue, seen) = (target, target.state.snapshotWithTarget)
    }
    return (highest == .unspecified ? own.level.served : highest) < .default
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

  /// The level at which a lowered worker leaves the queue, which it drains, to the default band: an item of a higher class
  /// has been appended, or a thread of normal class has come to wait. Nil while the default band has a backlog, behind
  /// which the queue would wait longer, and if a thread is next. Owner only.
  final func higherLevel(before first: NodePointer) -> QoSLevel? {
    guard WorkerThread.isLowered && !first.isWaiter else { return nil }
    let seen = state.snapshot
    let level = isAwaited ? max(.default, seen.level) : seen.level
    guard level >= .default && !seen.isNested else { return nil }
    return Runtime.root(at: level)._withUnsafeGuaranteedRef { $0.hasWork } ? nil : level
  }

  /// Whether a worker of the default band leaves the queue, which it has drained for threads that waited, to its own
  /// band: none waits any more, and the next entries are for a lowered band. Owner only.
  final func goesBack(from first: NodePointer) -> Bool {
    // In a target, the same worker would reach it again. Without a class it may have threads that were not counted.
    guard !state.snapshot.isNested, level != .unspecified, !WorkerThread.isLowered, forgetThreads()
    else { return false }
    var next: NodePointer? = first
    for _ in 0..<Self.budget {
      guard let node = next else { break }
      if entryLevel(node).served >= .default { return false }
      next = list.next(after: node)
    }
    return true
  }
}

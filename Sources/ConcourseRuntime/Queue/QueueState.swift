/// The state of one queue in one 64-bit word, and every legal change of it.
///
/// | bits  | field      | meaning |
/// |-------|------------|---------|
/// | 0–22  | owner      | id of the thread that may take from the list; if serial, or in a barrier, it runs alone |
/// | 23    | kept       | asynchronous items are among the readers, and share one reference to the queue |
/// | 24–51 | readers    | ordinary items (async or sync) of a concurrent queue that run or are on their way, and `standing` more while others are counted apart |
/// | 52    | pending    | the list may have new entries: the thread that gives the queue up must look |
/// | 53    | enqueued   | an entry for this queue is in its target: a drain will come |
/// | 54    | suspended  | the suspension count is above zero |
/// | 55    | inactive   | not activated yet |
/// | 56    | special    | not a plain serial queue, so not for the path inlined into clients (constant) |
/// | 57    | nested     | the target is not a global queue, so this queue alone is not enough for a sync |
/// | 58    | narrow     | ordinary items are limited in number: one that ends makes room for another |
/// | 59    | barred     | the last owner left a barrier at the head of the list to the readers |
/// | 60–62 | level      | the highest QoS level noted since the last drain began, or the queue ran empty |
/// | 63    | apart      | readers may be counted apart (ReaderIndicators.swift) |
///
/// A serial queue on a global queue is idle exactly when the word is 0: sync takes it with one
/// compare-exchange and gives it back with another.
///
/// **Invariant.** If a queue has no owner, is neither suspended nor inactive, and its list is not empty, one of
/// these holds: `enqueued` is set; `pending` is set, and the first entry waits for running readers, the last of
/// which will look (on a narrow queue, each of them); or the thread that made the list non-empty is about to note
/// that. Every transition that gives up ownership keeps the invariant. So does a change of the width, which
/// decides what waits for readers: it enqueues the queue at its target, or sets `pending`, and an owner that
/// finds that looks again before it leaves the queue to readers (`setNarrow`, `releaseToReaders`). The model
/// tests explore this.
///
/// Only QueueState+Snapshot.swift knows the bits. The places of readers are in QueueState+Readers.swift.
@usableFromInline
struct QueueState: ~Copyable {
  @usableFromInline let word: Atomic<UInt64>

  init(plain: Bool, nested: Bool, inactive: Bool) {
    var snapshot = Snapshot(bits: 0)
    if !plain { snapshot = snapshot.setting(Snapshot.special) }
    if nested { snapshot = snapshot.setting(Snapshot.nested) }
    if inactive { snapshot = snapshot.setting(Snapshot.inactive) }
    word = Atomic(snapshot.bits)
  }

  /// The state now. It may have changed by the time the caller looks at it.
  var snapshot: Snapshot {
    // ORDERING: relaxed; for decisions that a transition confirms, and for messages.
    @inline(__always) get { Snapshot(bits: word.load(ordering: .relaxed)) }
  }

  /// The same, for a thread that then reads the target although it holds neither the queue nor a place on it.
  var snapshotWithTarget: Snapshot {
    // ORDERING: acquiring; pairs with `activate` and `setNested`, publishes the target that was set before.
    Snapshot(bits: word.load(ordering: .acquiring))
  }

  /// The state now. A transition that comes later sees what the caller did before.
  var confirmed: Snapshot {
    // ORDERING: acquiring and releasing; takes a place in the order of the transitions, and pairs with each.
    Snapshot(bits: word.bitwiseOr(0, ordering: .acquiringAndReleasing).oldValue)
  }

  /// Whether a barrier may run: no ordinary item of a concurrent queue runs or is on its way, also none that is counted
  /// apart. One value decides: a suspended queue has items without places, which take them again before it is resumed.
  var readersAreGone: Bool {
    // ORDERING: acquiring; pairs with the readers' releases: a barrier sees what they wrote.
    let seen = Snapshot(bits: word.load(ordering: .acquiring))
    return !seen.hasReaders && !seen.isHeld
  }

  /// For the transitions: changes the word by `change`, and tries again if another thread changed it meanwhile.
  /// - Returns: the decision that `change` returned for the value it replaced.
  @inline(__always)
  func update<Decision>(
    _ change: (Snapshot) -> (Snapshot, Decision)
  ) -> Decision {
    // ORDERING: relaxed; the compare-exchange below confirms what was read.
    var seen = Snapshot(bits: word.load(ordering: .relaxed))
    while true {
      let (next, decision) = change(seen)
      // ORDERING: acquiring and releasing; taking a queue acquires what its former holders wrote, giving
      // it up releases it. Each transition pairs with the others.
      let (done, original) = word.weakCompareExchange(
        expected: seen.bits, desired: next.bits, successOrdering: .acquiringAndReleasing,
        failureOrdering: .relaxed)
      if done { return decision }
      seen = Snapshot(bits: original)
    }
  }
}

// MARK: - Uncontended sync, inlined into clients

extension QueueState {
  /// The word of an idle concurrent queue that targets a global queue and is not narrow. A serial queue's is 0.
  @usableFromInline static let idleConcurrent: UInt64 = 1 << 56

  /// Takes a queue whose word is `idle` for one thread alone.
  @inlinable @inline(__always)
  func takeIdle(_ thread: UInt32, _ idle: UInt64 = 0) -> Bool {
    // ORDERING: acquiring; pairs with every transition that gives the queue up: the next item sees what
    // earlier items wrote.
    word.compareExchange(expected: idle, desired: idle | UInt64(thread), ordering: .acquiring).exchanged
  }

  /// Gives the queue back if the word has not changed meanwhile; otherwise the caller must hand the queue on.
  @inlinable @inline(__always)
  func releaseIdle(_ thread: UInt32, _ idle: UInt64 = 0) -> Bool {
    // ORDERING: releasing; pairs with the acquiring transitions of the next holder.
    word.compareExchange(expected: idle | UInt64(thread), desired: idle, ordering: .releasing).exchanged
  }
}

// MARK: - Taking

extension QueueState {
  /// Takes a free queue for one thread alone: serial sync, barrier sync.
  func takeExclusively(_ thread: UInt32) -> Bool {
    // ORDERING: relaxed; confirmed by the compare-exchange.
    let seen = snapshot
    guard seen.isFree && !seen.hasReaders else { return false }
    // ORDERING: acquiring; as in `takeIdle`.
    return word.compareExchange(
      expected: seen.bits, desired: seen.owned(by: thread).bits, ordering: .acquiring
    ).exchanged
  }

  /// Gives back a queue taken exclusively if the word has not changed meanwhile.
  func releaseExclusively(_ thread: UInt32) -> Bool {
    let free = snapshot.whenFree
    // ORDERING: releasing; pairs with the acquiring transitions of the next holder.
    return word.compareExchange(
      expected: free.owned(by: thread).bits, desired: free.bits, ordering: .releasing
    ).exchanged
  }

  enum DrainStart {
    /// The caller owns the queue and must drain it.
    case drain
    /// The queue is held or owned: the thread that resumes it or gives it up will look.
    case leave
  }

  /// The entry that lay with the target has been reached.
  func beginDrain(_ thread: UInt32) -> DrainStart {
    update { seen in
      if seen.isHeld || seen.isOwned {
        return (seen.clearing(Snapshot.enqueued).setting(Snapshot.pending), .leave)
      }
      return (seen.clearingWork().clearing(Snapshot.enqueued).owned(by: thread), .drain)
    }
  }
}

// MARK: - Noting

extension QueueState {
  enum Wake {
    /// Another thread will look.
    case nothing
    /// The caller must put an entry for the queue to its target, at this level.
    case enqueue(QoSLevel)
  }

  /// Notes that the list, or one of a workloop's lists, was empty and now has an entry. A queue that is enqueued at
  /// a lower level is enqueued once more.
  /// - Parameter exclusive: the entry needs the queue alone, so running readers need not be disturbed. The caller then
  ///   calls `endApart`: readers that are counted apart do not look.
  func noteWork(_ level: QoSLevel, exclusive: Bool) -> Wake {
    update { seen in
      let noted = seen.noting(level)
      let isOnItsWay = seen.isEnqueued && seen.isNoted(level)
      if seen.isOwned || seen.isHeld || isOnItsWay || (exclusive && seen.hasReaders) {
        return (noted, .nothing)
      }
      return (noted.setting(Snapshot.enqueued), .enqueue(noted.level))
    }
  }

  /// Notes that a list that was not empty has a new entry of a higher level than the queue is enqueued at. Behind entries
  /// without a class, one for a lowered band is not higher.
  ///
  /// If nothing is noted, the list was emptied meanwhile, and an idle queue's word must not change; or the thread that made
  /// it non-empty has yet to note that. It then notes its own level, which is the only one whose band must have an entry: the
  /// other band may have no thread.
  func raise(to level: QoSLevel) -> Wake {
    guard !snapshot.isNoted(level) else { return .nothing }
    return update { seen in
      let busy = seen.isOwned || seen.isHeld || seen.isEnqueued || seen.isPending
      guard busy && !seen.isNoted(level) else { return (seen, .nothing) }
      if seen.waitsWithoutClass(for: level) { return (seen, .nothing) }
      let raised = seen.raised(to: level)
      return (raised, seen.isEnqueued && !seen.isOwned ? .enqueue(level) : .nothing)
    }
  }

  /// A thread of normal class waits for the queue. If that is enqueued for a lowered band, it is enqueued again.
  ///
  /// Always a transition: either this one finds the entry, or the transition that enqueues the queue comes later, and
  /// its thread then finds the waiting thread (`DispatchQueue.isAwaited`).
  func boost() -> Wake {
    update { seen in
      // A queue that has no class of its own lies where the class of its target says.
      let served = seen.isNested ? seen.level : seen.level.served
      guard seen.isEnqueued && served < .default else { return (seen, .nothing) }
      return (seen.raised(to: .default), .enqueue(.default))
    }
  }

  enum WaiterNote {
    /// Another thread will hand the queue over.
    case wait
    /// The queue was free: the caller now owns it and must hand it to the first in the list.
    case own
  }

  /// Notes that the list was empty and now has a waiting thread.
  func noteWaiter(_ thread: UInt32) -> WaiterNote {
    update { seen in
      if seen.isOwned || seen.isHeld || seen.isEnqueued { return (seen.setting(Snapshot.pending), .wait) }
      return (seen.clearingWork().owned(by: thread), .own)
    }
  }
}

// MARK: - Giving up

extension QueueState {
  enum Release {
    /// The queue is no longer the caller's.
    case released
    /// The same, and the caller must close the indicators of the readers.
    case releasedApart
    /// The word has changed: look at the list again.
    case lookAgain
  }

  /// The owner found the list empty.
  func releaseEmpty() -> Release {
    update { seen in
      // The level may be that of several entries, which a lowered owner leaves to others.
      seen.isPending
        ? (seen.clearing(Snapshot.pending | Snapshot.barred), .lookAgain)
        : (seen.unowned().clearing(Snapshot.levelMask), .released)
    }
  }

  /// The owner found the queue suspended; entries may be left.
  /// - Parameter level: the level for the first of them after the resume.
  func releaseHeld(_ level: QoSLevel) -> Release {
    update { seen in
      seen.isHeld ? (seen.unowned().leaving(level), .released) : (seen, .lookAgain)
    }
  }

  /// The owner found an entry that must wait until no more than `most` readers are left. If `pending` has been set
  /// since the owner last cleared it, the width may have changed, and `most` with it.
  /// - Parameter level: the level for the entry.
  func releaseToReaders(most: UInt64 = 0, _ level: QoSLevel) -> Release {
    update { seen in
      guard seen.readers > most && !seen.isPending else {
        return (seen.clearing(Snapshot.pending), .lookAgain)
      }
      let left = seen.unowned().leaving(level).clearing(Snapshot.apart)
      return (
        most == 0 && !seen.isNarrow ? left.setting(Snapshot.barred) : left,
        seen.isApart ? .releasedApart : .released
      )
    }
  }

  /// The owner leaves entries behind for a worker.
  func releaseToTarget(_ level: QoSLevel) -> Wake {
    update { seen in
      let noted = seen.unowned().leaving(level)
      if seen.isHeld || seen.isEnqueued { return (noted, .nothing) }
      return (noted.setting(Snapshot.enqueued), .enqueue(noted.level))
    }
  }

  /// The owner passes the queue to a waiting thread it has taken from the list.
  /// - Parameter leftovers: whether entries are left, which the new owner must look at.
  func transfer(to thread: UInt32, leftovers: Bool) {
    update { seen in
      let passed = seen.unowned().owned(by: thread)
      return (leftovers ? passed.setting(Snapshot.pending) : passed, ())
    }
  }
}

// MARK: - Suspension and activation

extension QueueState {
  /// The suspension count has left zero.
  func suspend() {
    // ORDERING: acquiring and releasing; an item that starts later was admitted before this, or sees it.
    word.bitwiseOr(Snapshot.suspended, ordering: .acquiringAndReleasing)
  }

  /// The suspension count is zero again.
  func resume() -> Wake { unhold(Snapshot.suspended) }

  /// - Returns: nil if the queue was already active.
  func activate() -> Wake? {
    snapshot.isInactive ? unhold(Snapshot.inactive) : nil
  }

  private func unhold(_ flag: UInt64) -> Wake {
    update { seen in
      let freed = seen.clearing(flag)
      if freed.isHeld || !freed.isPending || freed.isOwned || freed.isEnqueued {
        return (freed, .nothing)
      }
      return (freed.setting(Snapshot.enqueued), .enqueue(freed.level))
    }
  }

  /// The limit on ordinary items has changed: an entry that waited for a place may have one now. An owner that has
  /// compared the readers with the former limit looks again.
  func setNarrow(_ narrow: Bool) -> Wake {
    update { seen in
      let changed = narrow ? seen.setting(Snapshot.narrow) : seen.clearing(Snapshot.narrow)
      if changed.isOwned { return (changed.setting(Snapshot.pending), .nothing) }
      if changed.isHeld || !changed.isPending || changed.isEnqueued { return (changed, .nothing) }
      return (changed.setting(Snapshot.enqueued), .enqueue(changed.level))
    }
  }

  /// The target has changed.
  func setNested(_ nested: Bool) {
    update { seen in
      (nested ? seen.setting(Snapshot.nested) : seen.clearing(Snapshot.nested), ())
    }
  }
}

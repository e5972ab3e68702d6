import Testing

@testable import ConcourseRuntime

/// Every transition of a queue's word, on one thread, step by step. The model tests explore interleavings.
@Suite("QueueState")
struct QueueStateTests {
  private let me: UInt32 = 7
  private let other: UInt32 = 9

  @Test("an idle serial queue is taken by one thread and given back")
  func idleSerial() {
    let state = serial()
    holds(state.takeIdle(me))
    holds(state.snapshot.owner == me)
    holds(!state.takeIdle(other))
    holds(!state.takeExclusively(other))
    holds(state.releaseIdle(me))
    holds(!state.snapshot.isOwned)
    holds(state.takeExclusively(other))
    holds(state.releaseExclusively(other))
  }

  @Test("an idle concurrent queue is taken by the short way; not with readers, narrow, or nested")
  func idleConcurrent() {
    let idle = QueueState.idleConcurrent
    let state = concurrent()
    holds(!state.takeIdle(me))
    holds(state.takeIdle(me, idle))
    holds(state.snapshot.owner == me)
    holds(!state.takeIdle(other, idle))
    holds(!state.takeReaderPlace())
    holds(state.releaseIdle(me, idle))
    holds(state.takeReaderPlace())
    holds(!state.takeIdle(me, idle))
    holds(!state.releaseReaderPlace(me).owns)
    _ = state.setNarrow(true)
    holds(!state.takeIdle(me, idle))
    _ = state.setNarrow(false)
    state.setNested(true)
    holds(!state.takeIdle(me, idle))
    state.setNested(false)
    holds(state.takeIdle(me, idle))
    holds(state.noteWork(.default, exclusive: false).level == nil)
    holds(!state.releaseIdle(me, idle))
  }

  @Test("a queue with a target of its own is not taken by the short way, only by the long one")
  func nested() {
    let state = serial(nested: true)
    holds(state.snapshot.isNested)
    holds(!state.takeIdle(me))
    holds(state.takeExclusively(me))
    holds(state.releaseExclusively(me))
    state.setNested(false)
    holds(state.takeIdle(me))
  }

  @Test("work for an idle queue is enqueued once, at its level")
  func noteWork() {
    let state = serial()
    holds(state.noteWork(.utility, exclusive: false).level == .utility)
    holds(state.snapshot.isEnqueued && state.snapshot.isPending)
    holds(state.noteWork(.background, exclusive: false).level == nil)
    holds(state.noteWork(.utility, exclusive: false).level == nil)
    holds(state.snapshot.level == .utility)
    // Another list of a workloop has its first entry.
    holds(state.noteWork(.userInitiated, exclusive: false).level == .userInitiated)
    holds(!state.takeIdle(me))
    holds(!state.takeExclusively(me))
  }

  @Test("a drain owns the queue and forgets what was noted")
  func beginDrain() {
    let state = serial()
    _ = state.noteWork(.userInitiated, exclusive: false)
    holds(state.beginDrain(me).mayDrain)
    let seen = state.snapshot
    holds(seen.owner == me && !seen.isPending && !seen.isEnqueued && seen.level == .unspecified)
    holds(state.releaseEmpty().isReleased)
    holds(state.takeIdle(other))
  }

  @Test("a drain that comes to an owned or suspended queue leaves, and leaves word")
  func drainTooLate() {
    let owned = serial()
    _ = owned.takeIdle(other)
    holds(!owned.beginDrain(me).mayDrain)
    holds(owned.snapshot.owner == other && owned.snapshot.isPending)
    holds(!owned.releaseIdle(other))

    let suspended = serial()
    _ = suspended.noteWork(.default, exclusive: false)
    suspended.suspend()
    holds(!suspended.beginDrain(me).mayDrain)
    holds(!suspended.snapshot.isEnqueued && suspended.snapshot.isPending)
    holds(suspended.resume().level != nil)
  }

  @Test("work that comes while the queue is owned makes its owner look again")
  func workWhileOwned() {
    let state = serial()
    _ = state.takeIdle(me)
    holds(state.noteWork(.default, exclusive: false).level == nil)
    holds(!state.releaseIdle(me))
    holds(!state.releaseExclusively(me))
    holds(!state.releaseEmpty().isReleased)
    holds(state.snapshot.isOwned)
    holds(state.releaseEmpty().isReleased)
  }

  @Test("a higher level makes a second entry, a lower one does not")
  func raise() {
    let state = serial()
    _ = state.noteWork(.utility, exclusive: false)
    holds(state.raise(to: .background).level == nil)
    holds(state.raise(to: .utility).level == nil)
    holds(state.raise(to: .userInteractive).level == .userInteractive)
    holds(state.snapshot.level == .userInteractive)
    _ = state.beginDrain(me)
    holds(state.raise(to: .userInitiated).level == nil)
    holds(state.snapshot.level == .userInitiated)
  }

  @Test("what waits without a class is not taken to a lowered band")
  func withoutClass() {
    let enqueued = serial()
    _ = enqueued.noteWork(.unspecified, exclusive: false)
    holds(
      enqueued.raise(to: .utility).level == nil && enqueued.snapshot.level == .unspecified)
    holds(enqueued.raise(to: .userInitiated).level == .userInitiated)

    let held = serial(inactive: true)
    _ = held.noteWork(.unspecified, exclusive: false)
    holds(held.raise(to: .background).level == nil)
    holds(held.activate()?.level == .unspecified)

    // The owner looks at the first entry.
    for (first, level) in [(QoSLevel.unspecified, QoSLevel.unspecified), (.background, .utility)] {
      let owned = serial()
      _ = owned.takeIdle(me)
      _ = owned.noteWork(first, exclusive: false)
      _ = owned.raise(to: .utility)
      holds(owned.snapshot.level == .utility)
      holds(owned.releaseToTarget(first).level == level)
    }
  }

  @Test("an owner that looks again does not forget the level")
  func levelOfLookAgain() {
    let state = serial()
    _ = state.takeIdle(me)
    _ = state.noteWork(.userInitiated, exclusive: false)
    holds(!state.releaseEmpty().isReleased && state.snapshot.level == .userInitiated)
    holds(state.releaseEmpty().isReleased && state.snapshot.level == .unspecified)
  }

  @Test("raising a queue without an entry at its target makes none, and leaves an idle queue as it is")
  func raiseWithoutEntry() {
    let owned = serial()
    holds(owned.raise(to: .userInitiated).level == nil)
    holds(owned.takeIdle(me))
    holds(owned.raise(to: .userInitiated).level == nil)
    holds(owned.snapshot.level == .userInitiated)
    holds(owned.releaseEmpty().isReleased)
    holds(owned.takeIdle(other))

    let held = serial()
    held.suspend()
    holds(held.raise(to: .userInitiated).level == nil)
    holds(held.snapshot.level == .userInitiated)

    let pending = concurrent()
    _ = pending.takeReaderPlace(limit: 0)
    _ = pending.noteWork(.utility, exclusive: true)
    holds(pending.raise(to: .userInitiated).level == nil)
    holds(pending.snapshot.level == .userInitiated)
  }

  @Test("a boost makes a second entry for a queue that is enqueued for a lowered band")
  func boost() {
    let enqueued = serial()
    _ = enqueued.noteWork(.background, exclusive: false)
    holds(enqueued.boost().level == .default)
    holds(enqueued.snapshot.level == .default)

    let owned = serial()
    _ = owned.takeIdle(me)
    _ = owned.noteWork(.background, exclusive: false)
    holds(owned.boost().level == nil)

    // A queue without a class is served as default, unless its target decides.
    let plain = serial()
    _ = plain.noteWork(.unspecified, exclusive: false)
    holds(plain.boost().level == nil)
    let nested = serial(nested: true)
    _ = nested.noteWork(.unspecified, exclusive: false)
    holds(nested.boost().level == .default)
  }

  @Test("a waiting thread gets a free queue, and waits for one that is owned, enqueued or held")
  func noteWaiter() {
    let free = serial()
    holds(free.noteWaiter(me).owns)
    holds(free.snapshot.owner == me)
    holds(!free.noteWaiter(other).owns)
    holds(free.snapshot.owner == me && free.snapshot.isPending)

    let enqueued = serial()
    _ = enqueued.noteWork(.default, exclusive: false)
    holds(!enqueued.noteWaiter(me).owns)

    let inactive = serial(inactive: true)
    holds(!inactive.noteWaiter(me).owns)
    holds(inactive.activate()?.level != nil)

    // The thread looks at the list: what was noted is then known.
    let pending = concurrent()
    _ = pending.takeReaderPlace(limit: 0)
    _ = pending.noteWork(.utility, exclusive: true)
    holds(pending.noteWaiter(me).owns)
    holds(!pending.snapshot.isPending && pending.snapshot.level == .unspecified)
  }

  @Test("an owner gives a suspended queue up, and the resume brings a drain")
  func releaseHeld() {
    let state = serial()
    _ = state.takeIdle(me)
    holds(!state.releaseHeld(.utility).isReleased)
    state.suspend()
    holds(state.snapshot.isHeld && state.snapshot.isSuspended)
    holds(state.releaseHeld(.utility).isReleased)
    holds(!state.snapshot.isOwned && state.snapshot.isPending)
    holds(state.resume().level == .utility)
    holds(state.snapshot.isEnqueued && !state.snapshot.isHeld)
  }

  @Test("what an owner leaves behind is enqueued, unless the queue is held or an entry lies there already")
  func releaseToTarget() {
    let state = serial()
    _ = state.takeIdle(me)
    holds(state.releaseToTarget(.utility).level == .utility)
    holds(!state.snapshot.isOwned && state.snapshot.isEnqueued)

    let held = serial()
    _ = held.takeIdle(me)
    held.suspend()
    holds(held.releaseToTarget(.utility).level == nil)
    holds(held.resume().level == .utility)
  }

  @Test("a queue is passed from thread to thread, which notes whether entries are left")
  func transfer() {
    let state = serial()
    _ = state.takeIdle(me)
    state.transfer(to: other, leftovers: false)
    holds(state.snapshot.owner == other && !state.snapshot.isPending)
    state.transfer(to: me, leftovers: true)
    holds(state.snapshot.owner == me && state.snapshot.isPending)
    holds(!state.releaseIdle(me))
  }

  @Test("readers share, and the last one becomes the owner for a waiting barrier")
  func readers() {
    let state = concurrent()
    holds(!state.takeIdle(me))
    holds(state.takeReaderPlace(limit: 0))
    holds(state.takeReaderPlace(limit: 0))
    holds(state.snapshot.readers == 2 && !state.readersAreGone)
    holds(!state.takeExclusively(me))
    // An exclusive entry waits until the readers have ended; from then on no reader overtakes it.
    holds(state.noteWork(.default, exclusive: true).level == nil)
    holds(!state.takeReaderPlace(limit: 0))
    holds(!state.releaseReaderPlace(me).owns)
    holds(state.releaseReaderPlace(other).owns)
    holds(state.snapshot.owner == other && !state.snapshot.isPending && state.readersAreGone)
  }

  @Test("an ordinary entry is enqueued though readers run")
  func readersAndWork() {
    let state = concurrent()
    _ = state.takeReaderPlace(limit: 0)
    holds(state.noteWork(.default, exclusive: false).level == .default)
    holds(state.beginDrain(me).mayDrain)
    state.addReaderPlace()
    holds(state.snapshot.readers == 2 && state.snapshot.owner == me)
    holds(!state.releaseReaderPlace(other).owns)
    holds(state.releaseEmpty().isReleased)
    holds(!state.releaseReaderPlace(other).owns)
    holds(state.takeExclusively(other))
  }

  @Test("a drain that meets a barrier goes if readers run, and looks again if none does")
  func releaseToReaders() {
    let state = concurrent()
    _ = state.takeReaderPlace(limit: 0)
    _ = state.noteWork(.default, exclusive: false)
    _ = state.beginDrain(me)
    holds(state.releaseToReaders(most: 0, .default).isReleased)
    holds(!state.snapshot.isOwned && state.snapshot.isPending && state.snapshot.waitsForAllReaders)
    state.suspend()
    holds(!state.snapshot.waitsForAllReaders)
    holds(state.resume().level == .default)
    holds(!state.snapshot.waitsForAllReaders)
    // The entry at the target brings a drain, so the last reader leaves the queue alone.
    holds(!state.releaseReaderPlace(other).owns)
    _ = state.beginDrain(other)
    holds(!state.releaseToReaders(most: 0, .default).isReleased)
    holds(state.snapshot.owner == other)
  }

  @Test("what waits for fewer readers, not for none, is no barrier")
  func releaseToFewerReaders() {
    let state = concurrent()
    holds(state.takeReaderPlace() && state.takeReaderPlace())
    _ = state.noteWork(.default, exclusive: false)
    _ = state.beginDrain(me)
    holds(state.releaseToReaders(most: 1, .default).isReleased)
    holds(!state.snapshot.waitsForAllReaders)
  }

  @Test("the last reader leaves a queue to its owner, though work has been noted")
  func lastReaderOfOwned() {
    let state = concurrent()
    _ = state.noteWork(.default, exclusive: false)
    _ = state.beginDrain(me)
    state.addReaderPlace()
    holds(state.noteWork(.default, exclusive: false).level == nil)
    holds(!state.releaseReaderPlace(other).owns)
    holds(state.snapshot.owner == me && state.snapshot.isPending)
  }

  @Test("a narrow queue has as many readers as its limit, and the next item waits for one of them")
  func limit() {
    let state = concurrent()
    _ = state.setNarrow(true)
    holds(state.takeReaderPlace(limit: 2) && state.takeReaderPlace(limit: 2))
    holds(!state.takeReaderPlace(limit: 2))
    _ = state.beginDrain(me)
    holds(state.releaseToReaders(most: 0, .default).isReleased)
    holds(!state.snapshot.waitsForAllReaders)
    holds(state.releaseReaderPlace(me).owns)
  }

  @Test("an owner looks again if the width changes before it leaves the queue to readers")
  func widthAgainstOwner() {
    let state = concurrent()
    _ = state.setNarrow(true)
    _ = state.takeReaderPlace(limit: 1)
    _ = state.noteWork(.utility, exclusive: false)
    _ = state.beginDrain(me)
    holds(state.setNarrow(true).level == nil)
    holds(!state.releaseToReaders(most: 0, .utility).isReleased)
    holds(state.releaseToReaders(most: 0, .utility).isReleased)
    holds(state.setNarrow(false).level == .utility)
    holds(state.snapshot.isEnqueued)
    holds(state.setNarrow(true).level == nil)

    let held = concurrent()
    held.suspend()
    _ = held.noteWork(.utility, exclusive: false)
    holds(held.setNarrow(true).level == nil)
    holds(held.resume().level == .utility)
  }

  @Test("the last reader of a suspended queue leaves it alone")
  func lastReaderOfHeld() {
    let state = concurrent()
    _ = state.takeReaderPlace(limit: 0)
    _ = state.noteWork(.default, exclusive: true)
    state.suspend()
    holds(!state.releaseReaderPlace(me).owns)
    holds(state.resume().level != nil)
  }

  @Test("resuming and activating bring a drain only if there is something to do and nothing else holds")
  func unhold() {
    let idle = serial()
    idle.suspend()
    holds(!idle.takeIdle(me))
    holds(idle.resume().level == nil)
    holds(idle.takeIdle(me))
    idle.suspend()
    _ = idle.noteWork(.default, exclusive: false)
    // Owned: its owner will look.
    holds(idle.resume().level == nil)

    // An entry lies at the target.
    let enqueued = serial()
    _ = enqueued.noteWork(.default, exclusive: false)
    enqueued.suspend()
    holds(enqueued.resume().level == nil)

    let both = serial(inactive: true)
    holds(both.snapshot.isInactive)
    both.suspend()
    _ = both.noteWork(.background, exclusive: false)
    holds(both.activate().map { $0.level == nil } == true)
    if both.activate() != nil { Issue.record("activated twice") }
    holds(both.resume().level == .background)
  }

  @Test("readers counted apart stand for readers until their indicators are closed, by one thread")
  func apart() {
    let standing = QueueState.Snapshot.standing
    let state = concurrent()
    holds(state.takeReaderPlace())
    holds(state.beginApart() && !state.beginApart())
    holds(state.snapshot.readers == standing + 1 && !state.snapshot.isApart)
    holds(state.setApart())
    holds(state.snapshot.isFreeApart && state.snapshot.hasStanding && !state.snapshot.hasExcess)
    holds(!state.takeExclusively(me) && !state.takeReaderPlace())
    holds(!state.releaseReaderPlace(me).owns)
    // Items are counted in the word all the same, and each has a reference of its own.
    holds(state.takeItemPlace(shares: false)?.reference == .own)
    holds(state.addItemPlace(shares: false).reference == .own)
    holds(state.snapshot.readers == standing + 2 && !state.snapshot.isKept)
    for _ in 0..<2 {
      let given = state.releaseReaderPlace(me)
      holds(!given.owns && !given.endsReference)
    }
    // A barrier that is noted now waits; the thread that closes the indicators owns the queue if they are empty.
    holds(state.noteWork(.default, exclusive: true).level == nil)
    holds(!state.snapshot.isFreeApart)
    holds(state.clearApart() && !state.clearApart())
    holds(!state.releaseStanding(me, readers: 1).owns)
    holds(state.snapshot.readers == 1)
    holds(state.releaseReaderPlace(other).owns)
    holds(state.snapshot.owner == other)
  }

  @Test("asynchronous items share a reference, from the first place of one to the last place of all")
  func itemsShareReference() {
    let state = concurrent()
    holds(state.takeReaderPlace() && !state.snapshot.isKept)
    holds(state.takeItemPlace(shares: true)?.reference == .first)
    holds(
      state.takeItemPlace(shares: true)?.reference == .shared
        && state.addItemPlace(shares: true).reference == .shared)
    holds(state.takeReaderPlace())
    holds(state.snapshot.readers == 5 && state.snapshot.isKept && state.snapshot.owner == 0)
    for _ in 0..<4 { holds(!state.releaseReaderPlace(me).endsReference) }
    let last = state.releaseReaderPlace(me)
    holds(last.endsReference && !last.owns)
    holds(!state.snapshot.isKept && state.takeIdle(me, QueueState.idleConcurrent))
    holds(!state.takesItem())
    // An owner admits items, and becomes free while they run.
    holds(state.addItemPlace(shares: true).reference == .first && state.snapshot.owner == me)
    holds(state.releaseEmpty().isReleased && state.takeReaderPlace())
    holds(!state.takeExclusively(other) && !state.releaseReaderPlace(me).endsReference)
    holds(state.releaseReaderPlace(me).endsReference)

    holds(!concurrent(inactive: true).takesItem() && concurrent().takesItem(limit: 0))
    let full = concurrent()
    _ = full.setNarrow(true)
    holds(full.takesItem(limit: 1) && !full.takesItem(limit: 1))
    full.setNested(true)
    holds(full.takeItemPlace(limit: 2, shares: true)!.isNested && !state.addItemPlace(shares: true).isNested)
  }

  @Test("an item adds its place, and a busy queue gets it back")
  func itemsAddPlaces() {
    let state = concurrent()
    holds(state.addItemPlaceIfFree()?.reference == .own && state.beginApart() && state.setApart())
    holds(state.addItemPlaceIfFree()?.isNested == false && state.clearApart())
    holds(
      !state.releaseStanding(me, readers: 0).owns && state.snapshot.readers == 2 && !state.snapshot.isKept)
    // The last place that is given back makes its thread the owner if a barrier waits.
    _ = state.noteWork(.utility, exclusive: true)
    holds(!state.releaseCountedPlace(me) && state.addItemPlaceIfFree() == nil && state.snapshot.readers == 2)
    holds(!state.releaseCountedPlace(other) && state.returnItemPlace().level == .utility)
    holds(state.snapshot.isEnqueued && !state.snapshot.hasReaders)
    holds(state.beginDrain(me).mayDrain && state.addItemPlaceIfFree() == nil)
    holds(state.releaseToReaders(.utility).isReleased && state.releaseCountedPlace(other))
    holds(
      state.snapshot.owner == other && state.releaseEmpty().isReleased
        && state.releaseCountedPlace(me) == false)

    let narrow = concurrent()
    _ = narrow.setNarrow(true)
    holds(narrow.addItemPlaceIfFree() == nil && narrow.returnItemPlace().level == nil)
    holds(narrow.takesItem(limit: 1) && narrow.addItemPlaceIfFree() == nil)
    // On a narrow queue each place that is given back makes room.
    _ = narrow.noteWork(.default, exclusive: true)
    holds(narrow.releaseCountedPlace(me) && narrow.snapshot.owner == me)
    holds(narrow.returnItemPlace().level == nil && !narrow.snapshot.hasReaders)

    holds(concurrent(inactive: true).addItemPlaceIfFree() == nil)
    let full = concurrent()
    full.word.wrappingAdd(QueueState.Snapshot.mostReaders * QueueState.Snapshot.reader, ordering: .relaxed)
    holds(full.addItemPlaceIfFree() == nil)
  }

  @Test("an item that becomes the owner while others read must retain the queue before that")
  func itemKeepsQueueAsOwner() {
    let state = concurrent()
    _ = state.setNarrow(true)
    for _ in 0..<3 { _ = state.takeItemPlace(shares: true) }
    var isKept = false
    // Nothing waits.
    _ = state.releaseReaderPlace(me) { isKept = true }
    holds(!isKept)
    _ = state.noteWork(.default, exclusive: false)
    _ = state.beginDrain(other)
    holds(state.releaseToReaders(most: 1, .default).isReleased)
    let given = state.releaseReaderPlace(me) {
      isKept = true
      holds(!state.snapshot.isOwned)
    }
    holds(isKept && given.owns && !given.endsReference && state.snapshot.owner == me)
    // The last one leaves the queue to its owner, and releases what all shared.
    isKept = false
    let last = state.releaseReaderPlace(other) { isKept = true }
    holds(!isKept && !last.owns && last.endsReference && state.snapshot.owner == me)
    // As the last of all, an item has the shared reference itself.
    let alone = concurrent()
    _ = alone.takeItemPlace(shares: true)
    _ = alone.noteWork(.default, exclusive: true)
    let only = alone.releaseReaderPlace(me) { isKept = true }
    holds(!isKept && only.owns && only.endsReference)
  }

  @Test("no barrier runs on a suspended queue: items that are held back have no places")
  func barrierWhileHeld() {
    let state = concurrent()
    holds(state.readersAreGone)
    state.suspend()
    holds(!state.readersAreGone)
    holds(state.addItemPlace(shares: true).reference == .first)
    _ = state.resume()
    holds(!state.readersAreGone)
    holds(state.releaseReaderPlace(me).endsReference && state.readersAreGone)
  }

  @Test("with so many places in the word that it may overflow, no reader is counted apart")
  func excess() {
    let excess = QueueState.Snapshot.excess
    let apart = concurrent()
    holds(apart.beginApart() && apart.setApart())
    for _ in 1..<excess { apart.addReaderPlace() }
    holds(!apart.snapshot.hasExcess)
    apart.addReaderPlace()
    holds(apart.snapshot.hasExcess)
    let busy = concurrent()
    for _ in 0..<excess { busy.addReaderPlace() }
    holds(!busy.beginApart())
    holds(!busy.releaseReaderPlace(me).owns)
    holds(busy.beginApart())
  }

  @Test("an owner that leaves the queue to readers counted apart closes their indicators")
  func releaseToReadersApart() {
    let state = concurrent()
    holds(state.beginApart() && state.setApart())
    holds(state.noteWork(.default, exclusive: false).level == .default)
    holds(state.beginDrain(me).mayDrain)
    holds(state.releaseToReaders(most: 0, .default).mustClose)
    holds(!state.snapshot.isApart && state.snapshot.waitsForAllReaders)
    holds(state.releaseStanding(me, readers: 0).owns)
  }

  @Test("a submitter that closes the indicators enqueues the queue, unless there are readers")
  func releaseStandingAsSubmitter() {
    let state = concurrent()
    holds(state.beginApart() && state.setApart())
    holds(state.noteWork(.utility, exclusive: true).level == nil)
    holds(state.clearApart())
    holds(state.releaseStanding(readers: 0).level == .utility)
    holds(state.snapshot.isEnqueued && !state.snapshot.hasReaders && !state.snapshot.isOwned)

    let read = concurrent()
    holds(read.beginApart() && read.setApart())
    holds(read.noteWork(.utility, exclusive: true).level == nil)
    holds(read.clearApart())
    holds(read.releaseStanding(readers: 1).level == nil)
    holds(read.releaseReaderPlace(me).owns)
  }

  @Test("readers are not counted apart while something waits, or their number is limited")
  func notApart() {
    let busy = concurrent()
    holds(busy.beginApart())
    _ = busy.noteWork(.default, exclusive: true)
    holds(!busy.setApart())
    holds(busy.releaseStanding(me, readers: 0).owns)
    holds(!busy.beginApart())
    let narrow = concurrent()
    _ = narrow.setNarrow(true)
    holds(!narrow.beginApart())
    _ = narrow.setNarrow(false)
    holds(narrow.beginApart())
    _ = narrow.setNarrow(true)
    holds(!narrow.setApart())
  }

  @Test("the text names owner, readers and flags")
  func text() {
    let state = concurrent(inactive: true)
    state.suspend()
    _ = state.noteWork(.default, exclusive: false)
    #expect(state.snapshot.description == "owner 0, readers 0, pending, suspended, inactive")
    let apart = concurrent()
    holds(apart.beginApart() && apart.setApart())
    #expect(apart.snapshot.description == "owner 0, readers counted apart")
  }
}

private func serial(nested: Bool = false, inactive: Bool = false) -> QueueState {
  QueueState(plain: true, nested: nested, inactive: inactive)
}

private func concurrent(inactive: Bool = false) -> QueueState {
  QueueState(plain: false, nested: false, inactive: inactive)
}

/// `#expect` would copy a state, and a state cannot be copied.
private func holds(_ condition: Bool, sourceLocation: SourceLocation = #_sourceLocation) {
  #expect(condition, sourceLocation: sourceLocation)
}

extension QueueState {
  fileprivate func takesItem(limit: UInt64 = .max) -> Bool {
    takeItemPlace(limit: limit, shares: true) != nil
  }
}

extension QueueState.Wake {
  /// The level for the entry that must be made; nil if none must be.
  fileprivate var level: QoSLevel? { if case .enqueue(let level) = self { level } else { nil } }
}

extension QueueState.DrainStart {
  fileprivate var mayDrain: Bool { if case .drain = self { true } else { false } }
}

extension QueueState.Release {
  fileprivate var isReleased: Bool { if case .released = self { true } else { false } }
  fileprivate var mustClose: Bool { if case .releasedApart = self { true } else { false } }
}

extension QueueState.WaiterNote {
  fileprivate var owns: Bool { if case .own = self { true } else { false } }
}

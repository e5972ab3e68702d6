// The places of a concurrent queue's readers: how they are taken, given back, and counted apart from the state word
// (ReaderIndicators.swift), where standing places are in it for all of them.

// MARK: - Taking a place

extension QueueState {
  /// Takes one reader's place on a free concurrent queue.
  /// - Parameters:
  ///   - limit: how many there are on a narrow queue.
  ///   - collided: called whenever another thread has changed the word meanwhile.
  @inline(__always)
  func takeReaderPlace(
    limit: @autoclosure () -> UInt64 = .max, collided: () -> Void = {}
  ) -> Bool {
    var seen = snapshot
    while seen.isFree && seen.mayAddReader && !(seen.isNarrow && seen.readers >= limit()) {
      // ORDERING: acquiring; a reader sees what the barriers before it wrote.
      let (done, original) = word.weakCompareExchange(
        expected: seen.bits, desired: seen.bits &+ Snapshot.reader, ordering: .acquiring)
      if done { return true }
      // On arm64 it may also fail without a reason.
      if original != seen.bits { collided() }
      seen = Snapshot(bits: original)
    }
    return false
  }

  /// Takes one more reader's place, for a thread that the owner lets read or that already reads.
  /// Allowed in every state.
  func addReaderPlace() {
    requireRoom()
    // ORDERING: acquiring; as in `takeReaderPlace`.
    word.wrappingAdd(Snapshot.reader, ordering: .acquiring)
  }

  private func requireRoom() {
    guard snapshot.mayAddReader else {
      Trap.clientBug(109, "more than \(Snapshot.mostReaders) items are in flight on one concurrent queue")
    }
  }

  /// The place of an asynchronous item.
  struct ItemPlace {
    /// What keeps the queue until the place is given back.
    enum Reference {
      /// The reference that all items share.
      case shared
      /// The same, and the caller must retain the queue for it.
      case first
      /// One of its own, for which the caller must retain the queue.
      case own
    }

    let reference: Reference
    /// Whether the target is not a global queue. It does not change before the place is given back.
    let isNested: Bool
  }

  /// Takes the place of an asynchronous item on a free concurrent queue, also while readers are counted apart.
  /// - Parameters:
  ///   - limit: how many places there are on a narrow queue.
  ///   - shares: whether items share a reference. If they do, no readers may be counted apart: standing places
  ///     would hide the end of the last item.
  /// - Returns: nil if the queue is not free.
  @inline(__always)
  func takeItemPlace(limit: @autoclosure () -> UInt64 = .max, shares: Bool) -> ItemPlace? {
    var seen = snapshot
    while seen.clearing(Snapshot.apart).isFree && seen.mayAddReader
      && !(seen.isNarrow && seen.readers >= limit())
    {
      // ORDERING: acquiring; as in `takeReaderPlace`.
      let (done, original) = word.weakCompareExchange(
        expected: seen.bits, desired: seen.addingItem(shares: shares).bits, ordering: .acquiring)
      if done { return seen.placeOfNextItem(shares: shares) }
      seen = Snapshot(bits: original)
    }
    return nil
  }

  /// As `takeItemPlace`, for an item with a reference of its own, by one addition. A compare-exchange would fail while other
  /// threads change the word.
  /// - Returns: nil if the queue is not free, or narrow: the caller must call `returnItemPlace`.
  @inline(__always)
  func addItemPlaceIfFree() -> ItemPlace? {
    // ORDERING: acquiring; as in `takeReaderPlace`.
    let seen = Snapshot(bits: word.wrappingAdd(Snapshot.reader, ordering: .acquiring).oldValue)
    let isFree = seen.clearing(Snapshot.apart).isFree && seen.mayAddReader && !seen.isNarrow
    return isFree ? seen.placeOfNextItem(shares: false) : nil
  }

  /// Gives back a place that `addItemPlaceIfFree` has added without success. The caller does not hand the queue on: it may
  /// hold locks.
  func returnItemPlace() -> Wake { releaseAsSubmitter(Snapshot.reader) }

  /// Takes a place for an item that the owner admits, or that was held back. Allowed in every state.
  func addItemPlace(shares: Bool) -> ItemPlace {
    requireRoom()
    return update { seen in (seen.addingItem(shares: shares), seen.placeOfNextItem(shares: shares)) }
  }
}

// MARK: - Giving a place back

extension QueueState {
  struct ReaderRelease {
    /// The caller now owns the queue and must hand it to the first in the list.
    let owns: Bool
    /// The last place is gone: the caller must then release the reference that the asynchronous items shared.
    let endsReference: Bool
  }

  /// An ordinary item of a concurrent queue has ended.
  /// - Parameter keep: called before the caller becomes the owner while others still read. They may release the shared
  ///   reference, so an item that has none of its own must retain the queue now. May be called more than once.
  @inline(__always)
  func releaseReaderPlace(_ thread: UInt32, keep: () -> Void = {}) -> ReaderRelease {
    release(Snapshot.reader, thread, keep: keep)
  }

  /// As `releaseReaderPlace`, for an item with a reference of its own: by one subtraction.
  /// - Returns: whether the caller now owns the queue.
  @inline(__always)
  func releaseCountedPlace(_ thread: UInt32) -> Bool {
    // ORDERING: releasing; pairs with the transitions of the next owner: a barrier sees what the reader wrote. Acquiring,
    // since an item's thread may have the last reference, and then destroys what other threads have made for the queue.
    let seen = Snapshot(
      bits: word.wrappingSubtract(Snapshot.reader, ordering: .acquiringAndReleasing).oldValue)
    return Snapshot(bits: seen.bits &- Snapshot.reader).isReleased && own(thread)
  }

  /// Takes the queue for the thread that has given back the place that the first entry of the list waited for.
  /// - Returns: false if another thread looks at the list.
  @inline(never)
  private func own(_ thread: UInt32) -> Bool {
    update { seen in seen.isReleased ? (seen.clearingWork().owned(by: thread), true) : (seen, false) }
  }

  /// The indicators have been closed: gives back the places that stood for their readers, but for `readers`.
  func releaseStanding(_ thread: UInt32, readers: Int) -> ReaderRelease {
    release(Snapshot.places(standingFor: readers), thread, keep: {})
  }

  /// The same, for a submitter, which does not hand the queue on.
  func releaseStanding(readers: Int) -> Wake { releaseAsSubmitter(Snapshot.places(standingFor: readers)) }

  private func releaseAsSubmitter(_ places: UInt64) -> Wake {
    update { seen in
      let fewer = Snapshot(bits: seen.bits &- places)
      return fewer.isReleased
        ? (fewer.setting(Snapshot.enqueued), .enqueue(fewer.level)) : (fewer, .nothing)
    }
  }

  @inline(__always)
  private func release(_ places: UInt64, _ thread: UInt32, keep: () -> Void) -> ReaderRelease {
    update { seen in
      var fewer = Snapshot(bits: seen.bits &- places)
      // Most often there is nothing to look at.
      guard seen.isPending || seen.isKept else {
        return (fewer, ReaderRelease(owns: false, endsReference: false))
      }
      let endsReference = fewer.isKept && !fewer.hasReaders
      if endsReference { fewer = fewer.clearing(Snapshot.kept) }
      guard fewer.isReleased else { return (fewer, ReaderRelease(owns: false, endsReference: endsReference)) }
      if fewer.hasReaders { keep() }
      return (
        fewer.clearingWork().owned(by: thread), ReaderRelease(owns: true, endsReference: endsReference)
      )
    }
  }
}

// MARK: - Counting readers apart

extension QueueState {
  /// Adds the places that are to stand for readers counted apart.
  /// - Returns: false if something waits, the number of readers is limited, or another thread has added them.
  func beginApart() -> Bool {
    update { seen in
      guard seen.mayCountApart else { return (seen, false) }
      return (Snapshot(bits: seen.bits + Snapshot.standing * Snapshot.reader), true)
    }
  }

  /// The indicators are open.
  /// - Returns: false if something waits meanwhile, or the number of readers is limited.
  func setApart() -> Bool {
    update { seen in
      seen.isFree && !seen.isNarrow ? (seen.setting(Snapshot.apart), true) : (seen, false)
    }
  }

  /// - Returns: whether the caller must close the indicators.
  func clearApart() -> Bool {
    guard snapshot.isApart else { return false }
    // ORDERING: acquiring; pairs with `setApart`, whose thread opened the indicators.
    return word.bitwiseAnd(~Snapshot.apart, ordering: .acquiring).oldValue & Snapshot.apart != 0
  }
}

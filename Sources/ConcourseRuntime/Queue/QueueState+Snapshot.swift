// Where the fields of the state word are. The head of QueueState.swift says what they mean. Only the transitions in
// QueueState.swift and QueueState+Readers.swift make new values.

extension QueueState {
  /// One value of the word, with names for what it says.
  struct Snapshot: CustomStringConvertible {
    let bits: UInt64

    /// The system's ids are below 2²².
    static let ownerMask: UInt64 = 0x7F_FFFF
    static let kept: UInt64 = 1 << 23
    static let reader: UInt64 = 1 << 24
    static let readerMask: UInt64 = 0xFFF_FFFF << 24
    static let pending: UInt64 = 1 << 52
    static let enqueued: UInt64 = 1 << 53
    static let suspended: UInt64 = 1 << 54
    static let inactive: UInt64 = 1 << 55
    static let special = idleConcurrent
    static let nested: UInt64 = 1 << 57
    static let narrow: UInt64 = 1 << 58
    static let barred: UInt64 = 1 << 59
    static let levelShift: UInt64 = 60
    static let levelMask: UInt64 = 7 << 60
    static let apart: UInt64 = 1 << 63
    /// More than there are threads, so that the count does not reach 0 while it includes these: readers that took their
    /// places apart may give them back in the word while the indicators are opened or closed.
    static var standing: UInt64 { UInt64(Tuning.value(1 << 26, inModel: 16)) }
    /// Far more than fit into memory. Racing additions do not reach the next field.
    static var mostReaders: UInt64 { UInt64(Tuning.value((1 << 28) - (1 << 16), inModel: 64)) }

    var owner: UInt32 { UInt32(truncatingIfNeeded: bits & Self.ownerMask) }
    var readers: UInt64 { (bits & Self.readerMask) / Self.reader }
    var isOwned: Bool { bits & Self.ownerMask != 0 }
    var hasReaders: Bool { bits & Self.readerMask != 0 }
    var isPending: Bool { bits & Self.pending != 0 }
    var isEnqueued: Bool { bits & Self.enqueued != 0 }
    var isSuspended: Bool { bits & Self.suspended != 0 }
    var isInactive: Bool { bits & Self.inactive != 0 }
    /// Suspended or inactive: nothing may start.
    var isHeld: Bool { bits & (Self.suspended | Self.inactive) != 0 }
    /// Whether asynchronous items share a reference.
    var isKept: Bool { bits & Self.kept != 0 }
    var isNarrow: Bool { bits & Self.narrow != 0 }
    var isNested: Bool { bits & Self.nested != 0 }
    var isApart: Bool { bits & Self.apart != 0 }
    /// Whether readers are counted apart, and nothing keeps the next one from reading.
    var isFreeApart: Bool { bits & ~(Self.special | Self.nested | Self.readerMask) == Self.apart }
    /// Whether readers may be counted apart from now on.
    var mayCountApart: Bool { isFree && !isNarrow && readers < Self.excess }
    /// Whether so many places are taken in the word that it may overflow: readers that take theirs in the word, as those
    /// that read again, and give them back apart let the number there grow.
    var hasExcess: Bool { readers >= Self.standing + Self.excess }
    static var excess: UInt64 { UInt64(Tuning.value(1 << 20, inModel: 2)) }
    /// Whether the word has standing places, so that there may be no readers.
    var hasStanding: Bool { readers >= Self.standing / 2 }
    /// Whether the first entry of the list is a barrier, and waits until the last reader has ended.
    var waitsForAllReaders: Bool { bits & Self.barred != 0 && hasReaders && !isEnqueued && !isHeld }
    var level: QoSLevel { QoSLevel(rawValue: UInt8((bits & Self.levelMask) >> Self.levelShift))! }

    /// Whether the queue is held, owned or read: its last reference should not have been released.
    var forbidsEnd: Bool {
      bits & (Self.ownerMask | Self.readerMask | Self.suspended | Self.inactive) != 0
    }

    /// The queue has no owner, no entry is noted, and it is not held. Readers may run.
    var isFree: Bool {
      bits & ~(Self.special | Self.nested | Self.narrow | Self.readerMask | Self.kept) == 0
    }
    /// The value that a queue has that nothing uses.
    var whenFree: Snapshot { Snapshot(bits: bits & (Self.special | Self.nested | Self.narrow)) }
    var mayAddReader: Bool { readers < Self.mostReaders }
    /// The standing places, but for as many as there are readers.
    static func places(standingFor readers: Int) -> UInt64 {
      reader &* (standing &- UInt64(bitPattern: Int64(readers)))
    }
    /// Whether the thread that has given back places must look at the list: an entry has waited for it.
    var isReleased: Bool {
      let isLate = hasReaders && !isNarrow
      return !isLate && isPending && !isOwned && !isEnqueued && !isHeld
    }

    func addingItem(shares: Bool) -> Snapshot {
      Snapshot(bits: bits &+ Self.reader | (shares ? Self.kept : 0))
    }
    func placeOfNextItem(shares: Bool) -> ItemPlace {
      ItemPlace(reference: !shares ? .own : isKept ? .shared : .first, isNested: isNested)
    }

    func owned(by thread: UInt32) -> Snapshot { Snapshot(bits: bits | UInt64(thread)) }
    func unowned() -> Snapshot { clearing(Self.ownerMask) }
    func setting(_ flag: UInt64) -> Snapshot { Snapshot(bits: bits | flag) }
    func clearing(_ flag: UInt64) -> Snapshot { Snapshot(bits: bits & ~flag) }
    /// The thread that takes the queue looks at the list: what was noted is then known.
    func clearingWork() -> Snapshot { clearing(Self.pending | Self.barred | Self.levelMask) }
    func noting(_ level: QoSLevel) -> Snapshot { raised(to: level).setting(Self.pending) }
    func raised(to level: QoSLevel) -> Snapshot {
      isNoted(level)
        ? self : Snapshot(bits: bits & ~Self.levelMask | UInt64(level.rawValue) << Self.levelShift)
    }
    /// The value for a queue whose owner leaves entries behind, the first of this level. Without a class it is for the
    /// default band, although entries behind it may have been noted for a lowered one.
    func leaving(_ first: QoSLevel) -> Snapshot {
      let isLowered = first == .unspecified && level.served < .default
      return isLowered ? clearing(Self.levelMask).setting(Self.pending) : noting(first)
    }
    /// Whether the queue has no owner, and its entries have no class: one of this level is no reason to enqueue it again.
    func waitsWithoutClass(for level: QoSLevel) -> Bool {
      guard !isOwned && (isEnqueued || isPending) && self.level == .unspecified else { return false }
      // A target may have a class.
      return level < .default || level == .default && !isNested
    }
    /// Whether the level is at least this one. By numbers: a comparison of levels becomes a jump table.
    func isNoted(_ level: QoSLevel) -> Bool {
      bits & Self.levelMask >= UInt64(level.rawValue) << Self.levelShift
    }

    var description: String {
      "owner \(owner), readers \(isApart ? "counted apart" : "\(readers)")\(isPending ? ", pending" : "")\(isEnqueued ? ", enqueued" : "")"
        + "\(isSuspended ? ", suspended" : "")\(isInactive ? ", inactive" : "")"
    }
  }
}

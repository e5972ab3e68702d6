/// The counts of a group, in one 64-bit word.
///
/// | bits  | field      | meaning |
/// |-------|------------|---------|
/// | 0–30  | entered    | `enter`s without their `leave` |
/// | 32–62 | items      | submitted items that have not returned |
/// | 63    | registered | a waiter or a notification is to be released when both counts are zero |
///
/// `enter` and `leave` are one addition each. A thread that brings both counts to zero while `registered` is set must
/// try to take the registrations under the group's lock. The compare-exchange there decides between this thread,
/// other leavers, and threads that enter again.
@usableFromInline
struct GroupState: ~Copyable {
  @usableFromInline let word = Atomic<UInt64>(0)

  @usableFromInline static let entered: UInt64 = 1
  @usableFromInline static let enteredMask: UInt64 = 0x7FFF_FFFF
  @usableFromInline static let item: UInt64 = 1 << 32
  @usableFromInline static let itemMask: UInt64 = 0x7FFF_FFFF << 32
  @usableFromInline static let registered: UInt64 = 1 << 63
  @usableFromInline static let most: UInt64 = 1 << 30

  init() {}

  /// Whether submitted items have not returned.
  var hasItems: Bool {
    // ORDERING: relaxed; only a forked child relies on it, in which those of the parent never return.
    word.load(ordering: .relaxed) & Self.itemMask != 0
  }

  @usableFromInline
  enum Leave {
    /// Something is still outstanding, or `registered` is not set.
    case others
    /// Nothing is outstanding, and `registered` is set.
    case last
    /// Nothing was outstanding.
    case unbalanced
  }

  /// - Returns: false if too many entries are outstanding.
  @inlinable @inline(__always)
  func enter() -> Bool {
    // ORDERING: relaxed; entering publishes nothing, and the client orders it before the matching leave.
    let after = word.wrappingAdd(Self.entered, ordering: .relaxed).newValue
    return after & Self.enteredMask < Self.most
  }

  @inlinable @inline(__always)
  func leave() -> Leave {
    // ORDERING: acquiring and releasing; pairs with the other leaves and with `isEmpty`. Each leave publishes what
    // came before it; the last one sees all of it and passes it on to waiters and notifications.
    let (before, after) = word.wrappingSubtract(Self.entered, ordering: .acquiringAndReleasing)
    if before & Self.enteredMask == 0 { return .unbalanced }
    return after == Self.registered ? .last : .others
  }

  /// As `enter`, and calls `first` if nothing was entered.
  @inlinable @inline(__always)
  func enter(first: () -> Void) -> Bool {
    // ORDERING: relaxed; as in `enterItem`.
    let before = word.wrappingAdd(Self.entered, ordering: .relaxed).oldValue
    if before & Self.enteredMask == 0 { first() }
    return before & Self.enteredMask < Self.most
  }

  /// As `leave`; also returns whether this was the last outstanding `enter`.
  @inlinable @inline(__always)
  func leaveEntered() -> (Leave, lastEntered: Bool) {
    // ORDERING: acquiring and releasing; as in `leave`.
    let (before, after) = word.wrappingSubtract(Self.entered, ordering: .acquiringAndReleasing)
    if before & Self.enteredMask == 0 { return (.unbalanced, false) }
    return (after == Self.registered ? .last : .others, after & Self.enteredMask == 0)
  }

  /// Counts an item, and calls `first` if it is the only one.
  @inline(__always)
  func enterItem(first: () -> Void) -> Bool {
    // ORDERING: relaxed; as in `enter`. The thread that brings the item count back to zero releases the reference
    // that `first` takes. The caller's own reference covers the time in between.
    let before = word.wrappingAdd(Self.item, ordering: .relaxed).oldValue
    if before & Self.itemMask == 0 { first() }
    return before & Self.itemMask < Self.most << 32
  }

  /// - Returns: the effect of leaving, and whether this was the last item.
  @inline(__always)
  func leaveItem() -> (Leave, lastItem: Bool) {
    // ORDERING: acquiring and releasing; as in `leave`.
    let after = word.wrappingSubtract(Self.item, ordering: .acquiringAndReleasing).newValue
    return (after == Self.registered ? .last : .others, after & Self.itemMask == 0)
  }

  /// Whether nothing is outstanding.
  var isEmpty: Bool {
    // ORDERING: acquiring; pairs with the leaves: a thread that finds the group empty sees their work.
    word.load(ordering: .acquiring) & ~Self.registered == 0
  }

  /// Sets `registered`, so that the last leaver takes the registrations. Call under the group's lock.
  /// - Returns: false if nothing is outstanding: the caller need not wait.
  func register() -> Bool {
    // ORDERING: acquiring; as in `isEmpty`.
    var seen = word.load(ordering: .acquiring)
    while seen & ~Self.registered != 0 {
      if seen & Self.registered != 0 { return true }
      // ORDERING: acquiring and releasing; pairs with the leaves: a leaver that sees the flag takes the
      // registrations.
      let (done, original) = word.weakCompareExchange(
        expected: seen, desired: seen | Self.registered, successOrdering: .acquiringAndReleasing,
        failureOrdering: .acquiring)
      if done { return true }
      seen = original
    }
    return false
  }

  /// Whether a waiter or a notification is registered.
  var hasRegistrations: Bool {
    // ORDERING: acquiring; pairs with `register`, whose thread has the group's lock: what was done under the lock before
    // is visible.
    word.load(ordering: .acquiring) & Self.registered != 0
  }

  /// Takes the registrations if the group is still empty. Call under the group's lock.
  func takeRegistrations() -> Bool {
    // ORDERING: acquiring and releasing; as in `leave`.
    word.compareExchange(expected: Self.registered, desired: 0, ordering: .acquiringAndReleasing).exchanged
  }
}

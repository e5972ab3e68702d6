/// What few queues need, kept out of the queue itself so that an idle queue stays small: suspension
/// count, specific values.
final class QueueExtras {
  let lock = Lock()
  var suspensions = 0
  /// What a suspended concurrent queue keeps until the resume, and what follows it.
  var heldBack = HeldBackItems()
  /// Whether `heldBack` has anything, for arrivals that do not want the lock.
  let hasHeldBack = Atomic<Bool>(false)
  /// Values by the identity of their key; the keys' objects are kept alive with them.
  var specifics: [ObjectIdentifier: (key: AnyObject, value: Any)] = [:]
}

extension DispatchQueue {
  /// The extras, made on first use.
  final var extras: QueueExtras {
    // ORDERING: acquiring; pairs with the releasing publication below.
    if let known = extrasReference.load(ordering: .acquiring) {
      // SAFETY: only this property and `releaseExtras` touch the reference; it was retained once.
      return Unmanaged<QueueExtras>.fromOpaque(known).takeUnretainedValue()
    }
    let made = Unmanaged.passRetained(QueueExtras())
    // ORDERING: releasing on success publishes the new object; acquiring on failure sees the winner's.
    let (published, winner) = extrasReference.compareExchange(
      expected: nil, desired: made.toOpaque(), ordering: .acquiringAndReleasing)
    guard !published else { return made.takeUnretainedValue() }
    made.release()
    return Unmanaged<QueueExtras>.fromOpaque(winner!).takeUnretainedValue()
  }

  /// The extras if there are any.
  final var extrasIfAny: QueueExtras? {
    // ORDERING: acquiring; as above.
    guard let known = extrasReference.load(ordering: .acquiring) else { return nil }
    // SAFETY: as above.
    return Unmanaged<QueueExtras>.fromOpaque(known).takeUnretainedValue()
  }

  final func releaseExtras() {
    // ORDERING: relaxed; the queue is being destroyed by its only thread.
    guard let known = extrasReference.load(ordering: .relaxed) else { return }
    let extras = Unmanaged<QueueExtras>.fromOpaque(known)
    // Values are released where their clean-up may take its time, not on the thread that happened to
    // drop the queue.
    let specifics = extras.takeUnretainedValue().specifics
    if !specifics.isEmpty { Runtime.globalQueue(.default).asyncUnsafe { withExtendedLifetime(specifics) {} } }
    extras.release()
  }
}

// SAFETY: every stored property is GUARDED BY `lock`, but for the atomic hint.
extension QueueExtras: @unchecked Sendable {}

internal import Glibc

/// What few queues need: suspension count, specific values.
final class QueueExtras: ObjectExtras {
  var suspensions = 0
  /// What a suspended concurrent queue keeps until the resume, and what follows it.
  var heldBack = HeldBackItems()
  /// Whether `heldBack` has anything, for arrivals that do not want the lock.
  let hasHeldBack = Atomic<Bool>(false)
  /// Values by the identity of their key; the keys' objects are kept alive with them.
  var specifics: [ObjectIdentifier: (key: AnyObject, value: Any)] = [:]
  /// Values that C programs have attached, by the address of their key.
  let contextValues = ContextValues()
  /// The target requested last, and how many requests lie in the list. GUARDED BY `Runtime.targetLock`.
  private(set) var requestedTarget: DispatchQueue?
  private var requests = 0
  /// The label as a C string, and whether it is ours to free.
  private var cLabel: UnsafePointer<CChar>?
  private var ownsLabel = false

  /// What `cLabel` reads instead of the queue's own label, if anything.
  var otherLabel: UnsafePointer<CChar>? { lock.withLock { ownsLabel ? nil : cLabel } }

  /// The label as a C string, made when first asked for.
  func cLabel(_ label: String) -> UnsafePointer<CChar> {
    lock.withLock {
      if let known = cLabel { return known }
      guard let made = strdup(label) else { Trap.outOfMemory("the label of a queue") }
      (cLabel, ownsLabel) = (UnsafePointer(made), true)
      return UnsafePointer(made)
    }
  }

  /// The former label, if it was ours, stays: somebody may have asked for it.
  func setLabel(_ label: UnsafePointer<CChar>) { lock.withLock { (cLabel, ownsLabel) = (label, false) } }

  /// - Returns: the target requested before, for the caller to release after unlocking.
  func beginRequest(_ target: DispatchQueue) -> DispatchQueue? {
    requests += 1
    defer { requestedTarget = target }
    return requestedTarget
  }

  /// - Returns: the target requested, for the caller to release after unlocking.
  func endRequest() -> DispatchQueue? {
    requests -= 1
    guard requests == 0 else { return nil }
    defer { requestedTarget = nil }
    return requestedTarget
  }

  deinit {
    if ownsLabel { free(UnsafeMutablePointer(mutating: cLabel)) }
    // Values are released where their clean-up may take its time, not on the thread that happened to
    // drop the queue.
    guard !specifics.isEmpty else { return }
    let specifics = specifics
    Runtime.globalQueue(.default).asyncUnsafe { withExtendedLifetime(specifics) {} }
  }
}

extension DispatchQueue {
  /// The extras, made on first use.
  final var extras: QueueExtras {
    // SAFETY: `objectExtras` makes a queue's extras of this class.
    unsafeDowncast(objectExtras, to: QueueExtras.self)
  }

  /// The same for calls that do not outlast the queue.
  final var uncountedQueueExtras: Unmanaged<QueueExtras> {
    // SAFETY: as above.
    .fromOpaque(uncountedExtras.toOpaque())
  }

  /// The extras if there are any.
  final var extrasIfAny: QueueExtras? {
    // SAFETY: as above.
    uncountedExtrasIfAny.map { unsafeDowncast($0.takeUnretainedValue(), to: QueueExtras.self) }
  }
}

// SAFETY: every stored property is GUARDED BY `lock`, but for the atomic hint and what says otherwise.
extension QueueExtras: @unchecked Sendable {}

/// A queue's label as it was given: as Swift's string, or as a copy of C's, each made the other only when asked for.
///
/// The queue owns it: `free` is to be called when it goes.
enum QueueName {
  case string(String)
  case cString(UnsafeMutablePointer<CChar>)

  init(_ label: String) { self = .string(label) }

  /// Copies a C string; nil is the empty one.
  init(copying label: UnsafePointer<CChar>?) {
    guard let label, label.pointee != 0 else {
      self = .string("")
      return
    }
    guard let copy = strdup(label) else { Trap.outOfMemory("the label of a queue") }
    self = .cString(copy)
  }

  var text: String {
    switch self {
    case .string(let text): text
    case .cString(let text): String(cString: text)
    }
  }

  func free() {
    switch self {
    case .string: break
    case .cString(let text): Glibc.free(text)
    }
  }
}

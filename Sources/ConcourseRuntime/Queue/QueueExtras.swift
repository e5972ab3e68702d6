internal import Glibc

/// State that few queues need: the suspension count, specific values, labels for C.
final class QueueExtras: ObjectExtras {
  var suspensions = 0
  /// How often the last suspension has been ended: `concourse report` tells by it that a suspension lasts.
  var resumes = 0
  /// Items that a suspended concurrent queue keeps until it is resumed, and those that are overdue then.
  var heldBack = HeldBackItems()
  /// Whether `heldBack` has items. Read without the lock.
  let hasHeldBack = Atomic<Bool>(false)
  /// The readers of a concurrent queue that are counted apart from the state word.
  let readers = ReaderIndicators()
  /// Values by the identity of their key; the keys' objects are kept alive with them.
  var specifics: [ObjectIdentifier: (key: AnyObject, value: Any)] = [:]
  /// Values that C programs have attached, by the address of their key.
  let contextValues = ContextValues()
  /// The target requested last, and the number of requests in the list. GUARDED BY `targetLock`.
  private(set) var requestedTarget: DispatchQueue?
  private var requests = 0
  /// The label as a C string, and whether the extras free it.
  private var cLabel: UnsafePointer<CChar>?
  private var ownsLabel = false

  /// The label that a C program has set in place of the queue's own, if any.
  var otherLabel: UnsafePointer<CChar>? { lock.withLock { ownsLabel ? nil : cLabel } }

  /// The label as a C string, made on first use.
  func cLabel(_ label: String) -> UnsafePointer<CChar> {
    lock.withLock {
      if let known = cLabel { return known }
      guard let made = strdup(label) else { Trap.outOfMemory("the label of a queue") }
      (cLabel, ownsLabel) = (UnsafePointer(made), true)
      return UnsafePointer(made)
    }
  }

  /// Sets the label for C. A former label that the extras made is not freed: a caller may still use it.
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
    // Values are released in an item of their own, since that may take long, not on the thread that
    // dropped the queue.
    guard !specifics.isEmpty && !Process.isForkedChild else { return }
    let specifics = specifics
    DispatchQueue.global(at: .default).submit { withExtendedLifetime(specifics) {} }
  }
}

extension DispatchQueue {
  /// The extras, made on first use.
  final var extras: QueueExtras {
    // SAFETY: `objectExtras` makes a queue's extras of this class.
    unsafeDowncast(objectExtras, to: QueueExtras.self)
  }

  /// The extras without a reference, for calls that end before the queue does.
  final var uncountedQueueExtras: Unmanaged<QueueExtras> {
    // SAFETY: as above.
    .fromOpaque(uncountedExtras.toOpaque())
  }

  /// The extras, if they have been made.
  final var extrasIfAny: QueueExtras? {
    // SAFETY: as above.
    uncountedExtrasIfAny.map { unsafeDowncast($0.takeUnretainedValue(), to: QueueExtras.self) }
  }
}

// SAFETY: every stored property is GUARDED BY `lock`, except the atomic hint and those that name another guard.
extension QueueExtras: @unchecked Sendable {}

/// A queue's label as it was given: a Swift string, or a copy of a C string. Each is converted only on demand.
///
/// The queue owns the label, and calls `free` when it ends.
enum QueueName {
  case string(String)
  case cString(UnsafeMutablePointer<CChar>)
  /// At most 15 characters of C and the zero behind them. To allocate them and to free them would take a fourth of all
  /// instructions of a queue that is made and released.
  case short(UInt64, UInt64)

  private static let room = 2 * MemoryLayout<UInt64>.size

  init(_ label: String) { self = .string(label) }

  /// Copies a C string; nil means the empty one.
  init(copying label: UnsafePointer<CChar>?) {
    guard let label, label.pointee != 0 else {
      self = .string("")
      return
    }
    let length = strlen(label)
    if length < Self.room {
      var words: (UInt64, UInt64) = (0, 0)
      memcpy(&words, label, length)
      self = .short(words.0, words.1)
      return
    }
    guard let copy = malloc(length + 1) else { Trap.outOfMemory("the label of a queue") }
    memcpy(copy, label, length + 1)
    self = .cString(copy.assumingMemoryBound(to: CChar.self))
  }

  /// Out of line: messages of traps would otherwise bring a buffer, and a check of the stack, into hot functions.
  var text: String {
    @inline(never) get {
      switch self {
      case .string(let text): text
      case .cString(let text): String(cString: text)
      case .short(let first, let second):
        withUnsafeBytes(of: (first, second)) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      }
    }
  }

  func free() {
    if case .cString(let text) = self { Glibc.free(text) }
  }
}

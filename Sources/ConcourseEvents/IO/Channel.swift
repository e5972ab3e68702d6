internal import Glibc

/// A channel apart from the object that clients hold, `DispatchIO`: operations and the cleanup handler may outlive that
/// object.
final class Channel {
  /// How often handlers are called even if there is little to deliver.
  struct Pacing {
    /// Nanoseconds.
    let interval: UInt64
    let isStrict: Bool
  }

  let type: DispatchIO.StreamType
  /// The file's position when the channel was made. Offsets of random operations count from it.
  let base: Int
  let cleanupQueue: DispatchQueue
  /// Whether it serves a one-shot operation: clients do not see it, and it has no cleanup handler.
  let isForOneOperation: Bool

  /// GUARDED BY the entry's lock; only `DescriptorState` uses it.
  var state = ChannelState()

  private let lock = Lock(.channel)
  // GUARDED BY `lock`.
  private var cleanup: CleanupHandler?
  private var currentMarks = WaterMarks()
  private var currentPacing: Pacing?
  private var currentQueue: DispatchQueue
  private var extras: ObjectExtras?

  init(_ type: DispatchIO.StreamType, base: Int = 0, _ queue: DispatchQueue, _ cleanup: CleanupHandler?) {
    self.type = type
    self.base = base
    isForOneOperation = false
    cleanupQueue = queue
    currentQueue = queue
    self.cleanup = cleanup
  }

  /// Makes the channel of a one-shot operation.
  init(forOneOperationOn queue: DispatchQueue) {
    (type, base, isForOneOperation) = (.stream, 0, true)
    cleanupQueue = queue
    currentQueue = queue
  }

  /// Makes a channel for a descriptor.
  /// - Returns: the channel, and the errno if it is random and the descriptor has no position.
  static func make(
    _ type: DispatchIO.StreamType, on descriptor: Int32, _ queue: DispatchQueue,
    _ cleanup: CleanupHandler?
  ) -> (channel: Channel, error: Int32) {
    let position = type == .random ? System.position(of: descriptor) : 0
    return (Channel(type, base: max(0, position), queue, cleanup), Int32(max(0, -position)))
  }

  /// Calls the cleanup handler, unless it has been called.
  func runCleanup(_ error: Int32) {
    let handler = lock.withLock { () -> CleanupHandler? in
      defer { cleanup = nil }
      return cleanup
    }
    guard let handler else { return }
    if Recording.isOn {
      ItemRecording.run(handler.code, from: nil) { handler.call(error) }
    } else {
      handler.call(error)
    }
  }

  /// Delays the context's finalizer until no handler can be called any more.
  func keep(_ extras: ObjectExtras) { lock.withLock { self.extras = extras } }

  var marks: WaterMarks { lock.withLock { currentMarks } }

  func changeMarks(_ body: (inout WaterMarks) -> Void) { lock.withLock { body(&currentMarks) } }

  /// nil if handlers are called only when there is something to deliver.
  var pacing: Pacing? {
    get { lock.withLock { currentPacing } }
    set { lock.withLock { currentPacing = newValue } }
  }

  /// Where barriers run.
  var queue: DispatchQueue {
    get { lock.withLock { currentQueue } }
    set {
      // Release the former queue outside the lock: that may release a client's objects.
      let former = lock.withLock { () -> DispatchQueue in
        defer { currentQueue = newValue }
        return currentQueue
      }
      withExtendedLifetime(former) {}
    }
  }
}

// SAFETY: see the guards above; the client is responsible for its cleanup handler.
extension Channel: @unchecked Sendable {}

/// Whether a channel takes operations.
struct ChannelState {
  private enum Phase {
    case open
    /// The channel could not be made; the cleanup handler gets the errno.
    case failed(Int32)
    /// - Parameter isStopped: whether its operations had to end early.
    case closed(isStopped: Bool)
  }

  enum Admission: Equatable {
    case admitted
    case refused(Int32)
  }

  /// What the caller must do next.
  enum Retirement: Equatable {
    case nothing
    /// The channel was open: it leaves its descriptor.
    case leave
  }

  private var phase = Phase.open

  var isClosed: Bool {
    switch phase {
    case .open, .failed: false
    case .closed: true
    }
  }

  var isStopped: Bool {
    switch phase {
    case .closed(let isStopped): isStopped
    case .open, .failed: false
    }
  }

  /// Whether an operation may be submitted now.
  func admission() -> Admission {
    switch phase {
    case .open: .admitted
    case .failed(let error): .refused(error)
    case .closed: .refused(ECANCELED)
    }
  }

  mutating func close() -> Retirement {
    switch phase {
    case .open:
      phase = .closed(isStopped: false)
      return .leave
    case .failed:
      phase = .closed(isStopped: false)
      return .nothing
    case .closed:
      return .nothing
    }
  }

  /// The operations of the closed channel must end early.
  mutating func stop() {
    switch phase {
    case .closed: phase = .closed(isStopped: true)
    case .open, .failed: break
    }
  }

  /// There is no descriptor for the channel.
  mutating func fail(_ error: Int32) -> Retirement {
    switch phase {
    case .open:
      phase = .failed(error)
      return .leave
    case .failed, .closed:
      return .nothing
    }
  }
}

/// The fewest and the most bytes that an intermediate call of a handler gets.
struct WaterMarks: Equatable {
  private(set) var low = 1 << 20
  private(set) var high = Int.max

  /// Setting one mark moves the other if they would cross. A negative number means no limit.
  mutating func setLow(_ value: Int) {
    low = value < 0 ? .max : max(1, value)
    high = max(high, low)
  }

  mutating func setHigh(_ value: Int) {
    high = value < 0 ? .max : max(1, value)
    low = min(low, high)
  }
}

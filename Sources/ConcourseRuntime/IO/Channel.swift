/// What a channel is, apart from the object that clients hold: operations and cleanup outlive that.
final class Channel {
  /// How often handlers are called whatever comes.
  struct Pacing {
    /// Nanoseconds.
    let interval: UInt64
    let isStrict: Bool
  }

  let type: DispatchIO.StreamType
  /// Where the file's position was when the channel was made: what random operations count from.
  let base: Int
  let cleanupQueue: DispatchQueue

  /// GUARDED BY the entry's lock.
  var state = ChannelState()

  private let lock = Lock()
  // GUARDED BY `lock`.
  private var cleanup: ((Int32) -> Void)?
  private var currentMarks = WaterMarks()
  private var currentPacing: Pacing?
  private var currentQueue: DispatchQueue
  private var extras: ObjectExtras?

  init(_ type: DispatchIO.StreamType, base: Int, _ queue: DispatchQueue, _ cleanup: ((Int32) -> Void)?) {
    self.type = type
    self.base = base
    cleanupQueue = queue
    currentQueue = queue
    self.cleanup = cleanup
  }

  /// Calls the cleanup handler, the first time.
  func runCleanup(_ error: Int32) {
    let handler = lock.withLock { () -> ((Int32) -> Void)? in
      defer { cleanup = nil }
      return cleanup
    }
    handler?(error)
  }

  /// Lets the finalizer of the channel's context wait until no handler can be called any more.
  func keep(_ extras: ObjectExtras) { lock.withLock { self.extras = extras } }

  var marks: WaterMarks { lock.withLock { currentMarks } }

  func changeMarks(_ body: (inout WaterMarks) -> Void) { lock.withLock { body(&currentMarks) } }

  /// nil for handlers that are called only when there is something to tell.
  var pacing: Pacing? {
    get { lock.withLock { currentPacing } }
    set { lock.withLock { currentPacing = newValue } }
  }

  /// Where barriers run.
  var queue: DispatchQueue {
    get { lock.withLock { currentQueue } }
    set {
      // The former queue may be the last to hold what a client keeps on it: let go of outside the lock.
      let former = lock.withLock { () -> DispatchQueue in
        defer { currentQueue = newValue }
        return currentQueue
      }
      withExtendedLifetime(former) {}
    }
  }
}

// SAFETY: see the guards above; the client answers for its cleanup handler.
extension Channel: @unchecked Sendable {}

public import CConcourse

/// One running item, on a thread's stack: the queue that it runs for, and the frame of its submitter, if
/// that waits for it.
///
/// Frames tell the current queue, its specifics, and whether the thread already holds a queue. They live on
/// the stack of the thread that runs the item, or of a thread that waits for it.
@frozen
@usableFromInline
package struct Frame {
  /// The queue that the item was submitted to. Not counted: the thread that runs the item keeps it alive.
  @usableFromInline let queue: Unmanaged<DispatchQueue>
  /// The frame of the synchronous submitter, or nil at the bottom of an asynchronous item.
  @usableFromInline let parent: UnsafeMutablePointer<Frame>?
  /// Whether the item runs alone on the queue.
  @usableFromInline let exclusive: Bool
  /// The level at which the item is served; what it submits inherits it.
  @usableFromInline var level: QoSLevel

  @inlinable @inline(__always)
  init(
    queue: Unmanaged<DispatchQueue>, parent: UnsafeMutablePointer<Frame>?, exclusive: Bool,
    level: QoSLevel
  ) {
    self.queue = queue
    self.parent = parent
    self.exclusive = exclusive
    self.level = level
  }

  /// The innermost frame of the calling thread.
  @inlinable
  static var current: UnsafeMutablePointer<Frame>? {
    @inline(__always) get { CurrentThread.state.pointee.innermostFrame }
  }

  /// Runs `body` inside `frame`.
  @inline(__always)
  static func run<Result>(_ frame: consuming Frame, _ body: () -> Result) -> Result {
    var frame = frame
    let thread = CurrentThread.state
    if thread.pointee.id == 0 { _ = CurrentThread.id }
    let outer = thread.pointee.innermostFrame
    return withUnsafeMutablePointer(to: &frame) { pointer in
      thread.pointee.innermostFrame = pointer
      defer { thread.pointee.innermostFrame = outer }
      return body()
    }
  }

  /// Sets the level in the innermost frame, for the next item of a drain.
  @inline(__always)
  static func setLevel(_ level: QoSLevel) { current!.pointee.level = level }

  /// The level that an asynchronous submission from the calling thread inherits.
  package static var inheritedLevel: QoSLevel {
    @inline(__always) get {
      guard let frame = current else { return .unspecified }
      return frame.pointee.level.propagated
    }
  }

  /// How the calling thread holds a queue.
  enum Hold {
    case none, shared, exclusive
  }

  /// How the frames from `innermost` outwards hold `queue`, directly or through a queue above it.
  static func hold(of queue: DispatchQueue, from innermost: UnsafeMutablePointer<Frame>?) -> Hold {
    var strongest = Hold.none
    var next = innermost
    while let frame = next {
      var link: DispatchQueue? = frame.pointee.queue.takeUnretainedValue()
      var exclusive = frame.pointee.exclusive
      while let held = link {
        if held === queue || held.isSameGlobalQueue(as: queue) {
          if exclusive || held.kind.isSerial { return .exclusive }
          strongest = .shared
        }
        // Of a concurrent queue above its own, a frame has an ordinary place.
        exclusive = false
        link = held.targetQueue
      }
      next = frame.pointee.parent
    }
    return strongest
  }
}

extension concourse_thread {
  /// The innermost running item of this thread.
  @inlinable
  var innermostFrame: UnsafeMutablePointer<Frame>? {
    // SAFETY: only this file's `Frame` pointers are ever stored in `frame`.
    @inline(__always) get { frame?.assumingMemoryBound(to: Frame.self) }
    @inline(__always) set {
      frame = UnsafeMutableRawPointer(newValue)
      if let newValue { queue = newValue.pointee.queue.toOpaque() }
    }
  }
}

extension CurrentThread {
  /// The kernel's thread id, cached; never 0.
  package static var id: UInt32 {
    let state = Self.state
    let known = state.pointee.id
    return known != 0 ? known : learnID(state)
  }

  /// Whether the calling thread is the one that the process began with.
  static var isMain: Bool { id == Process.id }

  @inline(never)
  private static func learnID(_ state: UnsafeMutablePointer<concourse_thread>) -> UInt32 {
    let id = kernelID
    state.pointee.id = id
    // No item runs on a thread without an id.
    _ = ThreadExit.watch()
    return id
  }
}

/// Checks and cleans up when a thread exits.
///
/// An item that ends its thread (`pthread_exit`, `pthread_cancel`) never returns: its queue stays owned, its group
/// never empties, and threads that wait for it hang. The same goes for an item that `longjmp` or a C++ exception
/// leaves, which shows only here. The frames were on a stack that has been unwound by now, so the innermost queue is
/// kept beside the frame.
enum ThreadExit {
  /// Arms the hook on the calling thread; every thread does so when it learns its id.
  /// - Returns: false when the hook has run already, or the system refuses it.
  static func watch() -> Bool { CurrentThread.watchExit { ThreadExit.run() } }

  private static func run() {
    let thread = CurrentThread.state
    if thread.pointee.frame != nil {
      // SAFETY: the thread that runs an item has a reference to its queue, and releasing the last one traps while the
      // item has not returned.
      let queue = Unmanaged<DispatchQueue>.fromOpaque(thread.pointee.queue!).takeUnretainedValue()
      Trap.clientBug(
        404,
        "an item of queue \"\(queue.label)\" never returned: it ended its thread (pthread_exit, pthread_cancel), or "
          + "longjmp or an exception left it; what it holds is never given back")
    }
    if thread.pointee.once_depth > 0 {
      Trap.clientBug(
        405,
        "a body that runs once never returned: it ended its thread (pthread_exit, pthread_cancel), or longjmp or an "
          + "exception left it; threads that wait for it would wait for ever")
    }
    if thread.pointee.worker != nil || thread.pointee.delivering != nil {
      Trap.clientBug(406, "a thread of the pool was ended from outside (pthread_cancel)")
    }
    NodeMagazine.emptyAtExit()
    Recording.threadEnds()
  }
}

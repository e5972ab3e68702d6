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

extension DispatchQueue {
  /// The queue whose item the calling thread runs; for jobs of Swift Concurrency. Traps outside items.
  package class var running: DispatchQueue {
    guard let frame = Frame.current else { Trap.runtimeBug("a job runs outside of any queue") }
    return frame.pointee.queue.takeUnretainedValue()
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

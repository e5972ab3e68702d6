/// A thread that has slept for some time in a wait which only certain threads can end. Lives on that thread's stack.
///
/// While it is registered, the thread runs no client code: what it holds stays held.
///
/// Tools read the record from another process. `concourse_blocked_threads` has the address of 128 pointers to the first
/// records of lists, or NULL until the first thread registers; the lists from 64 on have the threads with
/// places. The fields up to `thread` keep their offsets: 0 `next`, 8 `previous`, 16 `since`, 24 `object`, 32 `waiter`,
/// 40 `frames` (0: the queue, 8: the outer frame), 48 `kind` (one byte: the number of the case), 52 `thread` (four bytes).
struct BlockedThread {
  enum Kind: UInt8 {
    /// For its turn on a queue, to which the queue of `frames` is equal or leads.
    case turn = 1
    /// Until its body has run on the thread that serves the queue at the end of the hierarchy.
    case service
    /// For the end of a work item.
    case item
    /// For the end of a body that runs once.
    case once
    /// Until a group is empty.
    case group
  }

  /// Which threads can end the wait, if it is not for a queue.
  enum Ending {
    case byQueue
    /// The thread that runs what `object` stands for; 0 if there is none, or it is not known.
    case byThread((_ object: UnsafeRawPointer) -> UInt32)
    /// Those that have a place in the object, while it is waited for since that round.
    case byPlaces(round: UInt32, isAwaited: (_ object: UnsafeRawPointer, _ round: UInt32) -> Bool)
  }

  struct Wait {
    /// The queue, work item, gate or group that the thread waits for.
    let object: UnsafeRawPointer
    var waiter: UnsafeMutablePointer<SyncWaiter>?
    /// The frame of the `sync` that waits, or else of the innermost item that the thread runs.
    var frames: UnsafeMutablePointer<Frame>? = Frame.current
    let kind: Kind
  }

  var next: BlockedPointer?
  var previous: BlockedPointer?
  /// When the wait began (`Clock.uptime`).
  let since: UInt64
  let wait: Wait
  let thread: UInt32

  /// A frame of the engine on the thread's stack (`CallPlace`).
  let frame: UInt
  let ending: Ending
  /// The concurrent queues on which the thread has a reader's place, and the group of the item that it runs. A thread
  /// that waits until one of these is free waits for all threads that have a place in it.
  let places: [UnsafeRawPointer]
  /// Whether the thread holds a queue for itself alone, or is the main thread, which serves one.
  let holdsQueues: Bool

  // GUARDED BY the lock of `BlockedThreads`.
  /// Whether no pass has begun after the registration and come to its end.
  var awaitsSearch = true
  var isReported = false

  init(_ wait: Wait, _ ending: Ending, since: UInt64, frame: UInt) {
    self.since = since
    self.wait = wait
    self.ending = ending
    self.frame = frame
    thread = CurrentThread.id
    var (places, holdsQueues) = ([UnsafeRawPointer](), thread == Process.id)
    wait.forEachHeld { queue, isPlace in
      if isPlace { places.append(queue.selfPointer) } else { holdsQueues = true }
    }
    if let group = CurrentThread.state.pointee.group { places.append(group) }
    (self.places, self.holdsQueues) = (places, holdsQueues)
  }
}

typealias BlockedPointer = UnsafeMutablePointer<BlockedThread>

extension BlockedThread.Wait {
  /// The queue, for a wait of the first two kinds.
  var queue: DispatchQueue { Unmanaged<DispatchQueue>.fromOpaque(object).takeUnretainedValue() }

  /// Calls `body` with each queue that the thread holds, and whether it has only a reader's place there: the queues that
  /// an unfinished `sync` has taken on its way up, and those of the thread's items.
  func forEachHeld(_ body: (DispatchQueue, _ isPlace: Bool) -> Void) {
    var next = frames
    var end = waiter == nil ? nil : object
    while let frame = next {
      var link: DispatchQueue? = frame.pointee.queue.takeUnretainedValue()
      var isExclusive = frame.pointee.exclusive
      while let queue = link, queue.kind != .global, UnsafeRawPointer(queue.selfPointer) != end {
        body(queue, queue.kind == .concurrent && !isExclusive)
        isExclusive = false
        link = queue.targetQueue
      }
      end = nil
      next = frame.pointee.parent
    }
  }
}

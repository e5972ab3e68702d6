internal import CConcourse

extension DispatchQueue {
  /// The serial queue whose items run on the main thread, served by `dispatchMain()` or by an event loop
  /// that watches `mainQueueDescriptor`. Always the same object. Matching C function:
  /// `dispatch_get_main_queue`.
  public class var main: DispatchQueue { ProcessQueues.shared.mainQueue }

  /// A file descriptor that becomes readable when the main queue has items, for embedding the main queue
  /// in another event loop.
  ///
  /// Watch it for reading and, when it is readable, call `drainMainQueue()` on the main thread, which
  /// also makes it unreadable again. Non-blocking and close-on-exec; it belongs to the runtime and must
  /// not be closed. -1 when the system has no descriptor left. Matching C function:
  /// `_dispatch_get_main_queue_handle_4CF`.
  public class var mainQueueDescriptor: Int32 { ProcessQueues.shared.mainThread.descriptor() }

  /// Runs, on the calling thread, the items that are in the main queue now; items that they add make the
  /// descriptor readable again.
  ///
  /// Traps on any thread but the main one. Matching C function: `_dispatch_main_queue_callback_4CF`.
  public class func drainMainQueue() {
    guard CurrentThread.isMain else {
      Trap.clientBug(403, "drainMainQueue() was called off the main thread")
    }
    ProcessQueues.shared.mainThread.drainOnce()
  }

  /// The label of the queue whose item runs on the calling thread; that of the main queue on the main
  /// thread outside items; empty on other threads. Matching C call:
  /// `dispatch_queue_get_label(DISPATCH_CURRENT_QUEUE_LABEL)`.
  public class var currentLabel: String { current?.label ?? "" }

  /// The innermost queue of the running item, or the main queue on the main thread outside items.
  package class var current: DispatchQueue? {
    if let frame = Frame.current { return frame.pointee.queue.takeUnretainedValue() }
    return CurrentThread.isMain ? ProcessQueues.shared.mainQueue : nil
  }
}

/// Serves the main queue on the calling thread, which must be the main thread, and never returns.
///
/// From then on the main thread serves only the main queue. Keep sources in global variables: in an optimized build the
/// caller's local variables are released before the call, even with `withExtendedLifetime`, because nothing after the
/// call is reachable. Traps on another thread, and inside an item of a queue. Matching C function: `dispatch_main`.
public func dispatchMain() -> Never {
  guard CurrentThread.isMain else {
    Trap.clientBug(401, "dispatchMain() was called off the main thread")
  }
  guard Frame.current == nil else {
    Trap.clientBug(402, "dispatchMain() was called from inside an item of a queue")
  }
  ProcessQueues.shared.mainThread.serve()
}

/// The thread that the process began with, as the server of the main queue, and the ways to wake it.
final class MainThread {
  /// Whether there may be items for which the main thread has not looked yet. `dispatchMain` sleeps on it.
  private let signal = Atomic<UInt32>(Signal.none)

  private enum Signal {
    static let none: UInt32 = 0
    static let items: UInt32 = 1
    /// No items, and the main thread sleeps or is about to.
    static let sleeping: UInt32 = 2
  }
  /// The descriptor for other event loops, or -1 until it is made.
  private let handle = Atomic<Int32>(-1)
  private let handleLock = Lock(.mainQueueHandle)

  /// Whether the main thread runs entries of the main queue. For a forked child.
  private let isServing = Atomic<Bool>(false)

  /// Whether the main queue has entries, or the main thread runs one.
  var mayServe: Bool {
    // ORDERING: acquiring; pairs with the stores of `beginServing` and `endServing`. The two looks are not one: an entry
    // may leave the list between them, or begin before the second is seen. The caller looks ten times in a second.
    !ProcessQueues.shared.mainQueue.list.isEmpty || isServing.load(ordering: .acquiring)
  }

  /// Notifies the main thread that the main queue's list was empty and now has an entry.
  static func wake() { ProcessQueues.shared.mainThread.wake() }

  private func wake() {
    // ORDERING: sequentially consistent; comes after the push and before the load of the descriptor, whose
    // maker looks at the list after publishing the descriptor.
    let before = signal.exchange(Signal.items, ordering: .sequentiallyConsistent)
    if before == Signal.sleeping { Futex.wake(signal, count: 1) }
    let descriptor = ownDescriptor
    if descriptor >= 0 { concourse_eventfd_signal(descriptor) }
  }

  /// The descriptor for other event loops; -1 if it has not been made. A daemon closes its parent's descriptors, and may
  /// have opened a file of its own under this number.
  private var ownDescriptor: Int32 {
    // ORDERING: sequentially consistent; see `wake`.
    let known = handle.load(ordering: .sequentiallyConsistent)
    return known >= 0 && Process.isForked && !concourse_is_anonymous(known) ? -1 : known
  }

  /// In a forked child: its descriptor no longer wakes the parent. The number stays, since an event loop may watch it.
  func noteFork(_ mainQueue: DispatchQueue) {
    handleLock.forgetHolder()
    // The child's main thread is the one that has forked.
    let isInEntry = Frame.hold(of: mainQueue, from: Frame.current) != .none
    // ORDERING: relaxed, both; the child has one thread.
    isServing.store(isInEntry, ordering: .relaxed)
    let descriptor = handle.load(ordering: .relaxed)
    if descriptor >= 0 { concourse_eventfd_replace(descriptor) }
  }

  /// Serves the main queue for ever.
  func serve() -> Never {
    while true {
      // ORDERING: acquiring; pairs with `wake`: the drain finds what was pushed before it.
      _ = signal.exchange(Signal.none, ordering: .acquiring)
      drain()
      sleepUntilItems()
    }
  }

  /// Sleeps until there are items. Spins first: a thread that the main thread has just given work may soon answer.
  private func sleepUntilItems() {
    // ORDERING: acquiring; as above.
    if Spin.wait(rounds: Spin.waitRounds, until: { signal.load(ordering: .acquiring) != Signal.none }) {
      return
    }
    // ORDERING: acquiring, both; as above. A thread that brings items afterwards finds `sleeping`, and wakes.
    guard
      signal.compareExchange(expected: Signal.none, desired: Signal.sleeping, ordering: .acquiring).exchanged
    else { return }
    while signal.load(ordering: .acquiring) == Signal.sleeping {
      _ = Futex.waitForOthers(signal, expected: Signal.sleeping)
    }
  }

  /// The descriptor that becomes readable when the main queue has items; -1 if the system refuses one.
  func descriptor() -> Int32 {
    handleLock.withLock {
      let known = ownDescriptor
      if known >= 0 { return known }
      let made = concourse_eventfd()
      // ORDERING: sequentially consistent; see `wake`.
      handle.store(made, ordering: .sequentiallyConsistent)
      let mainQueue = ProcessQueues.shared.mainQueue
      if made >= 0, !mainQueue.list.isEmptyInTotalOrder { concourse_eventfd_signal(made) }
      return made
    }
  }

  /// Runs the items that were in the main queue when the call began. Items that these add stay for later.
  func drainOnce() {
    let descriptor = ownDescriptor
    if descriptor >= 0 { concourse_eventfd_clear(descriptor) }
    let queue = ProcessQueues.shared.mainQueue
    guard !queue.list.isEmpty else { return }
    // A marker behind the entries that are there now. An item may call this function again. When any of
    // these calls reaches the marker, everything before it has been taken.
    var reached = false
    withUnsafeMutablePointer(to: &reached) { reached in
      _ = queue.list.push(NodeMagazine.make(.engine { reached.pointee = true }, level: .unspecified))
      let isInner = beginServing()
      while !reached.pointee, let node = queue.list.popFirst() { queue.serveEntry(node) }
      endServing(isInner)
    }
    if descriptor >= 0, !queue.list.isEmpty { concourse_eventfd_signal(descriptor) }
  }

  /// Runs the main queue's items until none is left.
  private func drain() {
    let queue = ProcessQueues.shared.mainQueue
    // Items may call back into a run loop that drains again: each entry leaves the list before it runs.
    let isInner = beginServing()
    while let node = queue.list.popFirst() { queue.serveEntry(node) }
    endServing(isInner)
  }

  /// The main thread is about to take entries.
  /// - Returns: whether it runs one, which may do so again.
  @inline(__always)
  private func beginServing() -> Bool {
    // ORDERING: relaxed; only the main thread changes it. Releasing; a thread that finds an entry gone sees it.
    let isInner = isServing.load(ordering: .relaxed)
    isServing.store(true, ordering: .releasing)
    return isInner
  }

  @inline(__always)
  private func endServing(_ isInner: Bool) {
    // ORDERING: releasing; pairs with `mayServe`: what the entries have done, such as to leave a group, is seen.
    isServing.store(isInner, ordering: .releasing)
  }
}

extension DispatchQueue {
  /// Runs an entry of a queue that a thread of the program serves. The entry has left the list.
  final func serveEntry(_ node: NodePointer) {
    if node.isWaiter {
      if let waiter = node.takeWaiter(), SyncWaiter.runBody(of: waiter) { waiter.pointee.event.signal() }
      return
    }
    if node.admittedBy != nil { return Invocation.runAdmitted(node) }
    let frame = Frame(
      queue: .passUnretained(self), parent: Frame.current, exclusive: true, level: node.pointee.level)
    Frame.run(frame) { Invocation.perform(node) }
  }
}

// SAFETY: atomics, and a lock around making the descriptor.
extension MainThread: @unchecked Sendable {}

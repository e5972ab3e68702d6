/// A piece of work that can be submitted, waited for, followed by notifications, and cancelled.
///
/// An item may run more than once, but waiting for it and running it again exclude one another. Matching
/// C functions: `dispatch_block_create` and the `dispatch_block_…` family.
public class DispatchWorkItem {
  // Not Sendable, since its closure need not be. The item itself may be used from any thread: `state` is
  // atomic, `notifications` and `delayed` are GUARDED BY `lock`, `block` is constant until `deinit`.

  package let flags: DispatchWorkItemFlags
  private let level: QoSLevel
  private var block: (() -> Void)?
  private let state = WorkItemState()
  private let lock = Lock()
  private var notifications: [Notification] = []
  /// Submissions that wait for their time, for `cancel` to call off.
  private var delayed: [DelayedItem] = []

  struct Notification {
    let queue: DispatchQueue
    let node: NodePointer
  }

  /// Wraps a closure.
  ///
  /// - Parameters:
  ///   - qos: the class to serve the item at; `.unspecified` leaves it to queue and submitter.
  ///   - flags: `.barrier` makes it a barrier when submitted to a concurrent queue; `.assignCurrentContext`
  ///     takes the QoS of this moment instead of that of the submission; the others are QoS rules.
  ///   - block: the closure.
  ///
  /// Traps on flag bits that do not exist. Matching C function: `dispatch_block_create_with_qos_class`.
  public init(
    qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [], block: @escaping () -> Void
  ) {
    if flags.rawValue & ~DispatchWorkItemFlags.allKnown.rawValue != 0 {
      Trap.clientBug(
        "DispatchWorkItem(flags:) with unknown bits 0x\(String(flags.rawValue, radix: 16))")
    }
    self.flags = flags
    let asked = QoSLevel(qos.qosClass)
    level = asked == .unspecified && flags.contains(.assignCurrentContext) ? Frame.inheritedLevel : asked
    self.block = block
  }

  deinit {
    // A chain of items that hold one another is as deep as it is long: released one after the other
    // instead of one inside the other.
    DeferredRelease.release(block.take())
    if !notifications.isEmpty { DeferredRelease.release(notifications) }
  }

  /// Runs the closure now, on this thread, unless the item has been cancelled.
  ///
  /// Counts as an execution. Matching C function: calling the block.
  public func perform() { execute() }

  /// Prevents every execution that has not begun: the item is then skipped when it is reached, which
  /// still completes it. Does not interrupt an execution that runs. Matching C function:
  /// `dispatch_block_cancel`.
  public func cancel() {
    state.cancel()
    // Nothing need wait for its time only to be skipped then: the timers' memory is free at once.
    let calledOff = lock.withLock { () -> [DelayedItem] in
      let all = delayed
      delayed = []
      return all
    }
    for submission in calledOff { submission.callOff() }
  }

  /// Whether `cancel` has been called. Matching C function: `dispatch_block_testcancel`.
  public var isCancelled: Bool { state.isCancelled }

  /// Runs or skips the item, and completes it if this was its first execution.
  @inline(__always)
  final func execute() {
    let begun = state.begin()
    if begun.hasBeenWaitedFor {
      Trap.clientBug("a work item was run again after it had been waited for")
    }
    if !begun.isCancelled { block!() }
    if begun.isFirst { complete() }
  }

  private final func complete() {
    guard state.complete() == .tell else { return }
    state.wakeWaiters()
    let due = lock.withLock { () -> [Notification] in
      let due = notifications
      notifications = []
      return due
    }
    for notification in due { notification.queue.submit(notification.node) }
  }

  // MARK: Waiting

  /// Waits until the item has completed its first execution. See `wait(timeout:)`.
  @available(*, noasync, message: "blocks the thread; use notify or await the work")
  public func wait() { _ = wait(until: .never) }

  /// Waits until the item has completed its first execution, or until `timeout`.
  ///
  /// Blocks also while the item has not been submitted. Traps after an earlier wait that succeeded, and
  /// when the item has run more than once. Matching C function: `dispatch_block_wait`.
  @available(*, noasync, message: "blocks the thread; use notify or await the work")
  public func wait(timeout: DispatchTime) -> DispatchTimeoutResult { wait(until: Deadline(timeout)) }

  /// As `wait(timeout:)`, on the wall clock. Matching C function: `dispatch_block_wait`.
  @available(*, noasync, message: "blocks the thread; use notify or await the work")
  public func wait(wallTimeout: DispatchWallTime) -> DispatchTimeoutResult {
    wait(until: Deadline(wallTimeout))
  }

  package final func wait(until deadline: Deadline) -> DispatchTimeoutResult {
    let seen = state.beginWait()
    if seen.hasBeenWaitedFor { Trap.clientBug("a work item was waited for twice") }
    if seen.executions > 1 {
      Trap.clientBug(
        "a work item that ran \(seen.executions) times was waited for; only one that runs "
          + "once can be")
    }
    guard state.sleepUntilComplete(deadline) else { return .timedOut }
    if !state.endWait() { Trap.clientBug("a work item was waited for twice") }
    return .success
  }

  // MARK: Notification

  /// Submits a closure to `queue` once the item has completed its first execution, at once if it has.
  ///
  /// Several notifications are allowed; their order is unspecified. Traps when the item has run more
  /// than once. Matching C function: `dispatch_block_notify`.
  public func notify(
    qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [], queue: DispatchQueue,
    execute: @escaping () -> Void
  ) {
    let level = queue.servingLevel(QoSLevel(qos.qosClass), flags)
    notify(
      queue,
      NodeMagazine.make(
        .closure(execute), level: level, traits: flags.contains(.barrier) ? .barrier : []))
  }

  /// As `notify(qos:flags:queue:execute:)`, submitting another work item. Matching C function:
  /// `dispatch_block_notify`.
  public func notify(queue: DispatchQueue, execute: DispatchWorkItem) {
    notify(queue, execute.makeNode(for: queue, group: nil))
  }

  final func notify(_ queue: DispatchQueue, _ node: NodePointer) {
    let mustWait = lock.withLock { () -> Bool in
      let seen = state.askToBeTold()
      if seen.executions > 1 {
        Trap.clientBug(
          "notify on a work item that ran \(seen.executions) times; only one that runs once "
            + "can be followed")
      }
      guard !seen.isComplete else { return false }
      notifications.append(Notification(queue: queue, node: node))
      return true
    }
    if !mustWait { queue.submit(node) }
  }

  // MARK: Submission

  /// Begins a submission that waits for its time, unless the item has been cancelled.
  /// - Returns: whether it has begun.
  final func beginDelay(_ submission: DelayedItem, _ begin: () -> Void) -> Bool {
    lock.withLock {
      if state.isCancelled { return false }
      delayed.append(submission)
      begin()
      return true
    }
  }

  /// The time of a submission has come.
  final func endDelay(_ submission: DelayedItem) {
    lock.withLock { delayed.removeAll { $0 === submission } }
  }

  /// A node that runs this item on `queue`, as a barrier also if the item is none by itself.
  final func makeNode(for queue: DispatchQueue, group: DispatchGroup?, barrier: Bool = false) -> NodePointer {
    NodeMagazine.make(
      .item(self), level: queue.servingLevel(level, flags),
      traits: barrier || flags.contains(.barrier) ? .barrier : [], group: group?.enterForItem())
  }
}

extension DispatchWorkItemFlags {
  /// Every bit that has a meaning.
  package static let allKnown: DispatchWorkItemFlags = [
    .barrier, .detached, .assignCurrentContext, .noQoS, .inheritQoS, .enforceQoS,
  ]
}

/// A piece of work that can be submitted, waited for, followed by notifications, and cancelled.
///
/// An item may run more than once, but one that is waited for must run only once. Matching C functions:
/// `dispatch_block_create` and the `dispatch_block_…` family.
public class DispatchWorkItem: RunnableItem {
  // Not Sendable, since its closure need not be. The item itself may be used from any thread: `state` is
  // atomic, `followers` is GUARDED BY `lock`, `body` is constant until `deinit`. These rules exclude overlapping
  // accesses, so no access is checked at run time: a check costs as much as two atomics.

  @exclusivity(unchecked) private var body: ItemBody
  private let level: QoSLevel
  /// All defined flags fit into a byte.
  private let flagBits: UInt8
  private let state = WorkItemState()
  private let lock = Lock(.workItem)
  /// The thread that began the last execution; 0 if the engine did not know its id.
  private let runner = Atomic<UInt32>(0)
  @exclusivity(unchecked) private var followers: Followers?

  package var flags: DispatchWorkItemFlags { DispatchWorkItemFlags(rawValue: UInt(flagBits)) }

  /// Wraps a closure.
  ///
  /// - Parameters:
  ///   - qos: the class to serve the item at; `.unspecified` leaves it to queue and submitter.
  ///   - flags: `.barrier` makes it a barrier when submitted to a concurrent queue; `.assignCurrentContext`
  ///     captures the current QoS instead of that at submission; the others are QoS rules.
  ///   - block: the closure.
  ///
  /// Traps on unknown flag bits. Matching C function: `dispatch_block_create_with_qos_class`.
  public init(
    qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [], block: @escaping () -> Void
  ) {
    if flags.rawValue & ~DispatchWorkItemFlags.allKnown.rawValue != 0 {
      Trap.clientBug(
        310,
        "DispatchWorkItem(flags:) with unknown bits 0x\(String(flags.rawValue, radix: 16))")
    }
    flagBits = UInt8(truncatingIfNeeded: flags.rawValue)
    level = Self.level(asked: qos, flags)
    body = .closure(ItemBody.Closure(function: block))
  }

  /// As `init(qos:flags:block:)`, with a C block (`ItemBody.Block`). Every flag must be known. Matching C function:
  /// `dispatch_block_create_with_qos_class`.
  package init(
    qos: DispatchQoS, flags: DispatchWorkItemFlags, context: UnsafeMutableRawPointer,
    invoke: @escaping ContextFunction, release: @escaping ContextFunction
  ) {
    flagBits = UInt8(truncatingIfNeeded: flags.rawValue)
    level = Self.level(asked: qos, flags)
    body = .block(ItemBody.Block(context: context, invoke: invoke, release: release))
  }

  private static func level(asked qos: DispatchQoS, _ flags: DispatchWorkItemFlags) -> QoSLevel {
    let asked = QoSLevel(qos.qosClass)
    return asked == .unspecified && flags.contains(.assignCurrentContext) ? Frame.inheritedLevel : asked
  }

  deinit {
    // A long chain of items that hold one another would overflow the stack if each release ran inside the last.
    var last = ItemBody.none
    swap(&last, &body)
    DeferredRelease.release(.body(last))
    followers?.notifications.submitAtRelease()
  }

  /// Runs the closure now, on this thread, unless the item has been cancelled.
  ///
  /// Counts as an execution. Matching C function: calling the block.
  public func perform() { execute() }

  /// Prevents every execution that has not begun: the queue skips the item when its turn comes, which still completes
  /// it. Does not interrupt a running execution. Matching C function: `dispatch_block_cancel`.
  public func cancel() {
    state.cancel()
    // A delayed submission would only be skipped later. Submitting it now frees the timer's memory.
    let calledOff = lock.withLock { () -> [any DeferredSubmission] in
      guard let followers else { return [] }
      defer { followers.delayed = [] }
      return followers.delayed
    }
    for submission in calledOff { submission.callOff() }
  }

  /// Whether `cancel` has been called. Matching C function: `dispatch_block_testcancel`.
  public var isCancelled: Bool { state.isCancelled }

  /// Runs or skips the item, and completes it if this was its first execution.
  @inline(__always)
  package final func execute() {
    let begun = state.begin()
    if begun.hasBeenWaitedFor {
      Trap.clientBug(306, "a work item was run again after it had been waited for")
    }
    // ORDERING: relaxed; read only while this thread is registered as blocked, which publishes it.
    runner.store(CurrentThread.state.pointee.id, ordering: .relaxed)
    if !begun.isCancelled { body.run() }
    if begun.isFirst { complete() }
  }

  private final func complete() {
    guard state.complete() == .notify else { return }
    state.wakeWaiters()
    var due = lock.withLock { () -> NodeChain in
      guard let followers else { return NodeChain() }
      defer { followers.notifications = NodeChain() }
      return followers.notifications
    }
    due.submitAll()
  }

  /// The code that the item runs.
  package final var codeAddress: UInt {
    switch body {
    case .closure(let closure): ItemRecording.code(of: closure.function)
    case .block(let block): ItemRecording.code(ofBlock: block.context)
    case .none: 0
    }
  }

  // MARK: Waiting

  /// Waits until the item has completed its first execution. See `wait(timeout:)`.
  @available(*, noasync, message: "blocks the thread; use notify or await the work")
  public func wait() { _ = wait(until: .never) }

  /// Waits until the item has completed its first execution, or until `timeout`.
  ///
  /// Blocks even if the item has not been submitted yet. Traps after an earlier wait that succeeded, and
  /// when the item has run more than once. Matching C function: `dispatch_block_wait`.
  /// - Parameter timeout: the time after which the caller returns; a past one only looks.
  @available(*, noasync, message: "blocks the thread; use notify or await the work")
  public func wait(timeout: DispatchTime) -> DispatchTimeoutResult { wait(until: Deadline(timeout)) }

  /// As `wait(timeout:)`, on the wall clock. Matching C function: `dispatch_block_wait`.
  @available(*, noasync, message: "blocks the thread; use notify or await the work")
  public func wait(wallTimeout: DispatchWallTime) -> DispatchTimeoutResult {
    wait(until: Deadline(wallTimeout))
  }

  package final func wait(until deadline: Deadline) -> DispatchTimeoutResult {
    let seen = state.beginWait()
    if seen.hasBeenWaitedFor { Trap.clientBug(307, "a work item was waited for twice") }
    if seen.executions > 1 {
      Trap.clientBug(
        308,
        "a work item that ran \(seen.executions) times was waited for; only one that runs "
          + "once can be")
    }
    if !seen.isComplete {
      if case .immediate = deadline { return .timedOut }
      if case .never = deadline, Process.hasLeftThreads { requireRunner() }
      TaskWaits.note("DispatchWorkItem.wait()")
      guard sleepUntilComplete(deadline) else { return .timedOut }
    }
    if !state.endWait() { Trap.clientBug(307, "a work item was waited for twice") }
    return .success
  }

  private final func sleepUntilComplete(_ deadline: Deadline) -> Bool {
    let item = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
    func sleep(until deadline: Deadline) -> Bool {
      state.sleepUntilComplete(deadline) {
        if !WorkerThread.isLowered { Runtime.boost { $0.stands { $0.runs(self) } } }
      }
    }
    return Recording.wait(.workItem, item) {
      guard case .never = deadline else { return sleep(until: deadline) }
      BlockedThreads.during(
        .init(object: item, kind: .item), ending: .byThread(Self.onlyRunner), sleep(until:))
      return true
    }
  }

  /// Traps in a forked child if the item cannot complete there. One that has not begun can, while another thread of the
  /// child may perform it.
  @inline(never)
  private final func requireRunner() {
    if state.beginWait().isFirst {
      if Process.isAloneInChild { Runtime.requireThreads("wait() on a work item that has not begun") }
      return
    }
    // ORDERING: relaxed; if the item is not complete afterwards, the thread has not ended.
    let isLost = Process.isAloneInChild || Process.lacks(thread: runner.load(ordering: .relaxed))
    guard isLost, !state.beginWait().isComplete else { return }
    Runtime.refuseWait("wait() on a work item that a thread of the parent runs")
  }

  /// The thread that is in the first and only execution of an item; 0 if there is none, or it is not known.
  static func onlyRunner(_ item: UnsafeRawPointer) -> UInt32 {
    Unmanaged<DispatchWorkItem>.fromOpaque(item)._withUnsafeGuaranteedRef {
      let now = $0.state.beginWait()
      // ORDERING: relaxed; the id counts only if its thread is registered, which publishes what that thread stored.
      return now.executions == 1 && !now.isComplete ? $0.runner.load(ordering: .relaxed) : 0
    }
  }

  // MARK: Notification

  /// Submits a closure to `queue` once the item has completed its first execution, or at once if it already has. An
  /// item that is released without having run submits its notifications then.
  ///
  /// Several notifications are allowed; their order is unspecified. Traps when the item has run more
  /// than once. Matching C function: `dispatch_block_notify`.
  /// - Parameters:
  ///   - qos: The class of the closure's item; `.unspecified` means that of the queue or, failing that, of the caller.
  ///   - flags: `.barrier` makes the closure's item a barrier on a private concurrent queue; QoS rules apply as in
  ///     `async`.
  ///   - queue: Where the closure runs.
  ///   - execute: The closure.
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
      let seen = state.registerInterest()
      if seen.executions > 1 {
        Trap.clientBug(
          309,
          "notify on a work item that ran \(seen.executions) times; only one that runs once "
            + "can have notifications")
      }
      guard !seen.isComplete else { return false }
      makeFollowers().notifications.append(node, for: queue)
      return true
    }
    if !mustWait { queue.submit(node) }
  }

  // MARK: Submission

  /// Begins a delayed submission, unless the item has been cancelled.
  /// - Returns: whether it has begun.
  package final func beginDelay(_ submission: any DeferredSubmission, _ begin: () -> Void) -> Bool {
    lock.withLock {
      if state.isCancelled { return false }
      let followers = makeFollowers()
      submission.delayIndex = followers.delayed.count
      followers.delayed.append(submission)
      begin()
      return true
    }
  }

  /// Forgets a delayed submission that has become due, unless `cancel` has taken it. O(1): an item may have very many.
  package final func endDelay(_ submission: any DeferredSubmission) {
    lock.withLock {
      let place = submission.delayIndex
      guard let followers, place < followers.delayed.count, followers.delayed[place] === submission else {
        return
      }
      let last = followers.delayed.removeLast()
      guard last !== submission else { return }
      followers.delayed[place] = last
      last.delayIndex = place
    }
  }

  /// Call under the lock.
  private final func makeFollowers() -> Followers {
    if let followers { return followers }
    let made = Followers()
    followers = made
    return made
  }

  /// A node that runs this item on `queue`. `barrier` makes it a barrier even if the item's flags do not.
  package final func makeNode(for queue: DispatchQueue, group: DispatchGroup?, barrier: Bool = false)
    -> NodePointer
  {
    NodeMagazine.make(
      .item(self), level: queue.servingLevel(level, flags),
      traits: barrier || flags.contains(.barrier) ? .barrier : [], group: group?.enterForItem())
  }
}

extension NodePointer {
  /// Whether the entry is an execution of this item.
  fileprivate func runs(_ wanted: DispatchWorkItem) -> Bool {
    guard pointee.kind == .item else { return false }
    switch workPointer.pointee {
    case .item(let item): return item === wanted
    default: return false
    }
  }
}

/// A work item's submission that waits for its time.
package protocol DeferredSubmission: AnyObject, Sendable {
  /// Its index among the item's delayed submissions. GUARDED BY the item's lock.
  var delayIndex: Int { get set }
  /// Submits the item now because it has been cancelled: the skip completes it for its waiters.
  func callOff()
}

/// A work item's notifications and delayed submissions. Most items have neither.
// GUARDED BY the item's lock.
final class Followers {
  @exclusivity(unchecked) var notifications = NodeChain()
  /// Delayed submissions, which `cancel` calls off.
  @exclusivity(unchecked) var delayed: [any DeferredSubmission] = []
}

extension DispatchWorkItemFlags {
  /// All defined flags.
  package static let allKnown: DispatchWorkItemFlags = [
    .barrier, .detached, .assignCurrentContext, .noQoS, .inheritQoS, .enforceQoS,
  ]
}

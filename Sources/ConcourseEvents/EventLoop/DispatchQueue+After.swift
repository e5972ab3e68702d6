extension DispatchQueue {
  /// Submits a closure once `deadline` has come.
  ///
  /// The submission is never early. Closures with different deadlines are submitted in the order of their deadlines. A
  /// past deadline submits at once, `.distantFuture` never. The queue stays alive until the closure has run.
  /// `DispatchTime` does not advance while the system sleeps. O(log n) in the number of pending deadlines. Matching C
  /// function: `dispatch_after`.
  /// - Parameters:
  ///   - deadline: The earliest time of the submission.
  ///   - qos: The class of the item; `.unspecified` means that of the queue or, failing that, of the caller.
  ///   - flags: `.barrier` makes the item a barrier on a private concurrent queue; QoS rules apply as in `async`.
  ///   - work: The closure.
  public final func asyncAfter(
    deadline: DispatchTime, qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [],
    execute work: consuming @escaping @Sendable () -> Void
  ) {
    schedule(consume work, Deadline(deadline), qos, flags)
  }

  /// As `asyncAfter(deadline:)`, on the wall clock: the submission moves with the clock when it is set.
  /// Matching C function: `dispatch_after` with `dispatch_walltime`.
  public final func asyncAfter(
    wallDeadline: DispatchWallTime, qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [],
    execute work: consuming @escaping @Sendable () -> Void
  ) {
    schedule(consume work, Deadline(wallDeadline), qos, flags)
  }

  /// As `asyncAfter(deadline:)`, with the time from now. A negative duration submits at once.
  public final func asyncAfter(
    _ delay: Duration, qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [],
    execute work: consuming @escaping @Sendable () -> Void
  ) {
    schedule(consume work, Deadline(DispatchTime.now() + delay), qos, flags)
  }

  /// As `asyncAfter(deadline:)`, for closures that are not marked `@Sendable`.
  public final func asyncAfterUnsafe(
    deadline: DispatchTime, qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [],
    execute work: consuming @escaping () -> Void
  ) {
    schedule(consume work, Deadline(deadline), qos, flags)
  }

  /// As `asyncAfter(wallDeadline:)`, for closures that are not marked `@Sendable`.
  public final func asyncAfterUnsafe(
    wallDeadline: DispatchWallTime, qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [],
    execute work: consuming @escaping () -> Void
  ) {
    schedule(consume work, Deadline(wallDeadline), qos, flags)
  }

  /// Submits a work item once `deadline` has come. Cancelling the item ends the delay: the queue skips the item.
  /// Matching C function: `dispatch_after`.
  /// - Parameters:
  ///   - deadline: the earliest time of the submission.
  ///   - execute: the item.
  public final func asyncAfter(deadline: DispatchTime, execute: DispatchWorkItem) {
    schedule(execute, Deadline(deadline))
  }

  /// As `asyncAfter(deadline:execute:)`, on the wall clock. Matching C function: `dispatch_after`.
  public final func asyncAfter(wallDeadline: DispatchWallTime, execute: DispatchWorkItem) {
    schedule(execute, Deadline(wallDeadline))
  }

  /// As `asyncAfter`. Matching C function: `dispatch_after_f`.
  package final func asyncFunction(
    after deadline: Deadline, _ context: UnsafeMutableRawPointer?, _ function: ContextFunction
  ) {
    schedule(makeNode(context, function, barrier: false, group: nil), deadline)
  }

  private final func schedule(
    _ work: consuming @escaping () -> Void, _ deadline: Deadline, _ qos: DispatchQoS,
    _ flags: DispatchWorkItemFlags
  ) {
    let level = servingLevel(QoSLevel(qos.qosClass), flags)
    let traits: WorkTraits = flags.contains(.barrier) ? .barrier : []
    schedule(NodeMagazine.make(.closure(consume work), level: level, traits: traits), deadline)
  }

  final func schedule(_ node: NodePointer, _ deadline: Deadline) {
    Runtime.requireThreads("a delayed submission")
    switch deadline {
    case .immediate: submit(node)
    case .uptime(let time): schedule(node, at: time, isWall: false)
    case .wall(let time): schedule(node, at: time, isWall: true)
    case .never:
      // It will never run, so its captures are released now.
      _ = node.takeWork()
      NodeMagazine.recycle(node)
    }
  }

  private final func schedule(_ node: NodePointer, at time: UInt64, isWall: Bool) {
    let timers = EventLoop.timers
    if timers.hasPassed(time, isWall: isWall) {
      submit(node)
    } else {
      if Recording.isOn { ItemRecording.scheduled(node, to: self) }
      NodeMagazine.unlink(node)
      timers.submit(node, to: self, at: time, isWall: isWall)
    }
  }

  package final func schedule(_ item: DispatchWorkItem, _ deadline: Deadline) {
    let isDue =
      switch deadline {
      case .uptime(let time): EventLoop.timers.hasPassed(time, isWall: false)
      case .wall(let time): EventLoop.timers.hasPassed(time, isWall: true)
      // There is no delay to cancel.
      case .immediate, .never: true
      }
    if isDue {
      schedule(item.makeNode(for: self, group: nil), deadline == .never ? .never : .immediate)
    } else {
      Runtime.requireThreads("a delayed submission")
      DelayedItem(item, for: self).begin(deadline)
    }
  }
}

/// A delayed submission of a work item. Cancelling the item submits it at once, to be skipped.
// SAFETY: everything but `delayIndex` is constant, and the item's lock guards that.
final class DelayedItem: LoopTimer, DeferredSubmission, @unchecked Sendable {
  /// The node keeps the item alive until it is submitted, and no access follows. A reference here could make a polling
  /// thread destroy the item.
  private let item: Unmanaged<DispatchWorkItem>
  private let queue: DispatchQueue
  private let node: NodePointer
  var delayIndex = 0

  init(_ item: DispatchWorkItem, for queue: DispatchQueue) {
    self.item = .passUnretained(item)
    self.queue = queue
    node = item.makeNode(for: queue, group: nil)
    super.init(owner: nil)
  }

  /// Submits the item at `deadline`, or at once, to be skipped, if it has already been cancelled.
  func begin(_ deadline: Deadline) {
    if Recording.isOn { ItemRecording.scheduled(node, to: queue) }
    let hasBegun = item._withUnsafeGuaranteedRef { $0.beginDelay(self) { set(deadline) } }
    if !hasBegun { queue.submit(node) }
  }

  func callOff() {
    if cancel() { queue.submit(node) }
  }

  override func fire() {
    item._withUnsafeGuaranteedRef { $0.endDelay(self) }
    queue.submit(node)
  }
}

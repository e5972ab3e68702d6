extension DispatchQueue {
  final func retarget(to queue: DispatchQueue?) {
    guard kind.isLane else { return }
    let isInactive = state.snapshot.isInactive
    guard isInactive || mayChangeTarget else {
      Trap.clientBug(
        110,
        "setTarget(queue:) on queue \"\(label)\", which is active; only a queue created with "
          + ".initiallyInactive may change its target, before activate()")
    }
    let chosen = queue ?? DispatchQueue.global(at: .default)
    if isInactive || takeIdle() {
      setTarget(chosen)
      if !isInactive && !state.releaseExclusively(CurrentThread.id) { handOn() }
    } else {
      requestTarget(chosen)
    }
  }

  private final func takeIdle() -> Bool { list.isEmpty && takeAlone() }

  // MARK: Cycles

  // Every change of a target takes `targetLock`. Under it the caller looks for a cycle, and makes the change or
  // the request that will be carried out in its turn. So if two changes close a cycle together, the second finds the
  // first. Two graphs are kept free of cycles: the targets that queues have, and those that they will have when all
  // requests are carried out. The second is checked when a change is requested, so that the caller traps. The first is
  // checked again when a request is carried out, since others may be outstanding. Links need no references: a queue
  // keeps its target, and that of a request, until it is changed under the lock.

  /// Traps if `link` leads from `chosen` back to this queue. GUARDED BY `targetLock`, as are the links.
  private final func requireNoCycle(
    through chosen: DispatchQueue, _ link: (DispatchQueue) -> Unmanaged<DispatchQueue>?
  ) {
    var next: Unmanaged<DispatchQueue>? = .passUnretained(chosen)
    while let queue = next?.takeUnretainedValue() {
      if queue === self {
        Trap.clientBug(
          111,
          "setTarget(queue:) on queue \"\(label)\": the targets of \"\(chosen.label)\" lead back to it, "
            + "and a cycle of targets would never run")
      }
      next = link(queue)
    }
  }

  /// The target that this queue will have when all requests have been carried out.
  private final var targetToBe: Unmanaged<DispatchQueue>? {
    extrasIfAny?.requestedTarget.map { .passUnretained($0) } ?? target
  }

  /// Sets the target of a queue that is inactive or owned by the caller.
  /// - Parameter isRequested: whether a request is carried out with it.
  private final func setTarget(_ chosen: DispatchQueue, isRequested: Bool = false) {
    let counted = Self.countedAsTarget(.passUnretained(chosen))
    var request: DispatchQueue?
    let former = ProcessQueues.shared.targetLock.withLock { () -> Unmanaged<DispatchQueue>? in
      requireNoCycle(through: chosen) { $0.target }
      if isRequested {
        request = extras.endRequest()
      } else {
        requireNoCycle(through: chosen) { $0.targetToBe }
      }
      return exchangeTarget(for: counted)
    }
    // Released outside of the lock.
    withExtendedLifetime(request) {}
    if ownClass == .unspecified && rule == .exact {
      level = chosen.kind == .global ? chosen.ownClass : .unspecified
    }
    state.setNested(chosen.kind != .global)
    if let former, Self.isCounted(former) { former.release() }
  }

  /// Appends a request for a new target to the list of an active queue.
  private final func requestTarget(_ chosen: DispatchQueue) {
    let former = ProcessQueues.shared.targetLock.withLock { () -> DispatchQueue? in
      requireNoCycle(through: chosen) { $0.targetToBe }
      return extras.beginRequest(chosen)
    }
    withExtendedLifetime(former) {}
    submit(
      NodeMagazine.make(
        .retarget(chosen), level: level, traits: kind == .concurrent ? [.retarget, .barrier] : .retarget))
  }

  // MARK: References

  /// A queue as the target of another. It gets a reference unless it is never freed: counting references to a global
  /// queue would make all threads write one cache line.
  static func countedAsTarget(_ target: Unmanaged<DispatchQueue>) -> Unmanaged<DispatchQueue> {
    isCounted(target) ? target.retain() : target
  }

  /// Whether a reference from `countedAsTarget` was counted.
  static func isCounted(_ target: Unmanaged<DispatchQueue>) -> Bool {
    !target._withUnsafeGuaranteedRef { $0.isImmortal }
  }

  private final var isImmortal: Bool { kind == .global || kind == .main }

  // MARK: Active queues

  // The target of an active queue changes in its turn: what was submitted before runs on the former target. The change
  // needs the queue alone, since a thread that holds the queue, or a place on it, may be running an item of the target.
  //
  // A thread that holds nothing of the queue may read its target, to put an entry there that raises the queue's level,
  // while a change releases that target. So both take the lock of the extras: either the reader comes first, and has a
  // reference of its own when the former target is released, or it finds the new target.

  /// The target, for a thread that holds neither the queue nor a place on it.
  final var targetNow: DispatchQueue? {
    guard mayChangeTarget else { return targetQueue }
    return uncountedQueueExtras._withUnsafeGuaranteedRef { $0.lock.withLock { targetQueue } }
  }

  /// Submits a node to the target, for any thread.
  final func submitToTarget(_ node: NodePointer) {
    if mayChangeTarget {
      targetNow!.submit(node)
    } else {
      target!._withUnsafeGuaranteedRef { $0.submit(node) }
    }
  }

  /// Replaces the target.
  /// - Returns: the former one, with its reference.
  private final func exchangeTarget(for counted: Unmanaged<DispatchQueue>) -> Unmanaged<DispatchQueue>? {
    func exchange() -> Unmanaged<DispatchQueue>? {
      defer { target = counted }
      return target
    }
    guard mayChangeTarget else { return exchange() }
    return uncountedQueueExtras._withUnsafeGuaranteedRef { $0.lock.withLock(exchange) }
  }

  /// The owner has reached the node that requests another target. The remaining entries run there.
  final func changeTarget(requestedBy node: NodePointer) {
    guard case .retarget(let chosen) = node.takeWork() else {
      Trap.runtimeBug("an item was taken for a change of target")
    }
    NodeMagazine.recycle(node)
    setTarget(chosen, isRequested: true)
    leave(state.releaseToTarget(levelOfRest))
  }

  /// The level for the first entry. Owner only.
  final var levelOfRest: QoSLevel { list.first().map(entryLevel) ?? level }

  /// Whether an entry for this queue has been reached on a former target. For the owner: no other thread changes the
  /// target meanwhile.
  final var isOnFormerTarget: Bool {
    state.snapshot.isNested
      ? Frame.current?.pointee.queue.toOpaque() != target?.toOpaque() : Frame.current != nil
  }
}

extension DispatchQueue {
  final func retarget(to queue: DispatchQueue?) {
    guard kind.isLane else { return }
    let isInactive = state.snapshot.isInactive
    guard isInactive || mayChangeTarget else {
      Trap.clientBug(
        "setTarget(queue:) on queue \"\(label)\", which is active; only a queue created with "
          + ".initiallyInactive may change its target, before activate()")
    }
    let chosen = queue ?? Runtime.globalQueue(.default)
    requireNoCycle(through: chosen)
    if isInactive {
      setTarget(chosen)
    } else {
      retargetActive(to: chosen)
    }
  }

  private final func requireNoCycle(through chosen: DispatchQueue) {
    var link: DispatchQueue? = chosen
    while let next = link {
      if next === self {
        Trap.clientBug(
          "setTarget(queue:) on queue \"\(label)\": the targets of \"\(chosen.label)\" lead back to it, "
            + "and a cycle of targets would never run")
      }
      link = next.targetNow
    }
  }

  /// Sets the target of a queue that is inactive or owned by the caller.
  private final func setTarget(_ chosen: DispatchQueue) {
    let former = exchangeTarget(for: Self.countedAsTarget(.passUnretained(chosen)))
    if ownClass == .unspecified && rule == .exact {
      level = chosen.kind == .global ? chosen.ownClass : .unspecified
    }
    state.setNested(chosen.kind != .global)
    if let former, Self.isCounted(former) { former.release() }
  }

  // MARK: References

  /// A queue as the target of another, counted unless it stays for ever: else all queues would write one line.
  static func countedAsTarget(_ target: Unmanaged<DispatchQueue>) -> Unmanaged<DispatchQueue> {
    isCounted(target) ? target.retain() : target
  }

  /// Whether a reference from `countedAsTarget` was counted.
  static func isCounted(_ target: Unmanaged<DispatchQueue>) -> Bool {
    !target._withUnsafeGuaranteedRef { $0.isImmortal }
  }

  private final var isImmortal: Bool { kind == .global || kind == .main }

  // MARK: Active queues

  // The target of an active queue changes in its turn: what was submitted before runs where it was to run. The
  // change needs the queue alone, since whoever holds it, or a place on it, may be inside of its target.
  //
  // Who holds nothing of the queue may still read its target: to put an entry there for a node that lifts the queue, or
  // to look for cycles. The change would take that target away under its hands. So the two meet at a lock: the reader
  // comes first and has a reference of its own when the former target is let go of, or it finds the new one.

  /// The target, for a thread that holds neither the queue nor a place on it.
  final var targetNow: DispatchQueue? {
    guard mayChangeTarget else { return targetQueue }
    return uncountedQueueExtras._withUnsafeGuaranteedRef { $0.lock.withLock { targetQueue } }
  }

  /// Puts a node to the target, whoever may hold this queue.
  final func submitToTarget(_ node: NodePointer) {
    if mayChangeTarget {
      targetNow!.submit(node)
    } else {
      target!._withUnsafeGuaranteedRef { $0.submit(node) }
    }
  }

  /// - Returns: the former target, with its reference.
  private final func exchangeTarget(for counted: Unmanaged<DispatchQueue>) -> Unmanaged<DispatchQueue>? {
    func exchange() -> Unmanaged<DispatchQueue>? {
      defer { target = counted }
      return target
    }
    guard mayChangeTarget else { return exchange() }
    return uncountedQueueExtras._withUnsafeGuaranteedRef { $0.lock.withLock(exchange) }
  }

  private final func retargetActive(to chosen: DispatchQueue) {
    if list.isEmpty && state.takeExclusively(CurrentThread.id) {
      setTarget(chosen)
      if !state.releaseExclusively(CurrentThread.id) { handOn() }
    } else {
      submit(
        NodeMagazine.make(
          .retarget(chosen), level: level, traits: kind == .concurrent ? [.retarget, .barrier] : .retarget))
    }
  }

  /// The owner has come to the node that asks for another target. The rest goes there.
  final func changeTarget(asSaidBy node: NodePointer) {
    guard case .retarget(let chosen) = node.takeWork() else {
      Trap.runtimeBug("an item was taken for a change of target")
    }
    NodeMagazine.recycle(node)
    // Once more: what leads back here now may have been asked for, too, when this was.
    requireNoCycle(through: chosen)
    setTarget(chosen)
    carryOut(state.releaseToTarget(levelOfRest))
  }

  /// What the first entry is to be served at. For the owner.
  final var levelOfRest: QoSLevel { list.first().map(entryLevel) ?? level }

  /// Whether an entry for this queue has been reached where the queue does not belong any more. Asked by the owner:
  /// nobody else changes the target meanwhile.
  final var lostItsWay: Bool {
    state.snapshot.isNested
      ? Frame.current?.pointee.queue.toOpaque() != target?.toOpaque() : Frame.current != nil
  }
}

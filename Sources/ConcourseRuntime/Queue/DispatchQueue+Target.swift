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
      link = next.targetQueue
    }
  }

  /// Sets the target of a queue that is inactive or owned by the caller.
  private final func setTarget(_ chosen: DispatchQueue, keepingFormer: Bool = false) {
    let former = target
    target = Self.countedAsTarget(.passUnretained(chosen))
    if ownClass == .unspecified && rule == .exact {
      level = chosen.kind == .global ? chosen.ownClass : .unspecified
    }
    state.setNested(chosen.kind != .global)
    guard let former, Self.isCounted(former) else { return }
    let counted = former.takeRetainedValue()
    guard keepingFormer else { return }
    extras.lock.withLock {
      if !extras.formerTargets.contains(where: { $0 === counted }) { extras.formerTargets.append(counted) }
    }
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

  private final func retargetActive(to chosen: DispatchQueue) {
    if list.isEmpty && state.takeExclusively(CurrentThread.id) {
      setTarget(chosen, keepingFormer: true)
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
    setTarget(chosen, keepingFormer: true)
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

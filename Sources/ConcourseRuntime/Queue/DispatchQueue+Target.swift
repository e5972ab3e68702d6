extension DispatchQueue {
  final func retarget(to queue: DispatchQueue?) {
    guard kind.isLane else { return }
    guard state.snapshot.isInactive else {
      Trap.clientBug(
        "setTarget(queue:) on queue \"\(label)\", which is active; only a queue created with "
          + ".initiallyInactive may change its target, before activate()")
    }
    let chosen = queue ?? Runtime.globalQueue(.default)
    var link: DispatchQueue? = chosen
    while let next = link {
      if next === self {
        Trap.clientBug(
          "setTarget(queue:) on queue \"\(label)\": the targets of \"\(chosen.label)\" lead back to it, "
            + "and a cycle of targets would never run")
      }
      link = next.targetQueue
    }
    let former = target
    target = .passRetained(chosen)
    if ownClass == .unspecified {
      level = queue != nil && chosen.kind == .global ? chosen.ownClass : .unspecified
    }
    state.setNested(chosen.kind != .global)
    former?.release()
  }
}

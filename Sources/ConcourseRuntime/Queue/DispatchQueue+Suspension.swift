extension DispatchQueue {
  final func beginSuspension() {
    guard kind.isLane else { return }
    extras.lock.withLock {
      extras.suspensions += 1
      if extras.suspensions == 1 { state.suspend() }
    }
  }

  final func endSuspension() {
    guard kind.isLane else { return }
    let (wake, heldBack) = extras.lock.withLock { () -> (QueueState.Wake, [NodePointer]) in
      guard extras.suspensions > 0 else {
        Trap.clientBug(
          state.snapshot.isInactive
            ? "resume() on queue \"\(label)\", which is inactive and not suspended; call activate()"
            : "resume() on queue \"\(label)\", which is not suspended: more resumes than suspends")
      }
      extras.suspensions -= 1
      guard extras.suspensions == 0 else { return (.nothing, []) }
      let heldBack = extras.heldBack
      extras.heldBack = []
      return (state.resume(), heldBack)
    }
    for node in heldBack { targetQueue!.submit(node) }
    carryOut(wake)
  }

  final func beginActivity() {
    guard let wake = state.activate() else { return }
    carryOut(wake)
  }

  /// Keeps an admitted item of a suspended concurrent queue until the resume.
  /// - Returns: false when the queue has been resumed meanwhile: run it.
  final func holdBack(_ node: NodePointer) -> Bool {
    extras.lock.withLock {
      guard extras.suspensions > 0 else { return false }
      extras.heldBack.append(node)
      return true
    }
  }
}

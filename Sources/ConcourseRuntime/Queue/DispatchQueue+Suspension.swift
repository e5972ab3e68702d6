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
    var tickets = NodeChain()
    let wake = extras.lock.withLock { () -> QueueState.Wake in
      guard extras.suspensions > 0 else {
        Trap.clientBug(
          state.snapshot.isInactive
            ? "resume() on queue \"\(label)\", which is inactive and not suspended; call activate()"
            : "resume() on queue \"\(label)\", which is not suspended: more resumes than suspends")
      }
      extras.suspensions -= 1
      guard extras.suspensions == 0 else { return .nothing }
      tickets = extras.heldBack.makeTickets()
      return state.resume()
    }
    while let ticket = tickets.takeFirst() { forward(ticket) }
    carryOut(wake)
  }

  final func beginActivity() {
    guard let wake = state.activate() else { return }
    carryOut(wake)
  }

  /// Decides what an admitted node that has arrived stands for.
  /// - Returns: the item to run, or nil when the queue is suspended and keeps the node until the resume.
  final func itemToRun(for arrival: NodePointer) -> NodePointer? {
    guard let extras = extrasIfAny else { return arrival }
    // ORDERING: acquiring; pairs with the releasing store below: an item that stood behind one that was
    // held back in a serial target sees that.
    guard state.snapshot.isSuspended || extras.hasHeldBack.load(ordering: .acquiring) else {
      return arrival
    }
    return extras.lock.withLock { () -> NodePointer? in
      // ORDERING: releasing; see above.
      defer { extras.hasHeldBack.store(!extras.heldBack.isEmpty, ordering: .releasing) }
      if extras.suspensions > 0 {
        extras.heldBack.keep(arrival)
        return nil
      }
      return extras.heldBack.exchange(arrival)
    }
  }
}

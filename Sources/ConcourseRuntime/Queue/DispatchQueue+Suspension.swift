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

/// Items of a concurrent queue that were on their way when it was suspended, so that they do not start, and
/// the tickets by which they start in their order after the resume.
///
/// An item held back has lost its place in the target's list, and items admitted after it may stand there
/// already. So a ticket is sent to the target at the resume in place of the item. While items are overdue, each
/// arrival, of a ticket or of a later item, runs the item overdue longest, and a later item becomes overdue in its
/// turn. There are as many arrivals as items.
///
/// What is kept holds no reference to the queue, so that dropping a suspended queue's last reference is
/// noticed; items and tickets that are on their way hold one each, as every admitted node does.
///
/// GUARDED BY the lock of `QueueExtras`.
struct HeldBackItems {
  /// Kept until the resume.
  private var kept = NodeChain()
  /// To be run by the next arrivals.
  private var overdue = NodeChain()

  /// A suspended queue's item or ticket has arrived.
  mutating func keep(_ node: NodePointer) { kept.append(node) }

  /// The queue has been resumed.
  /// - Returns: tickets to send to the target, as many as nodes were kept.
  mutating func makeTickets() -> NodeChain {
    var tickets = NodeChain()
    while let node = kept.takeFirst() {
      _ = node.pointee.admittedBy!.retain()
      if node.pointee.traits.contains(.ticket) {
        tickets.append(node)
      } else {
        tickets.append(
          NodeMagazine.make(
            .closure({}), level: node.pointee.level, traits: .ticket,
            admittedBy: node.pointee.admittedBy!.retain()))
        overdue.append(node)
      }
    }
    return tickets
  }

  /// What an arriving node stands for: the item overdue longest, or the node itself.
  mutating func exchange(_ arrival: NodePointer) -> NodePointer {
    guard let oldest = overdue.takeFirst() else { return arrival }
    if !arrival.pointee.traits.contains(.ticket) { overdue.append(arrival) }
    return oldest
  }

  var isEmpty: Bool { kept.isEmpty && overdue.isEmpty }
}

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
        if state.snapshot.isInactive {
          Trap.clientBug(
            202, "resume() on queue \"\(label)\", which is inactive and not suspended; call activate()")
        }
        Trap.clientBug(
          201, "resume() on queue \"\(label)\", which is not suspended: more resumes than suspends")
      }
      extras.suspensions -= 1
      guard extras.suspensions == 0 else { return .nothing }
      extras.resumes &+= 1
      tickets = extras.heldBack.makeTickets {
        keep(for: $0, by: state.addItemPlace(shares: !PoolSize.hasManyProcessors).reference)
      }
      return state.resume()
    }
    // The tickets' places keep the target.
    while let ticket = tickets.takeFirst() { forward(ticket, isNested: state.snapshot.isNested) }
    leave(wake)
  }

  final func beginActivity() {
    guard let wake = state.activate() else { return }
    leave(wake)
  }

  /// Chooses the item that runs when an admitted node arrives at the target.
  /// - Returns: the item to run, or nil when the queue is suspended and keeps the node until the resume.
  @inline(__always)
  final func itemToRun(for arrival: NodePointer) -> NodePointer? {
    // Most queues have never been suspended, and have no extras. References to these are not counted: all threads would
    // write the count.
    guard uncountedExtrasIfAny != nil else { return arrival }
    return uncountedQueueExtras._withUnsafeGuaranteedRef { itemToRun(for: arrival, $0) }
  }

  @inline(never)
  private final func itemToRun(for arrival: NodePointer, _ extras: QueueExtras) -> NodePointer? {
    // ORDERING: acquiring; pairs with the releasing store below: in a serial target, an item behind one that
    // was held back sees that.
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

/// Items of a concurrent queue that had been admitted but not started when it was suspended. They start in their
/// order after the resume, by tickets.
///
/// An item that is held back has lost its place in the target's list, and items admitted after it may already be
/// there. So the resume sends a ticket to the target for each item. While items are overdue, each arrival, of a
/// ticket or of a later item, runs the item that has been overdue longest, and a later item becomes overdue itself.
/// There are as many arrivals as items.
///
/// A kept item has neither a place nor a reference, so that releasing a suspended queue's last reference is noticed. A
/// ticket, as every node on its way to the target, has a place, which is taken before the queue is resumed: a barrier then
/// waits for it, and for the item.
///
/// GUARDED BY the lock of `QueueExtras`.
struct HeldBackItems {
  /// Kept until the resume.
  private var kept = NodeChain()
  /// The next arrivals run these.
  private var overdue = NodeChain()

  /// A suspended queue's item or ticket has arrived.
  mutating func keep(_ node: NodePointer) { kept.append(node) }

  /// The queue is about to be resumed.
  /// - Parameter takePlace: called with each ticket.
  /// - Returns: tickets to send to the target, as many as nodes were kept.
  mutating func makeTickets(_ takePlace: (NodePointer) -> Void) -> NodeChain {
    var tickets = NodeChain()
    while let node = kept.takeFirst() {
      var ticket = node
      if !node.traits.contains(.ticket) {
        ticket = NodeMagazine.make(.closure({}), level: node.pointee.level)
        overdue.append(node)
      }
      ticket.pointee.traits = .ticket
      takePlace(ticket)
      tickets.append(ticket)
    }
    return tickets
  }

  /// The item to run for an arriving node: the one that has been overdue longest, or the node itself.
  mutating func exchange(_ arrival: NodePointer) -> NodePointer {
    guard let oldest = overdue.takeFirst() else { return arrival }
    if !arrival.traits.contains(.ticket) { overdue.append(arrival) }
    return oldest
  }

  var isEmpty: Bool { kept.isEmpty && overdue.isEmpty }
}

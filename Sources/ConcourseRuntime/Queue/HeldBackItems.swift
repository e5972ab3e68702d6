/// Items of a concurrent queue that were on their way when it was suspended, so that they do not start, and
/// the tickets by which they start in their order after the resume.
///
/// An item held back has lost its place in the target's list, and items admitted after it may stand there
/// already. So what is sent to the target at the resume is not the item but a ticket; whoever arrives
/// while items are overdue, ticket or later item, runs the one overdue longest, and a later item becomes
/// overdue in its turn. There are as many arrivals as items.
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

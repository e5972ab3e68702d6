/// Running what a node carries.
enum Invocation {
  /// Runs what `node` carries on the calling thread, then leaves its group. The node goes back to the
  /// magazine first: an item may take long, or never end.
  ///
  /// The closure and what it captured are released before the group is left, so that whoever waits for
  /// the group finds them gone.
  @inline(__always)
  static func perform(_ node: NodePointer) {
    let work = node.takeWork()
    let group = node.pointee.group
    NodeMagazine.recycle(node)
    run(work)
    if let group { group._withUnsafeGuaranteedRef { $0.leaveAfterItem() } }
  }

  /// The same for a node that is still the oldest of a list; the caller recycles it later.
  @inline(__always)
  static func performInPlace(_ node: NodePointer) {
    run(node.takeWork())
    if let group = node.pointee.group { group._withUnsafeGuaranteedRef { $0.leaveAfterItem() } }
  }

  @inline(__always)
  private static func run(_ work: consuming Work) {
    switch work {
    case .closure(let body): body()
    case .item(let item): item.execute()
    case .drain(let queue): queue.drain()
    case .redirected(let node): runAdmitted(node)
    case .waiter: rejectWaiter()
    }
  }

  private static func rejectWaiter() { Trap.runtimeBug("a waiting thread was taken for an item") }

  /// Runs an item that a concurrent queue has admitted, and gives its place back.
  static func runAdmitted(_ node: NodePointer) {
    let queue = node.pointee.admittedBy!
    queue._withUnsafeGuaranteedRef { $0.runAdmitted(node) }
    queue.release()
  }
}

extension DispatchQueue {
  fileprivate final func runAdmitted(_ node: NodePointer) {
    // Suspended while the item was on its way: it has not started, so it must not.
    if state.snapshot.isSuspended && holdBack(node) {
      // The reference that came with the node stays with it; balance the caller's release.
      _ = Unmanaged.passRetained(self)
      return
    }
    let frame = Frame(
      queue: .passUnretained(self), parent: Frame.current, exclusive: false, level: node.pointee.level)
    Frame.run(frame) { Invocation.perform(node) }
    giveUpPlace()
  }
}

/// Running what a node carries.
enum Invocation {
  /// Runs `work` on the calling thread, then leaves `group`.
  ///
  /// The closure and what it captured are released before the group is left, so that whoever waits for
  /// the group finds them gone.
  @inline(__always)
  static func perform(_ work: consuming Work, group: Unmanaged<DispatchGroup>?) {
    run(work)
    if let group { group._withUnsafeGuaranteedRef { $0.leaveAfterItem() } }
  }

  @inline(__always)
  private static func run(_ work: consuming Work) {
    switch consume work {
    case .closure(let body): body()
    case .item(let item): item.execute()
    case .drain(let queue): queue.drain()
    case .redirected(let node): runAdmitted(node)
    case .waiter: Trap.runtimeBug("a waiting thread was taken for an item")
    }
  }

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
    let work = node.takeWork()
    let group = node.pointee.group
    let frame = Frame(
      queue: .passUnretained(self), parent: Frame.current, exclusive: false, level: node.pointee.level)
    NodeMagazine.recycle(node)
    Frame.run(frame) { Invocation.perform(work, group: group) }
    giveUpPlace()
  }
}

// Handing a queue to the next owner: when its owner has finished, or reaches an entry that is not an item.

extension DispatchQueue {
  enum Served {
    /// The caller still owns the queue; this node is now the first in its list.
    case next(NodePointer?)
    /// The waiting thread owns the queue, or the queue is enqueued at its new target.
    case handedOver
  }

  /// Gives the waiting thread at the head of the list its turn, or changes the queue's target.
  final func serve(_ node: NodePointer) -> Served {
    let next = list.advance(past: node)
    if let next { list.leave(at: next) }
    guard node.isWaiter else {
      changeTarget(requestedBy: node)
      return .handedOver
    }
    return passTurn(toWaiterIn: node, leftovers: next != nil) ? .handedOver : .next(next)
  }

  /// Gives a waiting thread, whose node has been taken from the list, its turn.
  /// - Returns: whether that thread now owns the queue.
  final func passTurn(toWaiterIn node: NodePointer, leftovers: Bool) -> Bool {
    guard case .waiter(let waiter) = node.takeWork() else {
      Trap.runtimeBug("an item was taken for a waiting thread")
    }
    NodeMagazine.recycle(node)
    if !waiter.pointee.exclusive {
      state.addReaderPlace()
      waiter.pointee.event.signal()
      return false
    }
    // Only a drain may run the body here; a thread that hands the queue on has its own work to continue.
    if waiter.pointee.body != nil && Frame.current?.pointee.queue.toOpaque() == selfPointer {
      SyncWaiter.runBody(of: waiter)
      // ORDERING: relaxed; the signal publishes it.
      waiter.pointee.bodyHasRun.store(true, ordering: .relaxed)
      waiter.pointee.event.signal()
      return false
    }
    state.transfer(to: waiter.pointee.thread, leftovers: leftovers)
    waiter.pointee.event.signal()
    return true
  }

  private final var selfPointer: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  /// Gives up a queue that the calling thread owns but does not drain: to the first waiting thread, to
  /// a worker if an item is first, or to no thread if the list is empty.
  @usableFromInline @inline(never)
  final func handOn() {
    if kind == .workloop { return asWorkloop.handOnByLevel() }
    var first = list.first()
    while true {
      guard let node = nextEntry(&first) else { return }
      if let most = readersToWaitFor(node) {
        list.leave(at: node)
        if case .released = state.releaseToReaders(most: most, entryLevel(node)) { return }
        continue
      }
      guard node.isWaiter else {
        let level = entryLevel(node)
        list.leave(at: node)
        carryOut(state.releaseToTarget(level))
        return
      }
      guard case .next(let next) = serve(node) else { return }
      first = next
    }
  }

  /// Gives back one reader's place of a concurrent queue.
  final func giveUpPlace() {
    if case .own = state.releaseReaderPlace(CurrentThread.id) { handOn() }
  }
}

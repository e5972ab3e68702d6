internal import CConcourse

extension ProcessQueues {
  /// The process's one set. The model build replaces this file, to begin each execution afresh.
  static let shared: ProcessQueues = {
    let made = ProcessQueues()
    concourse_at_fork(
      { queues in
        // SAFETY: the context below; it is never freed.
        Unmanaged<ProcessQueues>.fromOpaque(queues!).takeUnretainedValue().becomeForkedChild()
      }, Unmanaged.passRetained(made).toOpaque())
    concourse_export_layout()
    TaskWaits.prepare()
    TaskThreads.prepare()
    return made
  }()

  /// The fork handler of the child. It does not use `shared`, which another thread may have been making at the fork.
  private func becomeForkedChild() {
    blockedThreads.forgetThreads()
    targetLock.forgetHolder()
    mainThread.noteFork(mainQueue)
    if CurrentThread.state.pointee.was_worker != 0 { _ = Frame.current?.holdIfDrained() }
  }
}

extension UnsafeMutablePointer<Frame> {
  /// A worker has forked in an item. Suspends the queues whose drains it is in, in the child: a drain looks at that before
  /// each item, so none runs there another item when this one has returned.
  /// - Returns: whether the worker entered the frame on its way to the item, not in a `sync` inside it.
  fileprivate func holdIfDrained() -> Bool {
    let queue = pointee.queue.takeUnretainedValue()
    if let parent = pointee.parent {
      guard parent.holdIfDrained(), queue.targetQueue === parent.pointee.queue.takeUnretainedValue() else {
        return false
      }
    }
    if pointee.exclusive && queue.kind.isLane { queue.state.suspend() }
    return true
  }
}

/// Called before the first thread is made (`Runtime.settleLazies`).
@c(concourse_settle_queues)
func settleQueues() {
  _ = ProcessQueues.shared
  TaskWaits.settle()
  TaskThreads.settle()
}

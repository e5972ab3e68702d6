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
    mainThread.noteFork()
  }
}

/// Called before the first thread is made (`Runtime.settleLazies`).
@c(concourse_settle_queues)
func settleQueues() {
  _ = ProcessQueues.shared
  TaskWaits.settle()
  TaskThreads.settle()
}

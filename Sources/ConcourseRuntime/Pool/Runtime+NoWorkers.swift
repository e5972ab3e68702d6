extension Runtime {
  /// How long a thread without a turn sleeps while the system refuses threads, in nanoseconds.
  private static let nap: UInt64 = 1_000_000

  /// While the system refuses every worker, the calling thread, which waits for its turn on a queue, does a worker's work:
  /// otherwise it would wait for ever.
  /// - Parameter turn: signalled when its turn has come.
  /// - Returns: whether the turn has come. If not, there are workers.
  func serveWithoutWorkers(until turn: borrowing ThreadEvent) -> Bool {
    // ORDERING: relaxed; see `lacksWorkers`.
    while lacksWorkers.load(ordering: .relaxed) {
      if turn.isSet { return true }
      if !runOldestEntry() && turn.sleepAsWorker(until: .uptime(Clock.uptime() &+ Self.nap)) { return true }
    }
    return false
  }

  /// Runs the oldest entry of the most urgent root, outside the item that the thread runs.
  /// - Returns: false if all roots are empty.
  private func runOldestEntry() -> Bool {
    for band in bands {
      for root in band.roots {
        guard let node = root._withUnsafeGuaranteedRef({ $0.take() }) else { continue }
        let thread = CurrentThread.state
        let (frame, queue) = (thread.pointee.frame, thread.pointee.queue)
        thread.pointee.frame = nil
        node.run(for: root._withUnsafeGuaranteedRef { $0.client })
        (thread.pointee.frame, thread.pointee.queue) = (frame, queue)
        return true
      }
    }
    return false
  }
}

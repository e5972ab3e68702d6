extension Runtime {
  /// How long a thread without a turn sleeps while the system refuses threads, in nanoseconds.
  private static let nap: UInt64 = 1_000_000

  /// While the system refuses every worker, the calling thread, which waits for its turn on a queue, does a worker's work:
  /// otherwise it would wait for ever.
  /// - Parameters:
  ///   - isOver: whether its turn has come.
  ///   - sleep: sleeps until then or until a deadline, and says whether the turn has come.
  /// - Returns: whether the turn has come. If not, there are workers.
  func serveWithoutWorkers(until isOver: () -> Bool, _ sleep: (Deadline) -> Bool) -> Bool {
    // ORDERING: relaxed; see `lacksWorkers`.
    while lacksWorkers.load(ordering: .relaxed) {
      if isOver() { return true }
      if !runOldestEntry() && sleep(.uptime(Clock.uptime() &+ Self.nap)) { return true }
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
        let outer = thread.pointee.innermostFrame
        thread.pointee.innermostFrame = nil
        Invocation.performEntry(node, of: root)
        thread.pointee.innermostFrame = outer
        return true
      }
    }
    return false
  }
}

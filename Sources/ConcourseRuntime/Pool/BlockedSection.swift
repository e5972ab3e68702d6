/// A stretch in which the calling thread sleeps in a wait of the engine, or perhaps in a system call. A worker gives its
/// processor to another worker meanwhile, so that the thread that will wake it can run.
package enum BlockedSection {
  /// As below, and a recording shows the sleep as a wait for `object`.
  package static func run<Result>(
    _ wait: Recording.Wait, _ object: UnsafeRawPointer?, _ sleep: () -> Result
  ) -> Result {
    Recording.wait(wait, object) { run(sleep) }
  }

  package static func run<Result>(_ sleep: () -> Result) -> Result {
    // A wait within the section.
    guard CurrentThread.state.pointee.blocked_since == 0 else { return sleep() }
    // For `concourse report`.
    CurrentThread.state.pointee.blocked_since = Clock.uptime()
    defer { CurrentThread.state.pointee.blocked_since = 0 }
    let delivering = WorkerThread.delivering
    guard let worker = WorkerThread.current ?? delivering else { return sleep() }
    let status = delivering == nil ? WorkerRecord.Status.active : WorkerRecord.Status.delivering
    worker.pointee.band._withUnsafeGuaranteedRef { $0.workerWillWait(worker) }
    defer { worker.pointee.band._withUnsafeGuaranteedRef { $0.workerDidWait(worker, as: status) } }
    return sleep()
  }
}

extension ThreadEvent {
  /// Waits for the signal. Spins first, then tells the pool and sleeps.
  /// - Parameters:
  ///   - wait: what the thread waits for, and
  ///   - object: which one, for recordings.
  package func wait(for wait: Recording.Wait, _ object: UnsafeRawPointer?) {
    if spin() { return }
    Recording.wait(wait, object) { _ = sleepAsWorker(until: .never) }
  }

  /// Tells the pool and sleeps.
  /// - Returns: false if `deadline` passed before the signal.
  func sleepAsWorker(until deadline: Deadline) -> Bool {
    BlockedSection.run {
      while Process.lacksMonitor.value {
        if park(until: deadline.earlier(in: Runtime.askInterval)) { return true }
        Runtime.askForThreads()
        if deadline.hasPassed { return false }
      }
      return park(until: deadline)
    }
  }
}

extension Futex {
  /// As `wait`, for a thread that waits for what others do, and holds no lock.
  package static func waitForOthers(
    _ word: borrowing Atomic<UInt32>, expected: UInt32, deadline: Deadline = .never
  ) -> Outcome {
    guard Process.lacksMonitor.value else { return wait(word, expected: expected, deadline: deadline) }
    let outcome = wait(word, expected: expected, deadline: deadline.earlier(in: Runtime.askInterval))
    guard outcome == .timedOut else { return outcome }
    Runtime.askForThreads()
    return deadline.hasPassed ? .timedOut : .lookAgain
  }
}

extension Lock {
  /// As `lock`, if a holder may make a system call that takes long: a worker that waits lets another one run.
  @inlinable @inline(__always)
  package func lockPatiently() {
    if !tryLock() { lockWithPatience() }
  }

  @inlinable @inline(__always)
  package func withLockPatiently<Result>(_ body: () -> Result) -> Result {
    lockPatiently()
    defer { unlock() }
    return body()
  }

  @inline(never) @usableFromInline
  func lockWithPatience() {
    if !tryLockBriefly() { BlockedSection.run { lock() } }
  }
}

// MARK: - Waiting without workers

extension Runtime {
  /// How long a thread without a turn sleeps while the system refuses threads, in nanoseconds.
  private static let nap: UInt64 = 1_000_000
  /// How long a thread that waits sleeps, in nanoseconds, before it asks for the threads that the system has refused.
  fileprivate static let askInterval: UInt64 = 10_000_000

  /// The system has refused a worker or the event loop, and the monitor, which would ask again. If no thread calls the
  /// runtime any more, those that wait must ask.
  fileprivate static func askForThreads() { shared.monitor.watch() }

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

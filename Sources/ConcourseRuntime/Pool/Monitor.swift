/// A thread that looks at the pool every millisecond while work waits, and otherwise sleeps until `watch` wakes
/// it. The protocol is in MONITOR.md.
///
/// It moves queues that a busy worker keeps, replaces workers that sleep in calls unknown to the engine while
/// work waits, adds a worker at times when all of them compute without end, makes threads for lowered threads,
/// retries refused threads, and follows changes of the CPU quota.
package final class Monitor {
  private enum State {
    static let absent: UInt32 = 0
    static let dormant: UInt32 = 1
    static let awake: UInt32 = 2
    /// The thread does not exist yet. A lowered thread, which must not make it, has asked for it.
    static let wanted: UInt32 = 3
  }

  /// Nanoseconds between two looks.
  private static let tick: UInt64 = 1_000_000
  /// The monitor sleeps after this many looks in a row that find nothing waiting.
  private static let patience = 4
  /// The number of looks between two readings of the CPU quota.
  private static let quotaInterval = 1000

  private let state = Atomic<UInt32>(State.absent)
  private let tickWord = Atomic<UInt32>(0)
  /// Whether the event loop's thread is asked for, or no thread waits for events because the system refuses it.
  let wantsEventLoop = Atomic<Bool>(false)
  /// When the system last refused the thread; 0 if it never has. After a refusal even a lowered thread may make it:
  /// a lowered monitor is better than none.
  private let refusal = Atomic<UInt64>(0)
  private let runs = Atomic<Bool>(false)
  private(set) var looks = 0

  let shares = LevelShares()
  /// Looks in a row at which fewer than two levels waited. OWNED BY the monitor.
  var looksWithoutCompetition = 0
  /// When the monitor last charged the levels. OWNED BY the monitor.
  var lastCharge: UInt64 = 0

  /// Whether its thread has not been made. A hint.
  var isAbsent: Bool {
    // ORDERING: relaxed; a hint.
    let seen = state.load(ordering: .relaxed)
    return seen == State.absent || seen == State.wanted
  }

  /// Whether its thread runs; it never ends. While the system refuses the thread, what is left to the monitor is not
  /// done.
  var hasThread: Bool {
    // ORDERING: relaxed; a thread that reads false wakes a worker instead.
    runs.load(ordering: .relaxed)
  }

  /// Whether the calling thread must ask the monitor to create threads whose nice value is the process's plus
  /// `difference`: they would inherit the caller's higher one, for good. A thread that the program has lowered creates
  /// them all the same while there is no monitor, whose thread would be lowered, too.
  package func mustCreateThreads(at difference: Int32 = 0) -> Bool {
    if CurrentThread.state.pointee.nice > difference { return true }
    let priority = Runtime.shared.bands[0].priority
    return hasThread && !priority.mayRaise && SystemThread.isNice(above: priority.base + difference)
  }

  /// Asks for a look soon. Costs one load if the monitor is already awake.
  @inline(__always)
  func watch() {
    // ORDERING: sequentially consistent; the caller has put something where the monitor looks. Either the
    // caller sees that the monitor sleeps, or the monitor's last look before it sleeps sees what was put there
    // (Pool/MONITOR.md).
    if state.load(ordering: .sequentiallyConsistent) != State.awake { wake() }
  }

  /// Starts the event loop's thread on behalf of a lowered thread, or because the system has refused it, or has refused
  /// to set the loop's timer. While it refuses, the monitor asks again at each look; for the thread, until a worker waits
  /// for events.
  package func startEventLoop() {
    // ORDERING: sequentially consistent; as for `BandWatch.wantedThreads`.
    wantsEventLoop.store(true, ordering: .sequentiallyConsistent)
    watch()
  }

  /// Makes the thread now, if the caller has normal priority. A lowered caller leaves it to the thread that made it.
  func ensureStarted() {
    if CurrentThread.state.pointee.nice > 0 { return watch() }
    // ORDERING: relaxed; decided by the compare-exchange in `start`.
    let seen = state.load(ordering: .relaxed)
    if seen == State.absent && !start(as: State.dormant, insteadOf: State.absent) || seen == State.wanted {
      start(as: State.awake, insteadOf: State.wanted)
    }
  }

  @inline(never)
  private func wake() {
    // ORDERING: sequentially consistent; as in `watch`.
    let (woken, before) = state.compareExchange(
      expected: State.dormant, desired: State.awake, ordering: .sequentiallyConsistent)
    if woken {
      Futex.wake(state, count: 1)
    } else if before == State.absent || before == State.wanted {
      // ORDERING: relaxed, and for the exchange releasing; the thread that makes the first worker of this band makes
      // the monitor next, and finds the request.
      if CurrentThread.state.pointee.nice > 0 && refusal.load(ordering: .relaxed) == 0 {
        _ = state.compareExchange(expected: State.absent, desired: State.wanted, ordering: .releasing)
        return watchAgain(after: before)
      }
      // The thread that has made it meanwhile may not know of the caller's request.
      if !start(as: State.awake, insteadOf: before) { watch() }
    }
  }

  /// Calls `watch` again if the state left `absent` just before a lowered thread asked for the monitor.
  private func watchAgain(after before: UInt32) {
    // ORDERING: sequentially consistent; as in `watch`.
    let now = state.load(ordering: .sequentiallyConsistent)
    if now != State.wanted && now != before { watch() }
  }

  /// Makes the thread, unless the system has refused it within the last tick.
  /// - Returns: false if the state was not `former`.
  @discardableResult
  private func start(as first: UInt32, insteadOf former: UInt32) -> Bool {
    // ORDERING: relaxed; a time to compare with.
    let refused = refusal.load(ordering: .relaxed)
    guard refused == 0 || Clock.uptime() &- refused >= Self.tick else {
      goOnWithout()
      return true
    }
    // ORDERING: acquiring and releasing; one caller makes the thread.
    guard
      state.compareExchange(expected: former, desired: first, ordering: .acquiringAndReleasing).exchanged
    else { return false }
    let failure = Runtime.startThread(
      { argument in
        SystemThread.setName("concourse-watch")
        Runtime.adoptHighestPriority()
        // SAFETY: the runtime, which owns the monitor, is never destroyed.
        Unmanaged<Monitor>.fromOpaque(argument!).takeUnretainedValue().run()
        return nil
      }, Unmanaged.passUnretained(self).toOpaque())
    // ORDERING: releasing; a later call tries again. Without the monitor the pool does not see workers that are
    // blocked in calls unknown to the engine.
    if failure != 0 {
      refusal.store(Clock.uptime(), ordering: .relaxed)
      Process.lacksMonitor.value = true
      state.store(State.absent, ordering: .releasing)
      goOnWithout()
      // A worker that has found the state `wanted`, or this thread about to be made, has left its queue or an item to the
      // monitor.
      for band in Runtime.shared.bands {
        for worker in band.workers { band.release(kept: worker) }
        if band.hasWork { band.noteWork() }
      }
    }
    return true
  }

  /// Does at once what must not wait for the monitor, whose thread the system refuses: makes the threads that lowered
  /// threads have asked for, since a lowered thread is better than none, and posts the queue that the calling worker
  /// keeps, since its entry may block until that queue has run.
  private func goOnWithout() {
    serveRequests()
    guard let worker = WorkerThread.current else { return }
    worker.pointee.band._withUnsafeGuaranteedRef { _ = $0.release(kept: worker) }
  }

  /// Makes the threads that were asked for.
  private func serveRequests() {
    // ORDERING: acquiring; pairs with the store in `startEventLoop`.
    if wantsEventLoop.exchange(false, ordering: .acquiring), Runtime.eventDriver?.askAgain() == false {
      // ORDERING: relaxed; read by the monitor alone, or by the next caller of `startEventLoop`.
      wantsEventLoop.store(true, ordering: .relaxed)
    }
    for band in Runtime.shared.bands { band.startWantedThreads() }
  }

  // MARK: The monitor's thread

  private func run() {
    // ORDERING: relaxed; as in `hasThread`.
    runs.store(true, ordering: .relaxed)
    Process.lacksMonitor.value = false
    while true {
      // ORDERING: acquiring; pairs with `wake`.
      while state.load(ordering: .acquiring) == State.dormant {
        _ = Futex.wait(state, expected: State.dormant)
      }
      var quiet = 0
      while quiet < Self.patience {
        _ = Futex.wait(tickWord, expected: 0, deadline: .uptime(Clock.uptime() &+ Self.tick))
        quiet = look() ? 0 : quiet + 1
      }
      // ORDERING: relaxed; the allowance and the shares of one burst say nothing about the next.
      for band in Runtime.shared.bands { band.allowance.store(0, ordering: .relaxed) }
      endSharing()
      // ORDERING: sequentially consistent; the announcement comes before the last look, see `watch`.
      state.store(State.dormant, ordering: .sequentiallyConsistent)
      if somethingWaits() {
        // ORDERING: sequentially consistent; as above.
        state.store(State.awake, ordering: .sequentiallyConsistent)
      }
    }
  }

  /// One look at all bands.
  /// - Returns: whether anything waited.
  private func look() -> Bool {
    looks += 1
    if looks % Self.quotaInterval == 0 && PoolSize.refreshWidth() { stepBackEverywhere() }
    var waiting = false
    serveRequests()
    shareTime()
    for band in Runtime.shared.bands where look(at: band) { waiting = true }
    return waiting
  }

  /// After a shard's part of the processors has become smaller, makes every worker check whether it is one too many.
  func stepBackEverywhere() {
    for band in Runtime.shared.bands {
      // ORDERING: relaxed; a worker may see it late.
      for worker in band.workers {
        worker.pointee.attention.store(WorkerRecord.Attention.limit, ordering: .relaxed)
      }
    }
  }

  private func somethingWaits() -> Bool {
    // ORDERING: sequentially consistent; pairs with the store in `startEventLoop`.
    if wantsEventLoop.load(ordering: .sequentiallyConsistent) { return true }
    for band in Runtime.shared.bands {
      if band.hasWorkInTotalOrder { return true }
      // ORDERING: sequentially consistent; pairs with the request in `Band.spawn`.
      if band.watch.wantedThreads.load(ordering: .sequentiallyConsistent) > 0 { return true }
      for worker in band.workers {
        // ORDERING: sequentially consistent; pairs with the exchange in `keep`, see `watch`.
        if worker.pointee.kept.load(ordering: .sequentiallyConsistent) != nil { return true }
        if !worker.pointee.batch.isEmptyInTotalOrder { return true }
      }
    }
    return false
  }
}

// SAFETY: the shared words are atomics; the counts of looks and `lastCharge` are OWNED BY the monitor's own thread.
extension Monitor: @unchecked Sendable {}

/// What the monitor remembers of a band from look to look. OWNED BY the monitor, but for the two atomics.
final class BandWatch {
  /// The estimated part of their time in which active workers do not sleep.
  var awakeShare = 0
  /// Looks in a row without a newly stuck worker.
  var calmLooks = 0
  /// The number of looks since all workers began to compute without completing anything, and its limit.
  var overrunLooks = 0
  var overrunLimit = Monitor.overrun
  var starvation = Starvation()
  /// The number of threads that the band may have regardless of the cap, because it starves. Workers read it.
  let starvationLimit = Atomic<Int>(0)
  /// The number of workers that lowered threads have asked for: the monitor makes them.
  let wantedThreads = Atomic<Int>(0)
}

/// What the monitor remembers of a worker, besides what `concourse report` reads. OWNED BY the monitor; atomic as the
/// other fields of the record.
struct WorkerWatch: ~Copyable {
  /// The number of looks in a row without progress.
  let looksWithoutProgress = Atomic<Int>(0)
  /// The processor's time that the thread had used at the last look; 0 if not read.
  let processorTime = Atomic<UInt64>(0)
  /// The same when its state could not be read.
  let timeUntilUnknown = Atomic<UInt64>(0)
}

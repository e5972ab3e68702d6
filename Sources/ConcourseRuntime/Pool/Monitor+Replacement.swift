extension Monitor {
  /// The number of looks without any completion after which a band full of computing workers gets one more;
  /// doubled each time until an entry ends. The computing workers may wait for the work that waits here.
  static var overrun: Int { Int(Tuning.value(100, inModel: 3)) }
  /// The number of such looks after which it gets one more for an entry that was promised a thread (Overcommit.swift).
  private static let looksForPromised = 2
  /// The number of looks without a newly stuck worker after which the allowance shrinks.
  private static let calm = 4
  /// Reading a thread's state costs a few system calls: after two looks without progress only every so many looks.
  private static let looksBetweenReads = 8
  /// Where the state cannot be read, a worker counts as asleep if it has not run for so many looks, or, where that is
  /// unknown, too, every so many looks without progress.
  private static let looksUntilAssumedAsleep = 32

  /// One look at a band: moves queues that busy workers keep, and replaces workers that are stuck.
  ///
  /// Each worker found stuck raises the limit by one, so a flood of sleeping items doubles the workers from look to
  /// look and reaches the cap in some ten looks. When no more workers get stuck, the allowance shrinks as fast, so
  /// that computing items do not share the processors for long.
  /// - Returns: whether anything waited.
  func look(at band: Band) -> Bool {
    // ORDERING: acquiring; pairs with the store in `startEventLoop`: the worker that is woken to wait for events must
    // see the event queue.
    var waiting = band.hasWork || !band.isLowered && wantsEventLoop.load(ordering: .acquiring)
    // Another shard's entries wait for the workers of this one, too.
    let helps = band.shard.isOneOfSeveral && band.neighbourNeedsHelp
    var newlyStuck = 0
    var progress = false
    var computing: WorkerPointer?
    // ORDERING: relaxed; a sum to compare with earlier ones.
    var begun = band.begunByFormer.load(ordering: .relaxed)
    let now = Clock.uptime()
    for worker in band.workers {
      // ORDERING: relaxed; a count to compare with earlier ones.
      begun &+= worker.pointee.progress.load(ordering: .relaxed)
      // A batch takes less than a tenth of a tick, unless an entry is long or others go first.
      if worker.pointee.batch.isLeft() && band.release(batch: worker, waits: false) { waiting = true }
      guard makesNoProgress(worker, now) else {
        // A first entry shows only that a worker has come, perhaps in place of another one.
        progress = progress || isActive(worker) && worker.pointee.begunSincePark > 1
        continue
      }
      // It has been busy for a whole tick: another worker gets its kept queue. This includes a worker that was given
      // up before: it may have continued, made a queue runnable, and blocked again.
      if band.release(kept: worker, waits: false) { waiting = true }
      guard (waiting || helps) && isActive(worker) else { continue }
      if isAsleep(worker) {
        if giveUp(worker, of: band) { newlyStuck += 1 }
      } else {
        computing = worker
      }
    }
    if newlyStuck == 0 && !progress, let computing {
      replaceComputing(computing, of: band)
    } else {
      (band.watch.overrunLooks, band.watch.overrunLimit) = (0, Self.overrun)
    }
    adjustAllowance(of: band, newlyStuck: newlyStuck)
    relieveStarvation(of: band, waiting: waiting, begun: begun)
    if waiting {
      band.noteWork()
      band.sendHelp()
    }
    return waiting
  }

  private func relieveStarvation(of band: Band, waiting: Bool, begun: UInt32) {
    let now = band.counters.snapshot
    let isBlocked = waiting && now.active == 0 && !band.isHeldBack
    let limit = band.watch.starvation.look(isBlocked: isBlocked, threads: now.threads, begun: begun)
    // ORDERING: relaxed, both; a hint for decisions.
    if let limit { band.watch.starvationLimit.store(limit, ordering: .relaxed) }
    // A shard without processors of its own, for which no other shard has had room for long.
    if limit != nil && band.shard.width == 0 { band.allowance.store(1, ordering: .relaxed) }
    if !waiting { band.watch.starvationLimit.store(0, ordering: .relaxed) }
  }

  /// Whether a worker has been at the same entry since the last look.
  private func makesNoProgress(_ worker: WorkerPointer, _ now: UInt64) -> Bool {
    // ORDERING: relaxed; compared only with earlier looks, and the rest is the monitor's own.
    let progress = worker.pointee.progress.load(ordering: .relaxed)
    guard worker.pointee.seenProgress.load(ordering: .relaxed) == progress else {
      // ORDERING: relaxed; the monitor's own.
      worker.pointee.watch.looksWithoutProgress.store(0, ordering: .relaxed)
      worker.pointee.seenSince.store(now, ordering: .relaxed)
      // ORDERING: releasing; `concourse report`, which reads it first, then finds no older time.
      worker.pointee.seenProgress.store(progress, ordering: .releasing)
      return false
    }
    // ORDERING: relaxed; the monitor's own.
    worker.pointee.watch.looksWithoutProgress.wrappingAdd(1, ordering: .relaxed)
    return true
  }

  private func isActive(_ worker: WorkerPointer) -> Bool {
    // ORDERING: acquiring; pairs with the releasing stores of the status.
    WorkerRecord.Status.isActive(worker.pointee.status.load(ordering: .acquiring))
  }

  /// Whether a worker without progress sleeps in the kernel.
  private func isAsleep(_ worker: WorkerPointer) -> Bool {
    // ORDERING: relaxed; the monitor's own.
    let looks = worker.pointee.watch.looksWithoutProgress.load(ordering: .relaxed)
    guard looks <= 2 || looks % Self.looksBetweenReads == 0 else { return false }
    // ORDERING: relaxed; 0 until the thread has started.
    let thread = worker.pointee.thread.load(ordering: .relaxed)
    guard thread != 0 else { return false }
    return SystemThread.isAsleep(thread) ?? hasNotRun(worker, thread, looks)
  }

  /// Stands in for the state of a thread: reading its clock needs neither a descriptor nor /proc.
  private func hasNotRun(_ worker: WorkerPointer, _ thread: UInt32, _ looks: Int) -> Bool {
    let isDue = looks % Self.looksUntilAssumedAsleep == 0
    guard isDue || looks == 1 else { return false }
    let used = SystemThread.processorTime(of: thread)
    // ORDERING: relaxed; the monitor's own.
    let before = worker.pointee.watch.timeUntilUnknown.exchange(used ?? 0, ordering: .relaxed)
    return isDue && (used == nil || used == before)
  }

  /// Gives up one of the active workers if all of them compute and none has completed an entry for long.
  private func replaceComputing(_ worker: WorkerPointer, of band: Band) {
    let watch = band.watch
    watch.overrunLooks += 1
    let (looks, limit) = (watch.overrunLooks, watch.overrunLimit)
    if looks < limit && looks % Self.looksForPromised == 0 && band.hasPromisedEntry {
      _ = giveUp(worker, of: band)
      return
    }
    guard looks >= limit, giveUp(worker, of: band) else { return }
    (watch.overrunLooks, watch.overrunLimit) = (0, min(limit * 2, 32 * Self.overrun))
  }

  /// Subtracts a worker from the active ones. One that delivers events is no longer searching, either.
  /// - Returns: false if its status has changed meanwhile.
  private func giveUp(_ worker: WorkerPointer, of band: Band) -> Bool {
    // ORDERING: relaxed; confirmed by the compare-exchange.
    let status = worker.pointee.status.load(ordering: .relaxed)
    guard WorkerRecord.Status.isActive(status) else { return false }
    // ORDERING: acquiring and releasing; the partner is the worker's own exchange before a wait.
    let found = worker.pointee.status.compareExchange(
      expected: status, desired: WorkerRecord.Status.stuck, ordering: .acquiringAndReleasing)
    if found.exchanged { band.counters.apply(band.counts(status, -1)) }
    return found.exchanged
  }

  private func adjustAllowance(of band: Band, newlyStuck: Int) {
    // ORDERING: relaxed throughout; the monitor is the only writer, and readers steer by it.
    let allowance = band.allowance.load(ordering: .relaxed)
    if newlyStuck > 0 {
      band.watch.calmLooks = 0
      // ORDERING: relaxed; as above.
      band.allowance.store(min(allowance + newlyStuck, PoolSize.cap), ordering: .relaxed)
    } else if allowance > 0 {
      band.watch.calmLooks += 1
      if band.watch.calmLooks >= Self.calm {
        band.watch.calmLooks = 0
        // ORDERING: relaxed; as above.
        band.allowance.store(allowance / 2, ordering: .relaxed)
      }
    }
  }
}

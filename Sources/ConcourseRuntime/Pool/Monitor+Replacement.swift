extension Monitor {
  /// Looks without any completion in a band that is full of computing workers, after which one more is
  /// added; doubled each time until something completes. What they wait for may be what waits here.
  private static let overrun = 100
  /// Looks without a newly stuck worker after which the allowance shrinks.
  private static let calm = 4

  /// One look at a band: moves on what busy workers keep, and replaces those that are stuck.
  ///
  /// The workers found stuck at one look are followed by as many more than before, so a flood of
  /// sleeping items reaches the cap in some ten looks; when no more get stuck, the allowance shrinks as
  /// fast, so that computing items are not crowded for long.
  /// - Returns: whether anything waited.
  func look(at band: Band) -> Bool {
    var waiting = band.hasWork
    var newlyStuck = 0
    var progress = false
    var computing: WorkerPointer?
    var begun: UInt32 = 0
    for worker in band.workers {
      // ORDERING: relaxed; a count to compare with earlier ones.
      begun &+= worker.pointee.progress.load(ordering: .relaxed)
      guard makesNoProgress(worker) else {
        progress = progress || isActive(worker)
        continue
      }
      // It has been busy for a whole tick: what it keeps is for others to do. That goes for a worker given
      // up before, too: it may have come back to life, made a queue runnable, and blocked again.
      if band.release(kept: worker) { waiting = true }
      guard waiting && isActive(worker) else { continue }
      if isAsleep(worker) {
        if giveUp(worker, of: band) { newlyStuck += 1 }
      } else {
        computing = worker
      }
    }
    if newlyStuck == 0 && !progress, let computing {
      replaceComputing(computing, of: band)
    } else {
      // ORDERING: relaxed; the monitor's own.
      band.overrunLooks.store(0, ordering: .relaxed)
      band.overrunLimit.store(Self.overrun, ordering: .relaxed)
    }
    adjustAllowance(of: band, newlyStuck: newlyStuck)
    relieveStarvation(of: band, waiting: waiting, begun: begun)
    if waiting { band.noteWork() }
    return waiting
  }

  private func relieveStarvation(of band: Band, waiting: Bool, begun: UInt32) {
    let now = band.counters.snapshot
    let isBlocked = waiting && now.active == 0
    let limit = band.starvation.look(isBlocked: isBlocked, threads: now.threads, begun: begun)
    // ORDERING: relaxed, both; a number to steer by.
    if let limit { band.starvationLimit.store(limit, ordering: .relaxed) }
    if !waiting { band.starvationLimit.store(0, ordering: .relaxed) }
  }

  /// Whether a worker has been at the same entry since the last look.
  private func makesNoProgress(_ worker: WorkerPointer) -> Bool {
    // ORDERING: relaxed; compared only with earlier looks, and the rest is the monitor's own.
    let progress = worker.pointee.progress.load(ordering: .relaxed)
    guard worker.pointee.seenProgress.exchange(progress, ordering: .relaxed) == progress else {
      // ORDERING: relaxed; the monitor's own.
      worker.pointee.looksWithoutProgress.store(0, ordering: .relaxed)
      return false
    }
    // ORDERING: relaxed; the monitor's own.
    worker.pointee.looksWithoutProgress.wrappingAdd(1, ordering: .relaxed)
    return true
  }

  private func isActive(_ worker: WorkerPointer) -> Bool {
    // ORDERING: acquiring; pairs with the releasing stores of the status.
    worker.pointee.status.load(ordering: .acquiring) == WorkerRecord.Status.active
  }

  /// Whether a worker without progress sleeps in the kernel.
  private func isAsleep(_ worker: WorkerPointer) -> Bool {
    // ORDERING: relaxed; the monitor's own.
    let looks = worker.pointee.looksWithoutProgress.load(ordering: .relaxed)
    // Reading a thread's state costs a few system calls: look often at first, then every few ticks.
    guard looks <= 2 || looks % 8 == 0 else { return false }
    // ORDERING: relaxed; 0 until the thread has come to life.
    let thread = worker.pointee.thread.load(ordering: .relaxed)
    return thread != 0 && SystemThread.isAsleep(thread) ?? (looks % 16 == 0)
  }

  /// All active workers compute and none has completed anything: after a while, one is taken for stuck.
  private func replaceComputing(_ worker: WorkerPointer, of band: Band) {
    // ORDERING: relaxed throughout; the monitor's own.
    let looks = band.overrunLooks.wrappingAdd(1, ordering: .relaxed).newValue
    let limit = band.overrunLimit.load(ordering: .relaxed)
    guard looks >= limit, giveUp(worker, of: band) else { return }
    // ORDERING: relaxed; as above.
    band.overrunLooks.store(0, ordering: .relaxed)
    band.overrunLimit.store(min(limit * 2, 1 << 20), ordering: .relaxed)
  }

  /// Takes a worker out of the active ones.
  /// - Returns: false when it has begun to wait or to park meanwhile.
  private func giveUp(_ worker: WorkerPointer, of band: Band) -> Bool {
    // ORDERING: acquiring and releasing; the partner is the worker's own exchange before a wait.
    let found = worker.pointee.status.compareExchange(
      expected: WorkerRecord.Status.active, desired: WorkerRecord.Status.stuck,
      ordering: .acquiringAndReleasing)
    if found.exchanged { band.counters.apply(.init(active: -1)) }
    return found.exchanged
  }

  private func adjustAllowance(of band: Band, newlyStuck: Int) {
    // ORDERING: relaxed throughout; the monitor is the only writer, and readers steer by it.
    let allowance = band.allowance.load(ordering: .relaxed)
    if newlyStuck > 0 {
      // ORDERING: relaxed; as above.
      band.calmLooks.store(0, ordering: .relaxed)
      band.allowance.store(min(allowance + newlyStuck, PoolSize.cap), ordering: .relaxed)
    } else if allowance > 0 {
      // ORDERING: relaxed; as above.
      let calm = band.calmLooks.wrappingAdd(1, ordering: .relaxed).newValue
      if calm >= Self.calm {
        // ORDERING: relaxed; as above.
        band.calmLooks.store(0, ordering: .relaxed)
        band.allowance.store(allowance / 2, ordering: .relaxed)
      }
    }
  }
}

extension Monitor {
  /// Looks without any progress of a running worker after which one more is added.
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
    // ORDERING: acquiring; pairs with the releasing store of the count, publishes the records.
    for index in 0..<band.recordCount.load(ordering: .acquiring) {
      guard let worker = band.records[index] else { continue }
      guard makesNoProgress(worker) else { continue }
      // It has been busy for a whole tick: what it keeps is for others to do.
      if band.release(kept: worker) { waiting = true }
      if waiting && hasLostItsPlace(worker) && giveUp(worker, of: band) { newlyStuck += 1 }
    }
    adjustAllowance(of: band, newlyStuck: newlyStuck)
    if waiting { band.noteWork() }
    return waiting
  }

  /// Whether a worker has been at the same entry since the last look.
  private func makesNoProgress(_ worker: WorkerPointer) -> Bool {
    // ORDERING: relaxed; compared only with earlier looks, and the rest is the monitor's own.
    let progress = worker.pointee.progress.load(ordering: .relaxed)
    let same = worker.pointee.seenProgress.exchange(progress, ordering: .relaxed) == progress
    // ORDERING: acquiring; pairs with the releasing stores of the status.
    guard same, worker.pointee.status.load(ordering: .acquiring) == WorkerRecord.Status.active else {
      // ORDERING: relaxed; the monitor's own.
      worker.pointee.looksWithoutProgress.store(0, ordering: .relaxed)
      return false
    }
    // ORDERING: relaxed; the monitor's own.
    worker.pointee.looksWithoutProgress.wrappingAdd(1, ordering: .relaxed)
    return true
  }

  /// Whether a worker without progress should be replaced: it sleeps, or it has computed for so long
  /// that what waits may be what it waits for.
  private func hasLostItsPlace(_ worker: WorkerPointer) -> Bool {
    // ORDERING: relaxed; the monitor's own.
    let looks = worker.pointee.looksWithoutProgress.load(ordering: .relaxed)
    if looks >= Self.overrun {
      // ORDERING: relaxed; as above.
      worker.pointee.looksWithoutProgress.store(0, ordering: .relaxed)
      return true
    }
    // Reading a thread's state costs a few system calls: look often at first, then every few ticks.
    guard looks <= 2 || looks % 8 == 0 else { return false }
    // ORDERING: relaxed; a stale id reads as another thread or as none.
    return SystemThread.isAsleep(worker.pointee.thread.load(ordering: .relaxed)) ?? (looks % 16 == 0)
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
      band.calmLooks.store(0, ordering: .relaxed)
      band.allowance.store(min(allowance + newlyStuck, PoolSize.cap), ordering: .relaxed)
    } else if allowance > 0 {
      let calm = band.calmLooks.wrappingAdd(1, ordering: .relaxed).newValue
      if calm >= Self.calm {
        // ORDERING: relaxed; as above.
        band.calmLooks.store(0, ordering: .relaxed)
        band.allowance.store(allowance / 2, ordering: .relaxed)
      }
    }
  }
}

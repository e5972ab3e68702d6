// While entries of several levels wait, the levels share the workers' time by weight (ROOTS.md). At each look the monitor
// charges what the active workers run. The workers of the default band take the entry of the level that has paid least. A
// lowered band that has paid more than a higher level is held back: its workers park after their entries, and the monitor
// wakes them when it is their turn.

extension Monitor {
  /// The account ends after this many looks in a row at which fewer than two levels waited.
  private static let memory = 100
  /// The most that one look charges, in nanoseconds: the process may have been stopped.
  private static let longestLook: UInt64 = 300_000_000
  /// A worker that has been at an entry for so many nanoseconds is charged for its processor's time only: a lowered worker
  /// may wait long for its processor.
  private static let timeCharged: UInt64 = 20_000_000

  /// Charges the entries that run if levels compete, and holds back the lowered bands that are ahead.
  func shareTime() {
    let waiting = Runtime.waitingLevels
    looksWithoutCompetition = waiting.count > 1 ? 0 : looksWithoutCompetition + 1
    let now = Clock.uptime()
    let elapsed = min(now - lastCharge, Self.longestLook)
    lastCharge = now
    if !shares.levelsCompete {
      if waiting.count > 1 { beginSharing() }
      return
    }
    guard looksWithoutCompetition <= Self.memory else { return endSharing() }
    for band in Runtime.shared.bands {
      for worker in band.workers where worker.pointee.isActive {
        // ORDERING: relaxed; the worker stores the level before an entry.
        let level = band.isLowered ? band.level : worker.pointee.level.load(ordering: .relaxed)
        // A lowered worker that has woken up may wait long for its processor. If its band paid for that, the worker would
        // find the band held back again, and park without having run anything.
        if worker.pointee.begunSincePark > 0 {
          shares.charge(level, nanoseconds: time(of: worker, elapsed, at: now))
        }
        // ORDERING: relaxed; the worker may see the request late.
        worker.pointee.attention.store(WorkerRecord.Attention.limit, ordering: .relaxed)
      }
      band.estimateAwakeShare(look: looks)
    }
    shares.bound(waiting: waiting)
    // The look at the band follows, and posts what waits in a band that is let go.
    for band in Runtime.shared.bands where band.isLowered {
      // ORDERING: relaxed; see `activeLimit`.
      band.heldBack.store(
        shares.isAhead(band.level, waiting: waiting) && processorsAreTaken(above: band), ordering: .relaxed)
    }
  }

  private func beginSharing() {
    shares.begin()
    for band in Runtime.shared.bands {
      for worker in band.workers {
        // ORDERING: relaxed, both; as in `shareTime`. The level is unknown until the worker takes its next entry.
        worker.pointee.level.store(.unspecified, ordering: .relaxed)
        worker.pointee.attention.store(WorkerRecord.Attention.limit, ordering: .relaxed)
      }
      band.watch.awakeShare = Band.wholeShare
    }
  }

  /// Ends the account. The look that follows posts what waits in a band that was held back.
  func endSharing() {
    guard shares.levelsCompete else { return }
    shares.end()
    for band in Runtime.shared.bands {
      // ORDERING: relaxed, both; see `activeLimit`, and `shareTime`.
      band.heldBack.store(false, ordering: .relaxed)
      for worker in band.workers {
        worker.pointee.attention.store(WorkerRecord.Attention.limit, ordering: .relaxed)
      }
    }
  }

  /// The time for which an active worker is charged.
  private func time(of worker: WorkerPointer, _ elapsed: UInt64, at now: UInt64) -> UInt64 {
    // ORDERING: relaxed throughout; the monitor's own, but for the thread's id, which is 0 until it has started.
    guard worker.pointee.watch.looksWithoutProgress.load(ordering: .relaxed) > 0,
      now - worker.pointee.seenSince.load(ordering: .relaxed) >= Self.timeCharged,
      let used = SystemThread.processorTime(of: worker.pointee.thread.load(ordering: .relaxed))
    else {
      // ORDERING: relaxed; as above.
      worker.pointee.watch.processorTime.store(0, ordering: .relaxed)
      return elapsed
    }
    // ORDERING: relaxed; as above.
    let before = worker.pointee.watch.processorTime.exchange(used, ordering: .relaxed)
    return before == 0 || used < before ? elapsed : min(elapsed, used - before)
  }

  /// Whether the bands above leave no processor to `band`: one that they leave for more than a quarter of the time is free.
  private func processorsAreTaken(above band: Band) -> Bool {
    var taken = 0
    for other in Runtime.shared.bands where other.level > band.level {
      taken += other.counters.snapshot.active * other.watch.awakeShare
    }
    return taken + Band.wholeShare / 4 >= PoolSize.width * Band.wholeShare
  }
}

extension Band {
  fileprivate static let wholeShare = 1 << 16

  /// Looks whether one of the active workers sleeps: those in short calls leave their processors to others, and go on
  /// before they are given up.
  fileprivate func estimateAwakeShare(look: Int) {
    var place = look % max(counters.snapshot.active, 1)
    for worker in workers where worker.pointee.isActive {
      defer { place -= 1 }
      // ORDERING: relaxed; 0 until the thread has started.
      let thread = worker.pointee.thread.load(ordering: .relaxed)
      guard place == 0, thread != 0 else { continue }
      let now = SystemThread.isAsleep(thread) ?? false ? 0 : Self.wholeShare
      watch.awakeShare += (now - watch.awakeShare) / 32
    }
  }
}

extension Runtime {
  /// The levels whose entries wait. A hint.
  fileprivate static var waitingLevels: LevelSet {
    var levels = LevelSet()
    for band in shared.bands {
      for root in band.roots {
        root._withUnsafeGuaranteedRef { if $0.hasWork { levels.insert($0.level) } }
      }
    }
    return levels
  }
}

extension WorkerRecord {
  // ORDERING: relaxed; a sample.
  fileprivate var isActive: Bool { Status.isActive(status.load(ordering: .relaxed)) }
}

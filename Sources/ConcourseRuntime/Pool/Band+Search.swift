// The search of a worker that finds nothing in its roots. The next entry mostly comes within microseconds, and a worker
// that still looks then needs no wake-up. Meanwhile it takes what other workers keep and do not begin.

extension Band {
  /// Searches for a moment before the worker parks.
  /// - Returns: whether there is something to take.
  func search(_ worker: WorkerPointer, searching: inout Bool) -> Bool {
    // ORDERING: relaxed; the worker's own.
    if !searching {
      worker.pointee.deferral.runDry(progress: worker.pointee.progress.load(ordering: .relaxed))
    }
    // First: a worker that does not park because another shard needs help must give it.
    if searching && shard.isOneOfSeveral && relieveNeighbour() { return true }
    // The next event wakes the thread that waits for it; a search here would only delay it.
    // ORDERING: relaxed; the worker's own.
    if worker.pointee.eventService.isOn.load(ordering: .relaxed) { return recallBatch(besides: worker) }
    if leavesWork(worker) { return false }
    if !searching {
      // One searcher for two active workers is enough to find work, and does not disturb them.
      let now = counters.snapshot
      if now.searching > 0 && now.searching * 2 >= now.active { return false }
      counters.apply(.init(searching: 1))
      searching = true
    }
    var round = 0
    var candidate: Overdue?
    let found = Spin.wait(rounds: Spin.searchRounds) {
      if hasWork { return true }
      round += 1
      // A long spin only looks for work. What follows reads what other workers write.
      if round > 2 * Spin.searchRounds { return false }
      if shard.isOneOfSeveral && round % 16 == 1 && relieveNeighbour() { return true }
      if round % 16 == 0 {
        if let candidate, steal(candidate, for: worker) { return true }
        candidate = overdueCandidate(besides: worker)
        return recallBatch(besides: worker)
      }
      return false
    }
    return found || recallBatch(besides: worker)
  }

  /// Whether this worker leaves runnable entries to another, active worker. Both have lately made short entries
  /// runnable, one after the other; taking turns would cost more than the entries.
  func leavesWork(_ worker: WorkerPointer) -> Bool {
    DeferringWorkers.includes(worker) && deferring.includesOther(than: worker)
  }

  /// A queue that another worker keeps, and that worker's progress when it was seen.
  struct Overdue {
    let owner: WorkerPointer
    let progress: UInt32
  }

  func overdueCandidate(besides worker: WorkerPointer) -> Overdue? {
    for other in workers where other != worker {
      // ORDERING: relaxed; hints, confirmed by the exchange in `steal`.
      if other.pointee.kept.load(ordering: .relaxed) != nil {
        return Overdue(owner: other, progress: other.pointee.progress.load(ordering: .relaxed))
      }
    }
    return nil
  }

  /// Takes over the queue that a worker keeps, if the worker has begun no entry since.
  func steal(_ overdue: Overdue, for worker: WorkerPointer) -> Bool {
    // ORDERING: relaxed; a hint, as above.
    guard overdue.owner.pointee.progress.load(ordering: .relaxed) == overdue.progress else { return false }
    // ORDERING: acquiring; pairs with the exchange in `keep`.
    guard let node = overdue.owner.pointee.kept.exchange(nil, ordering: .acquiring) else { return false }
    // This worker's own slot is empty: it is searching. Between the two exchanges neither slot has the queue, so the
    // monitor may have gone to sleep, and this worker may run something else first. `keep` wakes the monitor.
    keep(node, on: worker)
    return true
  }
}

internal import CConcourse

/// How often a worker departs from its usual order, in entries that it begins. ROOTS.md states the bounds that follow
/// for each class. The model has smaller numbers, so that short floods show a starved class.
///
/// The usual order is: the queue that the worker keeps, then the most urgent root. Without a departure, two queues
/// that hand an item back and forth keep every root waiting, and a root that never runs dry keeps those below it
/// waiting.
enum Fairness {
  /// After this many entries a root goes first, another one each time.
  static var rootPeriod: UInt32 {
    @inline(__always) get { Tuning.value(61, inModel: 3) }
  }
  /// After this many entries a root that is more urgent than the kept queue goes before it.
  static var slotPeriod: UInt32 {
    @inline(__always) get { Tuning.value(8, inModel: 2) }
  }
}

extension Band {
  /// The life of a worker: take, run, search, park. At the start it is counted as active and searching.
  func runWorker(_ worker: WorkerPointer) {
    CurrentThread.state.pointee.worker = UnsafeMutableRawPointer(worker)
    CurrentThread.state.pointee.roots = UInt32(shard.firstRoot)
    var searching = true
    while true {
      // ORDERING: relaxed; the worker's own, and set by the monitor.
      let attention = worker.pointee.attention.load(ordering: .relaxed)
      if attention != WorkerRecord.Attention.limit || !isOneTooMany(worker) {
        if let found = attention == WorkerRecord.Attention.none ? take(worker) : takeByShare(worker) {
          if searching {
            searching = false
            SystemThread.adoptSignals()
            stopSearching(worker)
          }
          run(found, worker)
          continue
        }
        if search(worker, searching: &searching) { continue }
      }
      guard park(worker, searching: searching) else { break }
      searching = true
    }
    CurrentThread.state.pointee.worker = nil
  }

  // MARK: Take

  /// The next entry: the kept queue, else the oldest entry of the most urgent root. `Fairness` says how often a root
  /// goes first.
  @inline(__always)
  private func take(_ worker: WorkerPointer) -> Found? {
    // ORDERING: relaxed; this thread is the only writer.
    let turn = worker.pointee.progress.load(ordering: .relaxed)
    if turn % Fairness.rootPeriod == 0 {
      SystemThread.adoptSignals()
      let round = turn / Fairness.rootPeriod
      // In turn with the roots of this shard.
      if shard.isOneOfSeveral && round % 2 == 1, let found = takeFromNeighbour(round / 2) { return found }
      if let found = takeInRotation(round, worker) { return found }
    }
    // ORDERING: relaxed; only a look, so that the worker does not write an empty slot.
    if worker.pointee.kept.load(ordering: .relaxed) != nil {
      // ORDERING: acquiring; the monitor or a searcher may have taken it: the thread that gets the node runs it.
      if let node = worker.pointee.kept.exchange(nil, ordering: .acquiring) {
        if turn % Fairness.slotPeriod == 0, let urgent = takeMoreUrgent(than: node, worker) { return urgent }
        return Found(node: node, root: nil)
      }
    }
    if shard.isOneOfSeveral { return takeOfSeveral(worker) }
    for root in roots {
      if let node = root._withUnsafeGuaranteedRef({ $0.take() }) { return Found(node: node, root: root) }
    }
    return nil
  }

  /// The oldest entry of the first root that has any, beginning with another root each time.
  @inline(never)
  private func takeInRotation(_ round: UInt32, _ worker: WorkerPointer) -> Found? {
    let first = Int(round) % roots.count
    for offset in 0..<roots.count {
      let root = roots[(first + offset) % roots.count]
      if let node = root._withUnsafeGuaranteedRef({ takeNext(of: $0, worker) }) {
        return Found(node: node, root: root)
      }
    }
    return nil
  }

  /// The oldest entry of a root more urgent than `kept`, which then goes back to the slot that it came from.
  @inline(never)
  private func takeMoreUrgent(than kept: NodePointer, _ worker: WorkerPointer) -> Found? {
    for root in roots {
      guard root._withUnsafeGuaranteedRef({ $0.level }) > kept.pointee.level.served else { return nil }
      guard let node = root._withUnsafeGuaranteedRef({ takeNext(of: $0, worker) }) else { continue }
      keep(kept, on: worker)
      return Found(node: node, root: root)
    }
    return nil
  }

  /// As `take`, while levels compete: the entry of the level that has paid least, the most urgent of several.
  @inline(never)
  private func takeByShare(_ worker: WorkerPointer) -> Found? {
    // ORDERING: relaxed; this thread is the only writer.
    let turn = worker.pointee.progress.load(ordering: .relaxed)
    // The rotation of a new record begins with the most urgent root. A worker that takes the place of one that computes
    // without end has a new record, and would leave the level whose turn it is to the next one.
    guard turn == 0 || turn % Fairness.rootPeriod != 0,
      monitor._withUnsafeGuaranteedRef({ $0.shares.levelsCompete })
    else { return noteLevel(of: take(worker), worker) }
    release(batch: worker)
    // ORDERING: relaxed, then acquiring; as in `take`.
    let kept =
      worker.pointee.kept.load(ordering: .relaxed) == nil
      ? nil : worker.pointee.kept.exchange(nil, ordering: .acquiring)
    let keptLevel = kept?.pointee.level.served
    var (next, least) = (Unmanaged<RootQueue>?.none, Int64.max)
    for root in roots {
      let (level, waits) = root._withUnsafeGuaranteedRef { ($0.level, $0.hasWork) }
      let paid = monitor._withUnsafeGuaranteedRef { $0.shares[level] }
      if (waits || level == keptLevel) && paid < least { (next, least) = (root, paid) }
    }
    if let kept {
      if next == nil || next?._withUnsafeGuaranteedRef({ $0.level }) == keptLevel {
        return noteLevel(of: Found(node: kept, root: nil), worker)
      }
      keep(kept, on: worker)
    }
    if let next, let node = next._withUnsafeGuaranteedRef({ takeOne(of: $0, worker) }) {
      return noteLevel(of: Found(node: node, root: next), worker)
    }
    return noteLevel(of: take(worker), worker)
  }

  /// Notes for the monitor which level the worker is charged to.
  private func noteLevel(of found: Found?, _ worker: WorkerPointer) -> Found? {
    guard let found else { return nil }
    let level = found.root?._withUnsafeGuaranteedRef { $0.level } ?? found.node.pointee.level.served
    // ORDERING: relaxed; a sample for the monitor.
    worker.pointee.level.store(level, ordering: .relaxed)
    return found
  }

  struct Found {
    let node: NodePointer
    /// The root it came from; nil for a queue that the worker kept.
    let root: Unmanaged<RootQueue>?
  }

  // MARK: Run

  @inline(__always)
  private func run(_ found: Found, _ worker: WorkerPointer) {
    // ORDERING: relaxed; the monitor only compares it with what it saw before.
    worker.pointee.progress.store(
      worker.pointee.progress.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
    if found.root != nil { worker.pointee.deferral.settle() }
    follow(found.node.pointee.level, worker)
    found.node.run(for: found.root?._withUnsafeGuaranteedRef { $0.client })
    // ORDERING: relaxed; only the monitor writes another value, and the compare-exchange confirms it.
    if worker.pointee.status.load(ordering: .relaxed) != WorkerRecord.Status.active { rejoin(worker) }
  }

  /// Counts this worker as active again: the monitor had given it up. Or the thread is in a forked child.
  @inline(never)
  private func rejoin(_ worker: WorkerPointer) {
    WorkerThread.requirePool()
    workerDidWait(worker)
  }

  /// A worker has finished a few entries of less than this many nanoseconds before another worker wakes up.
  private static let shortEvent: UInt32 = 50_000

  /// Ends the worker's search when it has found something. If it was the last to search and there is more,
  /// another worker must search in its place.
  ///
  /// A worker that serves events with short handlers has finished a handful of them before another worker wakes
  /// up, and its next handful becomes larger. So it wakes no worker: the monitor posts what is left after a tick.
  private func stopSearching(_ worker: WorkerPointer) {
    let now = counters.apply(.init(searching: -1))
    // ORDERING: relaxed; the worker's own.
    if shard.isOneOfSeveral {
      worker.pointee.batch.searchEnded(progress: worker.pointee.progress.load(ordering: .relaxed))
    }
    guard now.searching == 0 else { return }
    guard hasWorkInTotalOrder else { return passHelpOn(now) }
    // ORDERING: relaxed; the worker's own.
    if worker.pointee.eventService.isOn.load(ordering: .relaxed)
      && worker.pointee.eventService.cost.isBelow(Self.shortEvent)
      && monitor._withUnsafeGuaranteedRef({ $0.hasThread })
    {
      monitor._withUnsafeGuaranteedRef { $0.watch() }
    } else {
      noteWork()
    }
  }

  // MARK: Park

  /// Whether more workers are active than the limit allows, because this one came back from a wait in which it
  /// was replaced, or the limit has become smaller. It then parks, and leaves its kept queue to the others.
  private func isOneTooMany(_ worker: WorkerPointer) -> Bool {
    guard counters.snapshot.active > activeLimit else {
      let shares = !isLowered && monitor._withUnsafeGuaranteedRef { $0.shares.levelsCompete }
      // ORDERING: relaxed; the worker's own. While levels compete, the monitor sets it again at each look.
      worker.pointee.attention.store(
        shares ? WorkerRecord.Attention.shares : WorkerRecord.Attention.none, ordering: .relaxed)
      return false
    }
    // As in `search`, which this worker skips.
    // ORDERING: relaxed; the worker's own.
    worker.pointee.deferral.runDry(progress: worker.pointee.progress.load(ordering: .relaxed))
    release(kept: worker)
    return true
  }

  /// Sleeps until there is work; ends the worker if none comes for long. Pool/README.md shows that no work is left
  /// behind.
  /// - Returns: false when the thread must end.
  func park(_ worker: WorkerPointer, searching: Bool) -> Bool {
    worker.pointee.notePark()
    // ORDERING: sequentially consistent; comes before the look at the lists, for workers that leave work to this one
    // (`leavesWork`). The other partner is the monitor's compare-exchange: if it has just given this worker up, it has
    // already taken it out of `active`.
    let before = worker.pointee.status.exchange(WorkerRecord.Status.parked, ordering: .sequentiallyConsistent)
    if before == WorkerRecord.Status.stuck { counters.apply(.init(active: 1)) }
    // Events are for workers of normal priority. One of them waits for events, and is woken last for other work.
    // (A shard whose part has become 0 could not run what events bring.)
    var seat = isLowered || activeLimit == 0 ? nil : Runtime.eventDriver
    if seat?.takeSeat() != true { seat = nil }
    let polls = seat != nil
    idleLock.withLock {
      // ORDERING: relaxed; under the lock.
      worker.pointee.eventService.isPolling.store(polls, ordering: .relaxed)
      idle.insert(worker, at: polls ? 0 : idle.count)
      counters.apply(.init(active: -1, searching: searching ? -1 : 0, parked: 1))
    }
    // After the announcement, look once more. Work that was put in before the announcement is seen here; a
    // producer that puts work in after it sees the announcement. Likewise with a shard that asks for help.
    if hasWorkInTotalOrder || shard.isOneOfSeveral && neighbourNeedsHelp {
      if !leavesWork(worker) && counters.snapshot.active < activeLimit {
        if leaveIdle(worker, retire: false) {
          seat?.leaveSeat()
          return resume(worker)
        }
      } else {
        // The limit is reached, or the work is left to another worker. The producer may have relied on this worker's
        // search, so the monitor must watch whether the active workers make progress.
        monitor._withUnsafeGuaranteedRef { $0.watch() }
        if shard.isOneOfSeveral && hasWork { askForHelp() }
      }
    }
    if let seat { return waitForEvents(worker, on: seat) }
    return waitToBeWoken(worker)
  }

  private func waitToBeWoken(_ worker: WorkerPointer) -> Bool {
    if Recording.isOn { Recording.threadParked() }
    defer { if Recording.isOn { Recording.threadWoken() } }
    if !worker.pointee.event.park(until: .uptime(Clock.uptime() &+ PoolSize.idleLifetime)) {
      if !SystemThread.endMayCancelRequests && leaveIdle(worker, retire: true) { return false }
      // This worker stays, or a waker has just taken it off the idle list: its signal is on its way.
      _ = worker.pointee.event.park(until: .never)
    }
    worker.pointee.event.reset()
    // ORDERING: relaxed; the worker's own.
    worker.pointee.eventService.isOn.store(false, ordering: .relaxed)
    return resume(worker)
  }

  /// Sets the status of a worker that is counted as active again.
  private func resume(_ worker: WorkerPointer) -> Bool {
    // ORDERING: releasing; pairs with the monitor's acquiring look.
    worker.pointee.status.store(WorkerRecord.Status.active, ordering: .releasing)
    return true
  }

  /// Waits in the kernel for events, and handles them as an active worker, which next runs what they make
  /// runnable.
  private func waitForEvents(_ worker: WorkerPointer, on driver: any EventDriver) -> Bool {
    var (stays, delivers) = (true, false)
    // ORDERING: relaxed, both; the worker's own.
    let progress = worker.pointee.progress.load(ordering: .relaxed)
    if worker.pointee.eventService.isOn.load(ordering: .relaxed) {
      worker.pointee.eventService.cost.end(progress: progress)
    }
    if Recording.isOn { Recording.threadParked() }
    driver.pollAsWorker(milliseconds: Int32(PoolSize.idleLifetime / 1_000_000)) { end in
      let hasEvents = end != .timeOut
      if Recording.isOn { Recording.threadWoken() }
      // Before a retired record can get another thread.
      // ORDERING: relaxed; the worker's own.
      worker.pointee.eventService.isOn.store(hasEvents, ordering: .relaxed)
      let retires = !hasEvents && driver.hasThread && !SystemThread.endMayCancelRequests
      if leaveIdle(worker, retire: retires) {
        stays = !retires
        if stays { worker.pointee.eventService.cost.begin(progress: progress) }
        // The worker has become active without a check of the limit.
        // ORDERING: relaxed; the worker's own.
        if stays { worker.pointee.attention.store(WorkerRecord.Attention.limit, ordering: .relaxed) }
      } else {
        // A waker has taken this worker off the idle list.
        _ = worker.pointee.event.park(until: .never)
        worker.pointee.event.reset()
        // ORDERING: relaxed; the worker's own.
        worker.pointee.eventService.isOn.store(false, ordering: .relaxed)
      }
      // A worker with events does not retire.
      delivers = end == .events
      // What the events make runnable goes to the roots: this worker searches them next. `keep` would wake the monitor.
      CurrentThread.state.pointee.worker = nil
      if stays { CurrentThread.state.pointee.delivering = UnsafeMutableRawPointer(worker) }
      if delivers { beginDelivery(worker) } else if stays { _ = resume(worker) }
    }
    CurrentThread.state.pointee.delivering = nil
    CurrentThread.state.pointee.worker = UnsafeMutableRawPointer(worker)
    if delivers { endDelivery(worker) }
    return stays
  }

  /// The worker is about to handle events, counted as active and searching.
  ///
  /// Producers rely on its search, which begins when it has handled them. So work that waits meanwhile is for the monitor,
  /// in case the worker blocks: either a producer sees the delivery (`noteWork`), or this look sees what it has put in.
  func beginDelivery(_ worker: WorkerPointer) {
    // ORDERING: releasing; as in `resume`.
    worker.pointee.status.store(WorkerRecord.Status.delivering, ordering: .releasing)
    // ORDERING: sequentially consistent; closes the store→load race with a producer (push, then look at `deliveries`).
    deliveries.wrappingAdd(1, ordering: .sequentiallyConsistent)
    if hasWorkInTotalOrder { monitor._withUnsafeGuaranteedRef { $0.watch() } }
  }

  /// The worker, which goes on searching, has handled the events.
  private func endDelivery(_ worker: WorkerPointer) {
    // ORDERING: relaxed; a producer that sees it late wakes the monitor in vain.
    deliveries.wrappingSubtract(1, ordering: .relaxed)
    // ORDERING: acquiring and releasing; the partner is the monitor's compare-exchange: if it has given the worker up, it
    // has taken it out of both counts.
    let found = worker.pointee.status.compareExchange(
      expected: WorkerRecord.Status.delivering, desired: WorkerRecord.Status.active,
      ordering: .acquiringAndReleasing)
    if !found.exchanged {
      rejoin(worker, as: WorkerRecord.Status.active, counts(WorkerRecord.Status.delivering))
    }
  }

  /// Takes a worker off the idle list.
  /// - Returns: false if a waker has done so.
  private func leaveIdle(_ worker: WorkerPointer, retire: Bool) -> Bool {
    idleLock.withLock {
      guard let place = idle.lastIndex(of: worker) else { return false }
      idle.remove(at: place)
      if retire {
        counters.apply(.init(parked: -1, threads: -1))
        retireRecord(worker)
      } else {
        counters.apply(.init(active: 1, searching: 1, parked: -1))
      }
      return true
    }
  }
}

extension UnsafeMutablePointer where Pointee == WorkNode {
  /// Runs the entry, which the caller has taken from a root.
  /// - Parameter client: what the root has for its client; nil for an entry that the worker kept.
  @inline(__always)
  func run(for client: UnsafeMutableRawPointer?) {
    concourse_run_entry(pointee.kind.rawValue, UnsafeMutableRawPointer(self), client)
  }
}

/// The workers of one kernel priority in one shard, and the root queues that they serve.
///
/// A thread without privilege can raise its nice value but never lower it again, and a thread that it makes inherits the
/// value. So threads never change bands, and a lowered thread must ask the monitor to create workers of a higher band
/// (Band+Threads.swift). It creates them itself only if the system has refused the monitor's thread.
/// Priority.swift has the priorities, and what a privileged process can do.
package final class Band {
  let name: StaticString
  /// The level that sets the priority of its threads.
  let level: QoSLevel
  package let priority: Priority
  let counters = BandCounters()
  /// The root queues, the most urgent first. Never released, see `Runtime.roots`.
  private(set) var roots = UnsafeMutableBufferPointer<Unmanaged<RootQueue>>(start: nil, count: 0)
  /// The monitor of the process.
  let monitor: Unmanaged<Monitor>

  /// Guards the idle list: a worker is in `idle` exactly while it may be woken.
  let idleLock = Lock(.idleWorkers)
  @exclusivity(unchecked) var idle: [WorkerPointer] = []
  var freeRecords: [WorkerPointer] = []
  /// The record of the newest thread, with which the list of records begins. Written under `idleLock`.
  let newestRecord = Atomic<WorkerPointer?>(nil)
  /// The number of entries that records outside the list count as begun, modulo 2^32. Written under `idleLock`.
  let begunByFormer = Atomic<UInt32>(0)
  let deferring = DeferringWorkers()
  /// How many workers handle events. A forked child may keep a count: it has no workers, and traps.
  let deliveries = Atomic<Int>(0)
  /// The band's place among the shards. Set while the runtime is made.
  @exclusivity(unchecked) private(set) var shard: Shard

  init(name: StaticString, level: QoSLevel, _ priority: Priority, _ monitor: Monitor, shard: Int = 0) {
    self.name = name
    self.level = level
    self.priority = priority
    self.monitor = .passRetained(monitor)
    self.shard = Shard(number: shard)
  }

  /// Makes the bands of the other shards known, the nearest first, and the mask that they share.
  func join(_ neighbours: UnsafeBufferPointer<Unmanaged<Band>>, _ overloaded: OverloadedShards) {
    (shard.neighbours, shard.overloaded) = (neighbours, overloaded)
  }

  /// Adds a root to those that the band serves. Call with the most urgent first.
  func serve(_ root: Unmanaged<RootQueue>) {
    let more = UnsafeMutableBufferPointer<Unmanaged<RootQueue>>.allocate(capacity: roots.count + 1)
    _ = more.initialize(fromContentsOf: roots)
    more.initializeElement(at: roots.count, to: root)
    roots.deallocate()
    roots = more
  }

  /// The number of active workers allowed beyond the width, because as many others sleep in calls unknown to the
  /// engine. Written by the monitor alone (Monitor+Replacement.swift).
  let allowance = Atomic<Int>(0)
  /// Whether the band's level has had more than its share (Monitor+Shares.swift). Written by the monitor alone.
  let heldBack = Atomic<Bool>(false)
  let watch = BandWatch()

  /// The nice value of its threads, relative to that of the process.
  var difference: Int32 { priority.nice(at: level) - priority.nice(at: .default) }

  /// Whether the band serves levels below default, and no events.
  var isLowered: Bool { level < .default }

  // ORDERING: relaxed; see `activeLimit`.
  var isHeldBack: Bool { heldBack.load(ordering: .relaxed) }

  /// How many workers may be active at once.
  var activeLimit: Int {
    // ORDERING: relaxed, both; hints for decisions. The monitor posts what waits in a band after it has let it go.
    @inline(__always) get {
      heldBack.load(ordering: .relaxed) ? 0 : shard.width &+ allowance.load(ordering: .relaxed)
    }
  }

  /// Whether work waits in a root. A hint.
  var hasWork: Bool {
    for root in roots where root._withUnsafeGuaranteedRef({ $0.hasWork }) { return true }
    return false
  }

  /// As `hasWork`, ordered against the announcements of workers and the monitor (Pool/README.md).
  var hasWorkInTotalOrder: Bool {
    for root in roots where root._withUnsafeGuaranteedRef({ $0.hasWorkInTotalOrder }) { return true }
    return false
  }

  /// Whether a worker would find an entry that was promised a thread.
  var hasPromisedEntry: Bool {
    // ORDERING: relaxed; see `hasPromised`.
    guard Runtime.shared.hasPromised.load(ordering: .relaxed) else { return false }
    for root in roots where root._withUnsafeGuaranteedRef({ $0.hasPromisedEntry }) { return true }
    return false
  }

  // MARK: Work has come

  /// Makes sure that a worker finds work that has been put into a root.
  @inline(__always)
  func noteWork() {
    let now = counters.snapshot
    // A searching worker finds it, and wakes the next one if there is more.
    if now.searching > 0 { return noteDelivery() }
    if now.active < activeLimit { return wakeOne() }
    monitor._withUnsafeGuaranteedRef { $0.watch() }
    if shard.isOneOfSeveral { askForHelp() }
  }

  /// The worker that is relied on may handle events first, and block: the monitor watches. What a delivery itself puts in
  /// does not wake the monitor: nothing is expected to block there, and each event would pay for it.
  @inline(__always)
  private func noteDelivery() {
    // ORDERING: sequentially consistent; see `beginDelivery`.
    if deliveries.load(ordering: .sequentiallyConsistent) > 0, WorkerThread.delivering == nil {
      monitor._withUnsafeGuaranteedRef { $0.watch() }
    }
  }

  /// As `noteWork`, for an item that has been put into a root; the calling worker may defer it.
  @inline(__always)
  func noteItem() {
    if let worker = WorkerThread.current,
      worker.pointee.band.toOpaque() == Unmanaged.passUnretained(self).toOpaque()
    {
      guard monitor._withUnsafeGuaranteedRef({ $0.hasThread }) else { return noteFirstItem(worker) }
      // ORDERING: relaxed; the worker's own.
      let progress = worker.pointee.progress.load(ordering: .relaxed)
      let isNew = !worker.pointee.deferral.isRecent(progress: progress)
      if worker.pointee.deferral.defers(progress: progress) {
        if isNew { deferring.begins(worker) }
        return monitor._withUnsafeGuaranteedRef { $0.watch() }
      }
    }
    noteWork()
  }

  /// As `noteItem`, until the monitor's thread runs. The pool's only worker defers one item of each entry, however long the
  /// entry may go on: a program that begins with a chain of items then needs no second worker, whose start takes longer than
  /// such a chain.
  @inline(never)
  private func noteFirstItem(_ worker: WorkerPointer) {
    guard PoolSize.threadCount == 1, worker.pointee.deferral.defersFirst() else { return noteWork() }
    monitor._withUnsafeGuaranteedRef { $0.watch() }
    // The system may refuse the monitor's thread.
    if monitor._withUnsafeGuaranteedRef({ $0.isAbsent }) { noteWork() }
  }

  /// Wakes or makes a worker.
  @inline(never)
  package func wakeOne() {
    Runtime.requireThreads("submitting work")
    idleLock.lock()
    let now = counters.snapshot
    // As in `noteWork`. A worker that an event has woken may search meanwhile.
    guard now.searching == 0 else { return idleLock.unlock() }
    guard now.active < activeLimit else {
      idleLock.unlock()
      // If all active workers stay busy, none looks for this work soon. The monitor does.
      monitor._withUnsafeGuaranteedRef { $0.watch() }
      if shard.isOneOfSeveral && hasWork { askForHelp() }
      return
    }
    if let worker = idle.popLast() {
      counters.apply(.init(active: 1, searching: 1, parked: -1))
      // ORDERING: relaxed; under the lock.
      let isPolling = worker.pointee.eventService.isPolling.load(ordering: .relaxed)
      idleLock.unlock()
      worker.pointee.event.signal()
      if isPolling { Runtime.eventDriver?.interrupt() }
      return
    }
    if !PoolSize.widthIsSettled && (now.threads > 0 || shard.isOneOfSeveral && PoolSize.threadCount > 0) {
      // The CPU quota matters from the second worker on.
      idleLock.unlock()
      if PoolSize.settleWidth() { monitor._withUnsafeGuaranteedRef { $0.stepBackEverywhere() } }
      return wakeOne()
    }
    // ORDERING: relaxed; a hint for decisions.
    let limit = watch.starvationLimit.load(ordering: .relaxed)
    guard PoolSize.mayGrow(band: now.threads, width: shard.width, starvationLimit: limit) else {
      idleLock.unlock()
      // At the cap, all threads wait or are stuck: the first to come back looks. The monitor asks again for a
      // thread that was refused.
      askForHelpWithoutThread()
      monitor._withUnsafeGuaranteedRef { $0.watch() }
      return
    }
    counters.apply(.init(active: 1, searching: 1, threads: 1))
    idleLock.unlock()
    spawn()
  }

  /// Keeps a queue that a worker has made runnable, for that worker to run next.
  func keep(_ node: NodePointer, on worker: WorkerPointer) {
    // ORDERING: sequentially consistent; publishes the node to a searcher's exchange, and comes before the look
    // at whether the monitor is awake (Pool/MONITOR.md).
    if let displaced = worker.pointee.kept.exchange(node, ordering: .sequentiallyConsistent) {
      // Two runnable queues are work for two workers.
      root(at: displaced.pointee.level)._withUnsafeGuaranteedRef { $0.push(displaced) }
    }
    // No other worker is woken. If this one does not run the queue soon, the monitor moves it.
    monitor._withUnsafeGuaranteedRef { $0.watch() }
  }

  // MARK: A worker waits

  /// Notes that a worker is about to sleep in one of the engine's waits. One that delivers events no longer counts as
  /// searching: what comes meanwhile needs another worker.
  func workerWillWait(_ worker: WorkerPointer) {
    // ORDERING: sequentially consistent, as in `park`; the other partner is the monitor's compare-exchange, so that
    // the worker is subtracted from the counts exactly once.
    let before = worker.pointee.status.exchange(
      WorkerRecord.Status.waiting, ordering: .sequentiallyConsistent)
    if WorkerRecord.Status.isActive(before) { counters.apply(counts(before, -1)) }
    release(kept: worker)
    if hasWorkInTotalOrder { noteWork() }
  }

  /// Notes that the wait is over. For a moment more workers than the limit may be active: this one parks after its
  /// entry if they still are.
  /// - Parameter status: What it goes on with: active, or delivering events.
  func workerDidWait(_ worker: WorkerPointer, as status: UInt32 = WorkerRecord.Status.active) {
    rejoin(worker, as: status, counts(status))
  }

  /// Counts a worker that is not counted as active, and sets its status.
  func rejoin(_ worker: WorkerPointer, as status: UInt32, _ counts: BandCounters.Change) {
    // Count the worker first: as soon as the status is active, the monitor may subtract it again.
    counters.apply(counts)
    // ORDERING: releasing; pairs with the monitor's acquiring look.
    worker.pointee.status.store(status, ordering: .releasing)
    // ORDERING: relaxed; the worker's own.
    worker.pointee.attention.store(WorkerRecord.Attention.limit, ordering: .relaxed)
  }

  /// What one worker more, or less, changes that is active or delivers events.
  func counts(_ status: UInt32, _ number: Int = 1) -> BandCounters.Change {
    .init(active: number, searching: status == WorkerRecord.Status.delivering ? number : 0)
  }

  /// Moves the queue that a worker keeps, and its batch, to their roots, where other workers find them.
  /// - Parameter waits: As for `release(batch:)`.
  /// - Returns: whether there was anything.
  @discardableResult
  func release(kept worker: WorkerPointer, waits: Bool = true) -> Bool {
    let hadBatch = release(batch: worker, waits: waits)
    // ORDERING: acquiring; pairs with the exchange in `keep`.
    guard let node = worker.pointee.kept.exchange(nil, ordering: .acquiring) else { return hadBatch }
    root(at: node.pointee.level)._withUnsafeGuaranteedRef { $0.push(node) }
    return true
  }

  /// The root of this shard for a level.
  func root(at level: QoSLevel) -> Unmanaged<RootQueue> {
    Runtime.rootTable[shard.firstRoot + Int(level.rawValue)]
  }
}

// SAFETY: `idle` and `freeRecords` are GUARDED BY `idleLock`, `roots`, `shard` and `monitor` are set once while the
// runtime is made, the rest is atomic or constant.
extension Band: @unchecked Sendable {}

extension Band {
  /// Starts a worker that has been counted as active and searching.
  ///
  /// A new thread inherits the nice value of the thread that makes it, and can never raise itself. So a lowered thread
  /// asks the monitor to make the thread.
  func spawn() {
    if Runtime.shared.monitor.mustCreateThreads(at: difference) {
      // ORDERING: sequentially consistent; comes before the look at whether the monitor is awake, whose last
      // look before it sleeps comes after its announcement (Pool/MONITOR.md).
      watch.wantedThreads.wrappingAdd(1, ordering: .sequentiallyConsistent)
      Runtime.shared.monitor.watch()
    } else {
      startThread()
    }
  }

  /// Starts the workers that lowered threads asked for. Called by the monitor.
  func startWantedThreads() {
    // ORDERING: acquiring; pairs with the addition in `spawn`.
    for _ in 0..<watch.wantedThreads.exchange(0, ordering: .acquiring) { startThread() }
  }

  private func startThread() {
    let worker = takeRecord()
    // The monitor comes second: if the system grants only one thread, that must be a worker. A band's only worker needs
    // no monitor: work that waits behind it starts one. But a lowered worker cannot make the monitor's thread.
    let needsMonitor = difference > 0 || counters.snapshot.threads > 1
    defer { if needsMonitor { monitor._withUnsafeGuaranteedRef { $0.ensureStarted() } } }
    let failure = Runtime.startThread(
      { argument in
        let worker = argument!.assumingMemoryBound(to: WorkerRecord.self)
        let band = worker.pointee.band.takeUnretainedValue()
        SystemThread.setName(band.name)
        SystemThread.beginWorker()
        // ORDERING: relaxed; see `lacksWorkers`.
        Runtime.shared.lacksWorkers.store(false, ordering: .relaxed)
        band.adoptPriority(worker)
        // ORDERING: relaxed; read by the monitor, which tolerates a stale id.
        worker.pointee.thread.store(CurrentThread.id, ordering: .relaxed)
        // ORDERING: relaxed; as above.
        worker.pointee.state.store(UInt(bitPattern: CurrentThread.state), ordering: .relaxed)
        if Recording.isOn { Recording.threadMade(band.level) }
        band.runWorker(worker)
        return nil
      }, worker)
    guard failure != 0 else { return }
    // The work stays in its root. The monitor looks every millisecond and asks for a thread again.
    // ORDERING: acquiring and releasing; the monitor may have given up the record whose thread was refused.
    let before = worker.pointee.status.exchange(WorkerRecord.Status.absent, ordering: .acquiringAndReleasing)
    idleLock.withLock {
      counters.apply(
        .init(active: before == WorkerRecord.Status.active ? -1 : 0, searching: -1, threads: -1))
      retireRecord(worker)
    }
    if Runtime.shared.bands.allSatisfy({ $0.counters.snapshot.threads == 0 }) {
      // ORDERING: relaxed; see `lacksWorkers`.
      Runtime.shared.lacksWorkers.store(true, ordering: .relaxed)
    }
    askForHelpWithoutThread()
    Runtime.shared.monitor.watch()
    Self.reportFailure(failure)
  }

  private static func reportFailure(_ failure: Int32) {
    // ORDERING: relaxed, both; they only decide who prints.
    guard !Runtime.shared.refusalIsReported.exchange(true, ordering: .relaxed) else { return }
    // The caller may be the monitor, which must not wait for a reader of standard error.
    let isReported = Trap.tryToWarn(
      "the system refused a worker thread (errno \(failure)); work waits until a thread can be had")
    if !isReported { Runtime.shared.refusalIsReported.store(false, ordering: .relaxed) }
  }

  /// A record for a thread that is about to be made.
  func takeRecord() -> WorkerPointer {
    idleLock.withLock {
      let worker: WorkerPointer
      if let free = freeRecords.popLast() {
        worker = free
      } else {
        worker = .allocate(capacity: 1)
        worker.initialize(to: WorkerRecord(band: self))
      }
      worker.pointee.event.reset()
      worker.pointee.notePark()
      let shares = !isLowered && monitor._withUnsafeGuaranteedRef { $0.shares.levelsCompete }
      // ORDERING: relaxed, both; the thread made next is the only reader, and the monitor may set the first.
      worker.pointee.attention.store(
        shares ? WorkerRecord.Attention.shares : WorkerRecord.Attention.none, ordering: .relaxed)
      // ORDERING: relaxed, all three; as above. The kernel may have given an earlier thread's id to another thread.
      worker.pointee.eventService.isOn.store(false, ordering: .relaxed)
      worker.pointee.thread.store(0, ordering: .relaxed)
      worker.pointee.watch.looksWithoutProgress.store(0, ordering: .relaxed)
      // ORDERING: releasing; when the monitor sees `active`, it also sees the fields set above.
      worker.pointee.status.store(WorkerRecord.Status.active, ordering: .releasing)
      link(worker)
      return worker
    }
  }

  /// Puts back a record whose thread has ended or was never started. Call under `idleLock`.
  func retireRecord(_ worker: WorkerPointer) {
    // ORDERING: relaxed; under the lock, and the monitor tolerates a stale status.
    worker.pointee.status.store(WorkerRecord.Status.absent, ordering: .relaxed)
    unlink(worker)
    freeRecords.append(worker)
    PoolSize.threadEnded()
  }
}

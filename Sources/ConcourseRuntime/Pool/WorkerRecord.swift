/// What the band and the monitor know about one worker thread. Records live as long as the band, which lists those that a
/// thread uses; later threads use the others again.
struct WorkerRecord: ~Copyable {
  /// What a worker is doing, and whether it is counted as active.
  enum Status {
    /// No thread uses the record.
    static let absent: UInt32 = 0
    /// Counted as active: runs entries or looks for some.
    static let active: UInt32 = 1
    /// Sleeps in one of the engine's waits; not counted.
    static let waiting: UInt32 = 2
    /// Found by the monitor to make no progress; not counted.
    static let stuck: UInt32 = 3
    /// Idle, asleep until woken; not counted.
    static let parked: UInt32 = 4
    /// Counted as active and searching: handles events, and searches what they have made runnable next.
    static let delivering: UInt32 = 5

    /// Whether a worker with this status is counted as active.
    static func isActive(_ status: UInt32) -> Bool { status == active || status == delivering }
  }

  let band: Unmanaged<Band>
  /// The neighbours in the band's list. A record that has left the list keeps its `older` for those that walk there.
  let older = Atomic<WorkerPointer?>(nil)
  /// GUARDED BY `Band.idleLock`.
  let newer = Atomic<WorkerPointer?>(nil)

  /// The queue that this worker made runnable last. The worker runs it next, unless another thread takes it.
  let kept = Atomic<NodePointer?>(nil)
  /// What it has taken at once, where there are several shards.
  let batch = Batch()
  /// The number of entries that this worker has begun. The monitor compares it with earlier looks.
  let progress = Atomic<UInt32>(0)
  let status = Atomic<UInt32>(Status.absent)
  /// The kernel id of the thread, for the monitor.
  let thread = Atomic<UInt32>(0)
  /// The nice value of that thread, unless it has been refused (Priority.swift).
  let nice = Atomic<Int32>(0)
  /// Wakes the worker when it is parked.
  let event = ThreadEvent()

  // The other fields are atomic only so that one can be written without exclusive access to the record; relaxed.

  /// What the worker looks at before it takes an entry.
  enum Attention {
    /// Nothing.
    static let none: UInt8 = 0
    /// Whether there is one active worker too many: this one was replaced while it waited, the limit has become smaller,
    /// or levels compete.
    static let limit: UInt8 = 1
    /// Which level has paid least: levels compete.
    static let shares: UInt8 = 2
  }
  let attention = Atomic<UInt8>(Attention.none)
  /// The level of the entry that a worker of the default band runs while levels compete.
  let level = Atomic<QoSLevel>(.unspecified)
  /// What `progress` was when the worker last parked, or its thread was made.
  private let progressAtPark = Atomic<UInt32>(0)

  let eventService = EventService()
  /// The entries that the worker pushes without waking another; OWNED BY the worker.
  let deferral = Deferral()

  /// OWNED BY the monitor: what it saw at its last look.
  let seenProgress = Atomic<UInt32>(0)
  /// OWNED BY the monitor: the uptime of the look that saw `seenProgress` first; for `concourse report`.
  let seenSince = Atomic<UInt64>(0)
  let watch = WorkerWatch()
  /// The address of the thread's `concourse_thread`, for CONCOURSE_STRICT. The thread may end at any time, so that memory is
  /// read through the kernel only.
  let state = Atomic<UInt>(0)

  init(band: Band) { self.band = .passUnretained(band) }

  /// The number of entries that the worker has begun since it last parked. A sample for the monitor.
  var begunSincePark: UInt32 {
    // ORDERING: relaxed, both; see `progress`.
    progress.load(ordering: .relaxed) &- progressAtPark.load(ordering: .relaxed)
  }

  /// Notes that the worker parks, or that a thread is about to be made for it.
  func notePark() {
    // ORDERING: relaxed, both; see `progress`.
    progressAtPark.store(progress.load(ordering: .relaxed), ordering: .relaxed)
  }
}

/// The records of a band's threads, the newest thread first.
///
/// Any thread may walk them at any time, since they are never freed. A walk finds each record that stays in the list for the
/// whole walk: from a record that has left the list, `older` still leads to all that were older. It may find a
/// record twice: one that has left the list and come back as the newest leads to the list's beginning.
struct WorkerRecords: Sequence, IteratorProtocol {
  var rest: WorkerPointer?

  mutating func next() -> WorkerPointer? {
    let record = rest
    // ORDERING: acquiring; pairs with the stores in `link` and `unlink`, publishes the older record.
    rest = record?.pointee.older.load(ordering: .acquiring)
    return record
  }
}

extension Band {
  /// The records of the band's threads.
  var workers: WorkerRecords {
    // ORDERING: sequentially consistent; pairs with the store in `link`, publishes the record. A queue that a new worker
    // keeps is seen by the monitor's last look before it sleeps (Pool/MONITOR.md).
    WorkerRecords(rest: newestRecord.load(ordering: .sequentiallyConsistent))
  }

  /// Adds a record to the list. Call under `idleLock`.
  func link(_ worker: WorkerPointer) {
    // ORDERING: relaxed, the three of the lock's holders. The store in `older` is releasing: a walk that stands at this
    // record, which has been in the list before, goes on from there.
    let newest = newestRecord.load(ordering: .relaxed)
    worker.pointee.newer.store(nil, ordering: .relaxed)
    worker.pointee.older.store(newest, ordering: .releasing)
    newest?.pointee.newer.store(worker, ordering: .relaxed)
    // ORDERING: relaxed; a sum to compare with others.
    begunByFormer.wrappingSubtract(worker.pointee.progress.load(ordering: .relaxed), ordering: .relaxed)
    // ORDERING: sequentially consistent; publishes the record to searchers and the monitor, before its thread keeps a
    // queue (`workers`).
    newestRecord.store(worker, ordering: .sequentiallyConsistent)
  }

  /// Takes a record out of the list. Call under `idleLock`.
  func unlink(_ worker: WorkerPointer) {
    // ORDERING: relaxed; as in `link`.
    let (newer, older) = (
      worker.pointee.newer.load(ordering: .relaxed), worker.pointee.older.load(ordering: .relaxed)
    )
    older?.pointee.newer.store(newer, ordering: .relaxed)
    // ORDERING: releasing and sequentially consistent; as in `link`.
    if let newer {
      newer.pointee.older.store(older, ordering: .releasing)
    } else {
      newestRecord.store(older, ordering: .sequentiallyConsistent)
    }
    // ORDERING: relaxed; as in `link`.
    begunByFormer.wrappingAdd(worker.pointee.progress.load(ordering: .relaxed), ordering: .relaxed)
  }
}

typealias WorkerPointer = UnsafeMutablePointer<WorkerRecord>

/// The calling thread as a worker.
enum WorkerThread {
  /// Its record; nil on threads outside the pool, and while a worker delivers events.
  static var current: WorkerPointer? {
    // SAFETY: only `runWorker` and `waitForEvents` of `Band` store in `worker`, and only a WorkerPointer.
    @inline(__always) get { CurrentThread.state.pointee.worker?.assumingMemoryBound(to: WorkerRecord.self) }
  }

  /// The record of a worker that delivers events.
  static var delivering: WorkerPointer? {
    // SAFETY: as above, of `delivering`.
    CurrentThread.state.pointee.delivering?.assumingMemoryBound(to: WorkerRecord.self)
  }

  /// Whether the calling thread is a worker of a lowered band.
  static var isLowered: Bool { current?.pointee.band._withUnsafeGuaranteedRef { $0.isLowered } ?? false }

  /// Whether the calling thread is a worker of a band that is held back.
  static var isHeldBack: Bool { current?.pointee.band._withUnsafeGuaranteedRef { $0.isHeldBack } ?? false }

  /// Traps in a forked child on the thread that was a worker: the item that has called fork has returned.
  static func requirePool() {
    if CurrentThread.state.pointee.was_worker != 0 {
      Runtime.requireThreads("return from an item of the pool that has called fork,")
    }
  }

  /// Whether other work waits for a worker like this one.
  static var shouldYield: Bool {
    guard let worker = current else { return false }
    // ORDERING: relaxed; a hint about fairness.
    return worker.pointee.band._withUnsafeGuaranteedRef { $0.hasWork }
      || worker.pointee.kept.load(ordering: .relaxed) != nil || !worker.pointee.batch.isEmpty
  }
}

/// How long an entry of a worker has taken lately. The average follows a rise at once and a fall slowly.
struct EntryCost: ~Copyable {
  // ORDERING: relaxed throughout; OWNED BY the worker. Atomic so that a field can be written without exclusive access
  // to the record, and because other workers read the average as a hint.
  private let average = Atomic<UInt32>(.max)
  private let beginning = Atomic<UInt64>(0)
  private let progress = Atomic<UInt32>(0)

  /// Begins a measurement.
  func begin(progress: UInt32, now: UInt64 = Clock.uptime()) {
    // ORDERING: relaxed; see above.
    beginning.store(now, ordering: .relaxed)
    self.progress.store(progress, ordering: .relaxed)
  }

  /// Ends the measurement of the entries since the beginning.
  func end(progress: UInt32, now: UInt64 = Clock.uptime()) {
    let entries = entries(at: progress)
    guard entries > 0 else { return }
    // ORDERING: relaxed; see above.
    let elapsed = now &- beginning.load(ordering: .relaxed)
    let cost = UInt32(clamping: elapsed / UInt64(entries))
    let before = average.load(ordering: .relaxed)
    let falls = before != .max && cost < before
    // ORDERING: relaxed; see above.
    average.store(falls ? before - (before - cost) / 8 : cost, ordering: .relaxed)
  }

  /// The number of entries that the worker has run since the beginning.
  func entries(at progress: UInt32) -> UInt32 {
    // ORDERING: relaxed; see above.
    progress &- self.progress.load(ordering: .relaxed)
  }

  /// Whether the average is below this many nanoseconds.
  func isBelow(_ nanoseconds: UInt32) -> Bool {
    // ORDERING: relaxed; see above.
    average.load(ordering: .relaxed) < nanoseconds
  }
}

/// What a worker does for events.
struct EventService: ~Copyable {
  /// Whether it runs what an event made runnable. Its next work is likely to come from events, too. OWNED BY the worker.
  let isOn = Atomic<Bool>(false)
  /// How long such entries have taken lately. OWNED BY the worker.
  let cost = EntryCost()
  /// Whether the worker, while parked, waits for events instead of on its own event. GUARDED BY `idleLock`.
  let isPolling = Atomic<Bool>(false)
}

/// Entries that a worker pushes to a root without waking another worker, because it will take them itself before
/// another worker could: its entries are short, and it has taken what it pushed before.
///
/// Such an entry is in the root's list like any other, in its order, and any worker may take it. If the worker does not
/// take it within a tick, the monitor posts it (Pool/MONITOR.md).
struct Deferral: ~Copyable {
  /// The worker runs entries of less than this many nanoseconds before another worker wakes up, and they take longer
  /// when their data move to another processor.
  private static let short: UInt32 = 4_000
  /// A worker that has deferred an entry within this many entries is likely to do so again.
  private static let memory: UInt32 = 8

  private let cost = EntryCost()
  // ORDERING: relaxed throughout; OWNED BY the worker, and atomic as in `EntryCost`.
  /// Whether a measurement runs: from the first push after a search to the next search, or until the worker parks.
  let isMeasuring = Atomic<Bool>(false)
  /// Whether the worker has deferred an entry, and taken none from a root since.
  private let hasDeferred = Atomic<Bool>(false)
  /// The worker's progress when it last deferred an entry. Initially far in the past.
  private let last = Atomic<UInt32>(0 &- memory &- 1)

  /// Decides about an entry that the worker has pushed.
  /// - Returns: whether the worker will take the entry itself, so that no other needs to be woken.
  @inline(__always)
  func defers(progress: UInt32, now: @autoclosure () -> UInt64 = Clock.uptime()) -> Bool {
    // ORDERING: relaxed; see above.
    if !isMeasuring.load(ordering: .relaxed) {
      isMeasuring.store(true, ordering: .relaxed)
      // The rest of this entry counts as one.
      cost.begin(progress: progress &- 1, now: now())
    }
    if cost.entries(at: progress) >= Spin.measuredEntries { measure(progress, now()) }
    // ORDERING: relaxed; see above. Two entries are work for two workers.
    guard cost.isBelow(Self.short) && !hasDeferred.load(ordering: .relaxed) else { return false }
    // ORDERING: relaxed; see above.
    hasDeferred.store(true, ordering: .relaxed)
    last.store(progress, ordering: .relaxed)
    return true
  }

  /// As `defers`, while the cost of entries is not known.
  func defersFirst() -> Bool {
    // ORDERING: relaxed; see above.
    !hasDeferred.exchange(true, ordering: .relaxed)
  }

  @inline(never)
  private func measure(_ progress: UInt32, _ now: UInt64) {
    cost.end(progress: progress, now: now)
    cost.begin(progress: progress, now: now)
  }

  /// Ends a measurement when the worker has found no entry, or parks: searching and sleeping do not count.
  func runDry(progress: UInt32, now: @autoclosure () -> UInt64 = Clock.uptime()) {
    settle()
    // ORDERING: relaxed; see above.
    guard isMeasuring.load(ordering: .relaxed) else { return }
    isMeasuring.store(false, ordering: .relaxed)
    cost.end(progress: progress, now: now())
  }

  /// Notes that the worker has taken an entry from a root, or has found the roots empty.
  @inline(__always)
  func settle() {
    // ORDERING: relaxed; see above.
    if hasDeferred.load(ordering: .relaxed) { hasDeferred.store(false, ordering: .relaxed) }
  }

  /// Whether the worker has deferred entries lately, and its entries are still short. A hint for other workers.
  @inline(__always)
  func isRecent(progress: UInt32) -> Bool {
    // ORDERING: relaxed; see above.
    cost.isBelow(Self.short) && progress &- last.load(ordering: .relaxed) <= Self.memory
  }
}

/// The workers of a band that were the last to begin deferring entries. Since there may be thousands of workers, only two
/// are kept. Hints.
struct DeferringWorkers: ~Copyable {
  private let last = Atomic<WorkerPointer?>(nil)
  private let before = Atomic<WorkerPointer?>(nil)

  @inline(never)
  func begins(_ worker: WorkerPointer) {
    // ORDERING: acquiring and releasing, then releasing; pairs with the loads in `includesOther`, publishes the record.
    let former = last.exchange(worker, ordering: .acquiringAndReleasing)
    if former != worker { before.store(former, ordering: .releasing) }
  }

  /// Whether another active worker has deferred entries lately.
  func includesOther(than worker: WorkerPointer) -> Bool {
    // ORDERING: acquiring, here and below; pairs with `begins`, publishes the record.
    var candidate = last.load(ordering: .acquiring)
    for _ in 0..<2 {
      // ORDERING: sequentially consistent; the other looks at the lists after it has changed its status
      // (Pool/MONITOR.md).
      if let other = candidate, other != worker,
        other.pointee.status.load(ordering: .sequentiallyConsistent) == WorkerRecord.Status.active,
        Self.includes(other)
      {
        return true
      }
      // ORDERING: acquiring; see above.
      candidate = before.load(ordering: .acquiring)
    }
    return false
  }

  /// Whether a worker has deferred entries lately.
  static func includes(_ worker: WorkerPointer) -> Bool {
    // ORDERING: relaxed; a hint about another worker, and exact for the caller.
    worker.pointee.deferral.isRecent(progress: worker.pointee.progress.load(ordering: .relaxed))
  }
}

// With several shards a worker of a busy band takes more than one entry of a root at once: its *batch*. Workers of one
// shard then meet at the lock of the root, and at the line that producers write, once for all entries of a batch.
//
// One word has the first entry that is left. The worker replaces it by the next entry, or another thread by nothing: then
// that thread puts the entries back at the front of their root, where all workers find them. This happens as soon as the
// batch's worker waits or makes no progress, and when another worker has nothing to do. SHARDS.md has the bound.

/// The oldest entries of a root that a worker has taken at once, in their order, linked through their own `next`.
struct Batch: ~Copyable {
  /// The most entries that a worker takes at once, besides the one that it runs first.
  static var capacity: Int { Int(Tuning.value(7, inModel: 1)) }

  /// The address of the first entry that is left, and the level of their root in the lowest bits; 0 if there is none.
  private let word = Atomic<UInt>(0)
  /// The entries. OWNED BY the worker, since another thread may take them, and free their memory, at any time.
  private let entries = UnsafeMutablePointer<NodePointer>.allocate(capacity: capacity)
  // ORDERING: relaxed, all three; OWNED BY the worker, and atomic as the other fields of the record.
  /// The number of entries, and the position of the first that is left.
  private let count = Atomic<Int>(0)
  private let position = Atomic<Int>(0)
  /// The batch's place among the latest of its root.
  let place = Atomic<Int>(0)
  /// How long entries have taken lately. OWNED BY the worker.
  private let cost = EntryCost()

  /// While entries take less than this many nanoseconds, workers often meet at the root's lock. Longer ones do not
  /// have to wait for the first of a batch.
  private static let short: UInt32 = 10_000

  /// Whether the worker's entries are short, since its last search.
  fileprivate func isWorthwhile(progress: UInt32) -> Bool {
    let now = Clock.uptime()
    cost.end(progress: progress, now: now)
    cost.begin(progress: progress, now: now)
    return cost.isBelow(Self.short)
  }

  /// The worker has found an entry: the time of its search does not count.
  func searchEnded(progress: UInt32) { cost.begin(progress: progress) }

  /// Whether there is nothing to take. A hint; if it is true, exact for the worker.
  var isEmpty: Bool {
    // ORDERING: relaxed; a hint, confirmed by what takes the entries.
    @inline(__always) get { word.load(ordering: .relaxed) == 0 }
  }

  /// As `isEmpty`, for the monitor's last look before it sleeps.
  var isEmptyInTotalOrder: Bool {
    // ORDERING: sequentially consistent; pairs with the exchange in `publish` (Pool/MONITOR.md).
    word.load(ordering: .sequentiallyConsistent) == 0
  }

  /// The level of the root that the entries are from, if there are any. A hint, as `isEmpty`.
  fileprivate var level: QoSLevel? {
    // ORDERING: relaxed; as above.
    let bits = word.load(ordering: .relaxed)
    return bits == 0 ? nil : Self.level(bits)
  }

  /// Appends an entry that no other thread sees yet. The worker alone.
  fileprivate func append(_ node: NodePointer) {
    // ORDERING: relaxed; see above.
    let count = self.count.load(ordering: .relaxed)
    entries[count] = node
    self.count.store(count + 1, ordering: .relaxed)
  }

  /// Lets other threads take the entries that were appended. The worker alone.
  fileprivate func publish(_ level: QoSLevel) {
    // ORDERING: sequentially consistent; publishes the links to the thread that takes the entries, and comes before the
    // look at whether the monitor is awake (Pool/MONITOR.md).
    _ = word.exchange(Self.bits(entries[0], level), ordering: .sequentiallyConsistent)
  }

  /// Takes the first entry that is left. The worker alone.
  fileprivate func takeFirst(_ level: QoSLevel) -> NodePointer? {
    // ORDERING: relaxed; see above.
    let (count, position) = (count.load(ordering: .relaxed), position.load(ordering: .relaxed))
    let first = entries[position]
    let next = position + 1 < count ? Self.bits(entries[position + 1], level) : 0
    // ORDERING: relaxed; the entries are this thread's, and another that takes the rest still acquires the links: the
    // exchange in `publish` heads a release sequence, which this goes on with.
    let isTaken = word.compareExchange(
      expected: Self.bits(first, level), desired: next, ordering: .relaxed
    ).exchanged
    if isTaken && next != 0 { self.position.store(position + 1, ordering: .relaxed) } else { clear() }
    return isTaken ? first : nil
  }

  /// Takes all entries that are left. Any thread.
  fileprivate func takeAll() -> (first: NodePointer, level: QoSLevel)? {
    // ORDERING: acquiring; pairs with the exchange in `publish`.
    let bits = word.exchange(0, ordering: .acquiring)
    // SAFETY: made in `bits`.
    return bits == 0 ? nil : (NodePointer(bitPattern: bits & ~7)!, Self.level(bits))
  }

  /// Forgets the entries, which are gone.
  fileprivate func clear() {
    // ORDERING: relaxed; see above.
    count.store(0, ordering: .relaxed)
    position.store(0, ordering: .relaxed)
  }

  private static func bits(_ first: NodePointer, _ level: QoSLevel) -> UInt {
    UInt(bitPattern: first) | UInt(level.rawValue)
  }

  private static func level(_ bits: UInt) -> QoSLevel {
    QoSLevel(rawValue: UInt8(truncatingIfNeeded: bits & 7))!
  }
}

/// Who took entries of a root lately, so that the next one finds a batch that is overdue. GUARDED BY the root's
/// `consumer`, which orders all accesses; atomic so that the ledger counts their lines.
struct LatestBatches: ~Copyable {
  /// A batch is overdue after this many later turns at its root.
  static var count: Int { Int(Tuning.value(16, inModel: 2)) }

  private let workers = UnsafeMutablePointer<Atomic<WorkerPointer?>>.allocate(capacity: count)
  private let next = SeldomChanged<UInt>(0)

  init() {
    for place in 0..<Self.count { (workers + place).initialize(to: Atomic(nil)) }
  }

  /// Notes the turn of a worker, whose former batch has ended.
  /// - Returns: the worker whose batch is overdue.
  fileprivate func add(_ worker: WorkerPointer, hasBatch: Bool) -> WorkerPointer? {
    // ORDERING: relaxed throughout; see above. The place is the worker's own.
    let former = worker.pointee.batch.place.load(ordering: .relaxed)
    if workers[former].load(ordering: .relaxed) == worker { workers[former].store(nil, ordering: .relaxed) }
    let place = Int(next.value)
    next.value = UInt((place + 1) % Self.count)
    // ORDERING: relaxed, all; as above.
    let overdue = workers[place].load(ordering: .relaxed)
    if hasBatch {
      worker.pointee.batch.place.store(place, ordering: .relaxed)
      workers[place].store(worker, ordering: .relaxed)
    } else if overdue != nil {
      workers[place].store(nil, ordering: .relaxed)
    }
    return overdue
  }
}

extension RootQueue {
  /// Takes the oldest entry, and the next ones as the worker's batch, which is empty.
  /// - Returns: the entry, and the worker whose batch is overdue.
  fileprivate func takeBatch(
    for worker: WorkerPointer, atMost most: Int
  ) -> (first: NodePointer, overdue: WorkerPointer?)? {
    guard hasWork else { return nil }
    consumer.lock()
    defer { consumer.unlock() }
    guard let first = first() else { return nil }
    worker.pointee.batch.clear()
    var (last, count) = (first, 0)
    // An entry that its producer has yet to link is left to the next worker.
    while count < most, let next = list.next(after: last) {
      worker.pointee.batch.append(next)
      (last, count) = (next, count + 1)
    }
    leave(at: list.advance(past: last))
    if count > 0 {
      // ORDERING: relaxed; the entries belong to this thread, and `publish` publishes the links.
      last.pointee.next.store(nil, ordering: .relaxed)
      worker.pointee.batch.publish(level)
    }
    return (first, latest.add(worker, hasBatch: count > 0))
  }

  /// Puts entries back to the front.
  fileprivate func putBack(_ first: NodePointer) {
    var last = first
    // ORDERING: relaxed, here and below; the entries belong to this thread until it unlocks.
    while let next = last.pointee.next.load(ordering: .relaxed) { last = next }
    consumer.lock()
    defer { consumer.unlock() }
    if let oldest = self.first() {
      // ORDERING: relaxed; as above.
      last.pointee.next.store(oldest, ordering: .relaxed)
      leave(at: first)
      return
    }
    var next: NodePointer? = first
    while let node = next {
      next = node.pointee.next.load(ordering: .relaxed)
      _ = list.push(node)
    }
  }
}

extension Band {
  /// As the last step of `take`, with several shards: the next entry of the batch, unless a more urgent root has any.
  @inline(never)
  func takeOfSeveral(_ worker: WorkerPointer) -> Found? {
    for root in roots {
      if let node = root._withUnsafeGuaranteedRef({ takeNext(of: $0, worker) }) {
        return Found(node: node, root: root)
      }
    }
    return nil
  }

  /// The oldest entry of a root: of the batch, if that is from this root.
  ///
  /// Only a worker of a busy band with short entries takes a batch: otherwise others would run these entries sooner.
  func takeNext(of root: RootQueue, _ worker: WorkerPointer) -> NodePointer? {
    guard !isLowered && shard.isOneOfSeveral else { return root.take() }
    if let level = worker.pointee.batch.level {
      // Another thread may have put the entries back.
      return (level == root.level ? worker.pointee.batch.takeFirst(level) : nil) ?? root.take()
    }
    let now = counters.snapshot
    guard now.searching == 0 && now.active >= activeLimit else { return root.take() }
    // ORDERING: relaxed; the worker's own.
    let progress = worker.pointee.progress.load(ordering: .relaxed)
    let most = worker.pointee.batch.isWorthwhile(progress: progress) ? Batch.capacity : 0
    guard let (first, overdue) = root.takeBatch(for: worker, atMost: most) else { return nil }
    // If this worker does not run them soon, the monitor puts them back.
    if !worker.pointee.batch.isEmpty { monitor._withUnsafeGuaranteedRef { $0.watch() } }
    if let overdue, overdue != worker { release(batch: overdue) }
    return first
  }

  /// Puts the entries of a worker's batch back to the front of their root.
  /// - Returns: whether there was anything.
  @discardableResult
  func release(batch worker: WorkerPointer) -> Bool {
    guard shard.isOneOfSeveral, let (first, level) = worker.pointee.batch.takeAll() else { return false }
    Runtime.rootTable[shard.firstRoot + Int(level.rawValue)]._withUnsafeGuaranteedRef { $0.putBack(first) }
    // The monitor may have taken its last look while the entries were in no place.
    noteWork()
    return true
  }

  /// Puts back a batch of another worker: this one has found nothing else.
  /// - Returns: whether there was anything.
  func recallBatch(besides worker: WorkerPointer) -> Bool {
    guard shard.isOneOfSeveral && !isLowered else { return false }
    for other in workers where other != worker && !other.pointee.batch.isEmpty {
      if release(batch: other) { return true }
    }
    return false
  }
}

// With several shards a worker of a busy band takes more than one entry of a root at once: its *batch*. Workers of one
// shard then meet at the lock of the root, and at the line that producers write, once for all entries of a batch.
//
// One word has the first entry that is left. The worker replaces it with the next entry. A thread that holds the root's
// lock replaces it with 0, and puts the entries back at the front of the root, where all workers find them. It does so
// when the batch's worker waits or makes no progress, and when another worker has nothing to do. SHARDS.md has the bound.

/// The oldest entries of a root that a worker has taken at once, in their order, linked through their own `next`.
struct Batch: ~Copyable {
  /// The most entries that a worker takes at once, besides the one that it runs first.
  static var capacity: Int { Int(Tuning.value(7, inModel: 1)) }

  /// The address of the first entry that is left, and the level of their root in the lowest bits; 0 if there is none.
  private let word = Atomic<UInt>(0)
  /// The entries. OWNED BY the worker, since another thread may take them, and free their memory, at any time.
  private let entries = UnsafeMutablePointer<NodePointer>.allocate(capacity: capacity)
  // ORDERING: relaxed, all five; OWNED BY the worker, and atomic as the other fields of the record.
  /// The number of entries, and the position of the first that is left.
  private let count = Atomic<Int>(0)
  private let position = Atomic<Int>(0)
  /// The batch's place among the latest of its root.
  fileprivate let place = Atomic<Int>(0)
  /// The number of batches so far.
  private let made = Atomic<UInt32>(0)
  /// OWNED BY the monitor: that number at its last look.
  private let seen = Atomic<UInt32>(0)
  /// How long entries have taken lately. OWNED BY the worker.
  private let cost = EntryCost()

  /// While entries take less than this many nanoseconds, workers often meet at the root's lock. Longer ones do not
  /// have to wait for the first of a batch.
  private static let short: UInt32 = 10_000

  deinit { entries.deallocate() }

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
    // look at whether the monitor is awake (Pool/MONITOR.md). The number is the worker's own.
    made.store(made.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
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

  /// Takes all entries that are left, if they are from the root of this level. The root's consumer: so its worker, which
  /// then takes from the root, finds them there.
  fileprivate func takeAll(_ level: QoSLevel) -> NodePointer? {
    // ORDERING: relaxed; confirmed by the compare-exchange, which acquires: it pairs with the exchange in `publish`.
    var bits = word.load(ordering: .relaxed)
    while bits != 0 && Self.level(bits) == level {
      let (isTaken, now) = word.compareExchange(expected: bits, desired: 0, ordering: .acquiring)
      // SAFETY: made in `bits`.
      if isTaken { return NodePointer(bitPattern: bits & ~7) }
      bits = now
    }
    return nil
  }

  /// Whether some of the entries that were left at the monitor's last look still are. The monitor alone.
  func isLeft() -> Bool {
    // ORDERING: relaxed; a hint, and the monitor's own.
    let (before, now) = (seen.load(ordering: .relaxed), made.load(ordering: .relaxed))
    seen.store(now, ordering: .relaxed)
    return before == now && !isEmpty
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

/// What workers took of a root lately, so that the next one finds a batch that is overdue. GUARDED BY the root's
/// `consumer`, which orders all accesses; atomic so that the ledger counts their lines.
///
/// A place stands for one batch, or for eight single entries.
struct LatestBatches: ~Copyable {
  /// A batch is overdue after as many later places.
  static var count: Int { Int(Tuning.value(16, inModel: 2)) }

  private let workers = UnsafeMutablePointer<Atomic<WorkerPointer?>>.allocate(capacity: count)
  private let place = SeldomChanged<UInt>(0)
  /// The entries that were taken since this place began.
  private let taken = SeldomChanged<UInt>(0)

  init() {
    for place in 0..<Self.count { (workers + place).initialize(to: Atomic(nil)) }
  }

  deinit { workers.deallocate() }

  /// Entries are about to be taken. Goes on to the next place if it is time.
  /// - Returns: the worker whose batch is overdue.
  fileprivate func begin() -> WorkerPointer? {
    guard taken.value > Batch.capacity else { return nil }
    taken.value = 0
    place.value = (place.value + 1) % UInt(Self.count)
    // ORDERING: relaxed; see above.
    let overdue = workers[Int(place.value)].load(ordering: .relaxed)
    // ORDERING: relaxed; as above.
    if overdue != nil { workers[Int(place.value)].store(nil, ordering: .relaxed) }
    return overdue
  }

  /// Entries have been taken one by one.
  fileprivate func add(_ entries: Int = 1) { taken.value += UInt(entries) }

  /// A worker has taken a batch, and its former one has ended.
  fileprivate func add(batchOf worker: WorkerPointer) {
    // ORDERING: relaxed throughout; see above. The worker's place is its own.
    let former = worker.pointee.batch.place.load(ordering: .relaxed)
    if workers[former].load(ordering: .relaxed) == worker { workers[former].store(nil, ordering: .relaxed) }
    worker.pointee.batch.place.store(Int(place.value), ordering: .relaxed)
    workers[Int(place.value)].store(worker, ordering: .relaxed)
    // The place is used up.
    taken.value = UInt(Batch.capacity) + 1
  }
}

extension RootQueue {
  /// Takes the oldest entry, and up to `most` next ones as the worker's batch, which is empty. The entries of an overdue
  /// batch are the oldest.
  fileprivate func take(for worker: WorkerPointer, atMost most: Int) -> NodePointer? {
    guard hasWork else { return nil }
    consumer.lock()
    defer { consumer.unlock() }
    putBackOverdue()
    guard let first = first() else { return nil }
    if most > 0 { worker.pointee.batch.clear() }
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
      latest.add(batchOf: worker)
    } else {
      latest.add()
    }
    return first
  }

  /// Entries are about to be taken for another shard. Consumer only.
  func willMove(_ count: Int) {
    putBackOverdue()
    latest.add(count)
  }

  private func putBackOverdue() {
    if let overdue = latest.begin() { _ = putBack(overdue) }
  }

  /// Puts what is left of a worker's batch, if it is from this root, back to the front. Consumer only.
  fileprivate func putBack(_ worker: WorkerPointer) -> Bool {
    guard let first = worker.pointee.batch.takeAll(level) else { return false }
    var last = first
    // ORDERING: relaxed, here and below; the entries belong to this thread until it unlocks.
    while let next = last.pointee.next.load(ordering: .relaxed) { last = next }
    if !list.begin(endingAt: last) { last.pointee.next.store(self.first(), ordering: .relaxed) }
    leave(at: first)
    return true
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
  func takeNext(of root: RootQueue, _ worker: WorkerPointer) -> NodePointer? {
    guard !isLowered && shard.isOneOfSeveral else { return root.take() }
    guard let level = worker.pointee.batch.level else {
      let node = root.take(for: worker, atMost: root.hasWork && takesBatch(worker) ? Batch.capacity : 0)
      // If this worker does not run its batch soon, the monitor puts it back.
      if !worker.pointee.batch.isEmpty { monitor._withUnsafeGuaranteedRef { $0.watch() } }
      return node
    }
    // The consumer that takes the batch away puts it back to the front before another can take from the root.
    if level == root.level { return worker.pointee.batch.takeFirst(level) ?? takeOne(of: root, worker) }
    guard let node = takeOne(of: root, worker) else { return nil }
    // The batch now waits longer than its entries take.
    release(batch: worker)
    return node
  }

  /// The oldest entry of a root, for a worker without a batch of that root.
  func takeOne(of root: RootQueue, _ worker: WorkerPointer) -> NodePointer? {
    isLowered || !shard.isOneOfSeveral ? root.take() : root.take(for: worker, atMost: 0)
  }

  /// Whether a worker takes several entries: all workers are active, and its entries are short. Otherwise another worker
  /// of the shard would run these entries sooner.
  private func takesBatch(_ worker: WorkerPointer) -> Bool {
    let now = counters.snapshot
    guard now.searching == 0 && now.active >= activeLimit else { return false }
    // ORDERING: relaxed; the worker's own.
    return worker.pointee.batch.isWorthwhile(progress: worker.pointee.progress.load(ordering: .relaxed))
  }

  /// Puts the entries of a worker's batch back to the front of their root.
  /// - Parameter waits: false for the monitor, which waits for no thread that may have no processor.
  /// - Returns: whether there was anything.
  @discardableResult
  func release(batch worker: WorkerPointer, waits: Bool = true) -> Bool {
    guard shard.isOneOfSeveral, let level = worker.pointee.batch.level else { return false }
    let isReleased = root(at: level)._withUnsafeGuaranteedRef { root in
      if waits { root.consumer.lock() } else if !root.tryToConsume() { return false }
      defer { root.consumer.unlock() }
      // The oldest entry may have yet to be linked.
      if !waits && root.hasWork && root.firstIfLinked == nil { return false }
      return root.putBack(worker)
    }
    // Their producers, and the monitor's last look, may have relied on the worker.
    if isReleased { noteWork() }
    return isReleased
  }

  /// Puts back a batch of another worker: this one has found nothing else.
  /// - Returns: whether there was anything.
  func recallBatch(besides worker: WorkerPointer) -> Bool {
    guard shard.isOneOfSeveral && !isLowered && counters.snapshot.active > 1 else { return false }
    for other in workers where other != worker && !other.pointee.batch.isEmpty {
      if release(batch: other) { return true }
    }
    return false
  }
}

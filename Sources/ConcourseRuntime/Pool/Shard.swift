// On more than eight processors the pool has shards (SHARDS.md): each has bands and roots of its own. A worker takes
// entries of its shard. One that finds none, and each at every 122nd turn, takes entries of a shard whose workers are all
// busy. Each shard alone leaves no entry behind: help from other shards only takes entries away.

/// A band's place among the shards.
struct Shard {
  let number: Int
  /// Its part of the processors.
  private let part: UnsafeMutablePointer<Atomic<Int>>
  /// The bands of this kind in the other shards, the nearest first.
  var neighbours = UnsafeBufferPointer<Unmanaged<Band>>(start: nil, count: 0)
  /// Nil without a topology.
  var overloaded: OverloadedShards?

  init(number: Int) {
    self.number = number
    part = PoolSize.part(of: number)
  }

  var isOneOfSeveral: Bool { !neighbours.isEmpty }

  /// How many of its workers may be active, not counting the monitor's allowance. Zero if a quota or the mask leaves fewer
  /// processors: what still comes here, other shards run.
  var width: Int {
    // ORDERING: relaxed; a hint for decisions.
    @inline(__always) get { part.pointee.load(ordering: .relaxed) }
  }

  /// The place of its first root in the table.
  var firstRoot: Int { number * QoSLevel.count }

  /// The shard of the calling thread.
  static var ofThread: Int { Int(CurrentThread.state.pointee.roots) / QoSLevel.count }

  /// Keeps what is allocated later out of the cache lines (and the pairs of lines that processors fetch) of what was
  /// allocated before.
  static func separate() {
    let space = UnsafeMutableRawPointer.allocate(byteCount: 256, alignment: 128)
    // A chain, so that checkers of leaks find them all.
    space.storeBytes(of: lastSpace, as: UnsafeMutableRawPointer?.self)
    lastSpace = space
  }
  // SAFETY: used only by the thread that makes the runtime.
  nonisolated(unsafe) private static var lastSpace: UnsafeMutableRawPointer?

  /// Makes the bands of each kind known to one another.
  static func connect(_ bands: UnsafeBufferPointer<Band>, _ topology: Topology) {
    for kind in 0..<3 {
      let overloaded = OverloadedShards()
      for shard in 0..<topology.shardCount {
        let others = topology.neighbours(of: shard)
        let neighbours = UnsafeMutableBufferPointer<Unmanaged<Band>>.allocate(capacity: others.count)
        for (place, other) in others.enumerated() {
          neighbours.initializeElement(at: place, to: .passUnretained(bands[other * 3 + kind]))
        }
        bands[shard * 3 + kind].join(UnsafeBufferPointer(neighbours), overloaded)
      }
    }
  }
}

/// The shards in which entries of one kind of band wait while all workers that the shard may have are active. A bit is set
/// by a producer that finds its shard full, or is refused a thread, and cleared by a thread that finds the shard empty, so
/// that the line is written when a flood begins and when it ends.
struct OverloadedShards {
  private let mask: UnsafeMutablePointer<Atomic<UInt64>>

  init() {
    mask = UnsafeMutableRawPointer.allocate(byteCount: 256, alignment: 128)
      .bindMemory(to: Atomic<UInt64>.self, capacity: 1)
    mask.initialize(to: Atomic<UInt64>(0))
  }

  /// A hint for searchers.
  var shards: UInt64 {
    // ORDERING: relaxed; a searcher looks again before it parks.
    mask.pointee.load(ordering: .relaxed)
  }

  // ORDERING: sequentially consistent, below; closes two store→load races (SHARDS.md): a producer that sets a bit, then
  // looks for searching neighbours, against one that announces that it no longer searches, then looks at the bits; and a
  // producer that pushes, then finds the bit set, against a thread that clears the bit, then looks at the lists.

  var shardsInTotalOrder: UInt64 {
    // ORDERING: sequentially consistent; see above.
    mask.pointee.load(ordering: .sequentiallyConsistent)
  }

  func contains(_ shard: Int) -> Bool { shardsInTotalOrder & 1 << UInt64(shard) != 0 }

  func insert(_ shard: Int) {
    // ORDERING: sequentially consistent; see above.
    mask.pointee.bitwiseOr(1 << UInt64(shard), ordering: .sequentiallyConsistent)
  }

  func remove(_ shard: Int) {
    // ORDERING: sequentially consistent; see above.
    mask.pointee.bitwiseAnd(~(1 << UInt64(shard)), ordering: .sequentiallyConsistent)
  }
}

extension Band {
  /// The most entries that a worker moves to its shard at once.
  private static var batch: Int { Int(Tuning.value(8, inModel: 2)) }

  // MARK: The shard that is full

  /// All workers that this band may have are active, and an entry waits. Lets the workers of other shards know, and wakes
  /// one, when this begins.
  @inline(never)
  func askForHelp() {
    // The bit may be set since before the fork.
    Runtime.requireThreads("submitting work")
    guard let overloaded = shard.overloaded, !overloaded.contains(shard.number) else { return }
    overloaded.insert(shard.number)
    wakeNeighbour()
  }

  /// The system or the cap has refused the thread that an entry needs: only a worker that exists can run it soon. (Its
  /// wake-up needs no thread, so the calls do not nest further.)
  func askForHelpWithoutThread() {
    guard let overloaded = shard.overloaded else { return }
    overloaded.insert(shard.number)
    wakeNeighbour(onlyParked: true)
  }

  /// Called by the monitor while entries wait: a shard that had no room may have room now.
  func sendHelp() {
    guard let overloaded = shard.overloaded, overloaded.contains(shard.number) else { return }
    wakeNeighbour(trustsSearchers: false)
  }

  /// Wakes a worker of the nearest shard that has room for one, unless a worker of a nearer shard searches, and so finds
  /// the entry.
  /// - Parameters:
  ///   - helper: the shard that helps already.
  ///   - trustsSearchers: false if the entry has waited for a while: a searcher may have no processor.
  private func wakeNeighbour(
    besides helper: Int? = nil, onlyParked: Bool = false, trustsSearchers: Bool = true
  ) {
    for neighbour in shard.neighbours {
      let helps = neighbour._withUnsafeGuaranteedRef { band in
        if band.shard.number == helper { return false }
        let now = band.counters.snapshot
        // A worker that handles events counts as searching, and may block.
        // ORDERING: relaxed; the monitor looks again.
        if now.searching > 0 { return trustsSearchers && band.deliveries.load(ordering: .relaxed) == 0 }
        guard now.active < band.activeLimit && (!onlyParked || now.parked > 0) else { return false }
        band.wakeOne()
        return true
      }
      if helps { return }
    }
  }

  // MARK: The shard that helps

  /// The nearest band of this kind whose shard is full, beginning with the neighbour at `first`.
  private func fullNeighbour(from first: Int, among shards: UInt64) -> Unmanaged<Band>? {
    guard shards & ~(1 << UInt64(shard.number)) != 0, let overloaded = shard.overloaded else { return nil }
    let count = shard.neighbours.count
    for offset in 0..<count {
      let neighbour = shard.neighbours[(first + offset) % count]
      guard shards & 1 << UInt64(neighbour._withUnsafeGuaranteedRef { $0.shard.number }) != 0 else {
        continue
      }
      if neighbour._withUnsafeGuaranteedRef({ $0.hasWorkForOthers(overloaded) }) { return neighbour }
    }
    return nil
  }

  /// Whether another shard is full, ordered after the announcement of a worker that parks.
  var neighbourNeedsHelp: Bool {
    guard let overloaded = shard.overloaded else { return false }
    // A bit of this shard that no helper has cleared would keep the next flood from waking one.
    if overloaded.contains(shard.number) { _ = hasWorkForOthers(overloaded) }
    return fullNeighbour(from: 0, among: overloaded.shardsInTotalOrder) != nil
  }

  /// The last searcher of this band has found an entry of its own. A producer of a full shard may have relied on it.
  /// - Parameter now: the counts without it.
  func passHelpOn(_ now: BandCounters.Snapshot) {
    guard shard.isOneOfSeveral, let overloaded = shard.overloaded,
      let neighbour = fullNeighbour(from: 0, among: overloaded.shardsInTotalOrder)
    else { return }
    if now.active < activeLimit { return wakeOne() }
    neighbour._withUnsafeGuaranteedRef { $0.wakeNeighbour() }
  }

  /// Whether entries wait here. If not, the shard no longer counts as full.
  private func hasWorkForOthers(_ overloaded: OverloadedShards) -> Bool {
    if hasWork { return true }
    overloaded.remove(shard.number)
    // A producer may have found the bit set, and relies on it.
    guard hasWorkInTotalOrder else { return false }
    overloaded.insert(shard.number)
    return true
  }

  /// A worker that found nothing in its shard: moves entries of a full shard to this one.
  /// - Returns: whether there was anything.
  func relieveNeighbour() -> Bool {
    guard let neighbour = fullNeighbour(from: 0, among: shard.overloaded?.shards ?? 0) else { return false }
    return neighbour._withUnsafeGuaranteedRef { neighbour in
      var moved = 0
      for (source, root) in zip(neighbour.roots, roots) where moved == 0 {
        moved = source._withUnsafeGuaranteedRef { source in
          root._withUnsafeGuaranteedRef { source.move(atMost: Self.batch, to: $0) }
        }
      }
      if moved == 0 {
        // The holder of the root's lock may need this processor.
        Processor.yield()
      } else if neighbour.hasWork {
        // More helpers come one after the other, as in `stopSearching`.
        neighbour.wakeNeighbour(besides: shard.number)
      }
      return moved > 0
    }
  }

  /// At every 122nd turn: the oldest entry of a full shard, beginning with another shard each time, and with another root
  /// when all shards have been first. A root from which another worker is taking loses its turn.
  @inline(never)
  func takeFromNeighbour(_ round: UInt32) -> Found? {
    let (cycle, first) = Int(round).quotientAndRemainder(dividingBy: shard.neighbours.count)
    guard let neighbour = fullNeighbour(from: first, among: shard.overloaded?.shards ?? 0) else { return nil }
    return neighbour._withUnsafeGuaranteedRef { neighbour in
      for offset in 0..<neighbour.roots.count {
        let root = neighbour.roots[(cycle + offset) % neighbour.roots.count]
        if let node = root._withUnsafeGuaranteedRef({ $0.takeUnlessTaken() }) {
          return Found(node: node, root: root)
        }
      }
      return nil
    }
  }
}

extension RootQueue {
  /// The oldest entry; nil if there is none, or another thread is taking one.
  fileprivate func takeUnlessTaken() -> NodePointer? {
    guard hasWork && consumer.tryLock() else { return nil }
    defer { consumer.unlock() }
    willMove(1)
    return popFirst()
  }

  /// Moves the oldest entries to the end of another root, in their order.
  /// - Returns: their number.
  fileprivate func move(atMost count: Int, to other: RootQueue) -> Int {
    guard hasWork && tryToConsume() else { return 0 }
    defer { consumer.unlock() }
    willMove(count)
    var moved = 0
    // A boosted entry goes alone: a worker takes it at once, and in the other root nothing would boost it.
    let isBoosted = !boosted.isEmpty
    while moved < count, let node = popFirst() {
      _ = other.list.push(node)
      moved += 1
      if isBoosted { break }
    }
    return moved
  }
}

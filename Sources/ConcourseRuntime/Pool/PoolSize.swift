/// How many workers may be active at once, and how many threads the pool may have.
enum PoolSize {
  /// The highest cap that can be set.
  private static let highestCap = 4096
  /// How long an idle worker stays, in nanoseconds.
  static let idleLifetime: UInt64 = 5_000_000_000

  // ORDERING: relaxed throughout this file; the numbers are hints for decisions, and publish nothing.
  private static let currentWidth = Atomic<Int>(
    CPUQuota.width(affinity: topology?.pretendedProcessors ?? Processor.affinityCount, quota: nil))
  private static let quotaIsKnown = Atomic<Bool>(false)
  /// When affinity mask and quota were last read, on the uptime clock.
  private static let lastReading = Atomic<UInt64>(0)
  /// How long a reading serves parallel loops, in nanoseconds. The monitor, which reads as often, is awake only while
  /// work waits.
  private static let readingLifetime: UInt64 = 1_000_000_000
  private static let currentCap = Atomic<Int>(capFromEnvironment() ?? 512)
  private static let threads = Atomic<Int>(0)

  /// The shards; nil for one.
  // SAFETY: the model alone changes it, between two executions.
  nonisolated(unsafe) static var topology = Topology.ofProcess()
  /// Whether more than two threads may use one queue at the same moment: there are more processors, or several shards. Set
  /// once there is a runtime, and so a queue.
  // SAFETY: written before the first queue exists.
  nonisolated(unsafe) static var hasManyProcessors = false
  /// The processors that the process might use when the runtime was made. A thread that the program has pinned since sees
  /// fewer.
  // SAFETY: as above.
  nonisolated(unsafe) static var processorsAtStart = 1
  /// Each shard's part of the width.
  // SAFETY: never freed; the elements are atomics.
  nonisolated(unsafe) private static let parts: UnsafeMutablePointer<Atomic<Int>> = {
    let parts = UnsafeMutablePointer<Atomic<Int>>.allocate(capacity: Topology.mostShards)
    for shard in 0..<Topology.mostShards { (parts + shard).initialize(to: Atomic<Int>(0)) }
    return parts
  }()

  /// The active workers of each kind of band, over all shards: the processors that this process may use. The CPU quota
  /// counts after `settleWidth`.
  static var width: Int {
    // ORDERING: relaxed; see above.
    @inline(__always) get { currentWidth.load(ordering: .relaxed) }
  }

  /// The most workers of all bands together. Blocked workers are replaced up to this number.
  static var cap: Int {
    // ORDERING: relaxed; see above.
    get { currentCap.load(ordering: .relaxed) }
    set { currentCap.store(min(max(newValue, 1), highestCap), ordering: .relaxed) }
  }

  /// Where the width, the cap and the number of threads are, for `concourse report`.
  static var addresses: (width: UnsafeRawPointer, cap: UnsafeRawPointer, threads: UnsafeRawPointer) {
    // SAFETY: an Atomic is its own storage, and a global variable stays where it is.
    func address(_ variable: borrowing Atomic<Int>) -> UnsafeRawPointer {
      withUnsafePointer(to: variable) { UnsafeRawPointer($0) }
    }
    return (address(currentWidth), address(currentCap), address(threads))
  }

  /// The number of workers that exist now, in all bands.
  static var threadCount: Int {
    // ORDERING: relaxed; see above.
    threads.load(ordering: .relaxed)
  }

  /// Reserves room for one more thread in a band that has `inBand`. A band may always have as many threads as its
  /// shard has processors, so that blocked threads of one band cannot starve the others.
  ///
  /// The cap limits floods of blocked threads. A band that starves may nevertheless have `starvationLimit`.
  ///
  /// - Parameter width: the part of the band's shard.
  static func mayGrow(band inBand: Int, width: Int, starvationLimit: Int) -> Bool {
    guard inBand < BandCounters.mostThreads else { return false }
    // ORDERING: relaxed; see above.
    let reserved = threads.wrappingAdd(1, ordering: .relaxed).newValue
    if reserved <= cap || inBand < max(width, starvationLimit) { return true }
    threadEnded()
    return false
  }

  /// Gives back what `mayGrow` reserved.
  static func threadEnded() {
    // ORDERING: relaxed; see above.
    threads.wrappingSubtract(1, ordering: .relaxed)
  }

  /// Whether the CPU quota has been read. Reading it takes longer than all else in a program's first use of the pool,
  /// so it waits until a second worker or a parallel loop may come.
  static var widthIsSettled: Bool {
    // ORDERING: relaxed; see above.
    quotaIsKnown.load(ordering: .relaxed)
  }

  /// Reads the CPU quota, if it has not been read. Two threads may both do so.
  /// - Returns: as `refreshWidth`.
  @discardableResult
  static func settleWidth() -> Bool { widthIsSettled ? false : refreshWidth() }

  /// Reads the CPU quota, if it has not been read, or looks for processors that the process may use since the last
  /// reading. A loop that runs on one processor lets nothing wait, so the monitor would not notice them.
  static func settleWidthOfLoop() {
    guard widthIsSettled else {
      _ = refreshWidth()
      return
    }
    // ORDERING: relaxed, both; see above. One thread reads at a time.
    let (last, now) = (lastReading.load(ordering: .relaxed), Clock.uptime())
    guard now > last &+ readingLifetime, !Process.isForkedChild,
      lastReading.compareExchange(expected: last, desired: now, ordering: .relaxed).exchanged
    else { return }
    _ = refreshWidth(onlyWider: true)
  }

  /// Reads the affinity mask and the CPU quota again: both may change while the process runs.
  /// - Parameter onlyWider: Whether the width may not shrink: the calling thread may be pinned.
  /// - Returns: whether a shard may have fewer active workers than before.
  static func refreshWidth(onlyWider: Bool = false) -> Bool {
    let before = width
    let affinity = Processor.affinityCount
    let couldBeRead = CPUQuota.canBeRead
    var measured =
      topology?.pretendedProcessors ?? CPUQuota.width(affinity: affinity, quota: CPUQuota.processors())
    // A quota that could not be read for want of a descriptor still holds. Asked before and after: another thread may
    // close a file meanwhile.
    if topology?.pretendedProcessors == nil, widthIsSettled, !couldBeRead || !CPUQuota.canBeRead {
      measured = min(width, affinity)
    }
    // ORDERING: relaxed, both; see above.
    lastReading.store(Clock.uptime(), ordering: .relaxed)
    quotaIsKnown.store(true, ordering: .relaxed)
    if onlyWider {
      // The monitor may have stored another width meanwhile, which counts.
      // ORDERING: relaxed; see above.
      guard measured > before,
        currentWidth.compareExchange(expected: before, desired: measured, ordering: .relaxed).exchanged
      else { return false }
    } else {
      // ORDERING: relaxed; see above.
      currentWidth.store(measured, ordering: .relaxed)
    }
    Spin.note(processors: measured)
    return divide()
  }

  /// Gives each shard its part. The threads of a shard without any submit to the nearest that has some.
  /// - Returns: whether a part has become smaller.
  @discardableResult
  static func divide() -> Bool {
    let shares = topology?.shares(of: width)
    var shrinks = false
    for shard in 0..<(shares?.count ?? 1) {
      let part = shares?[shard] ?? width
      // ORDERING: relaxed; see above.
      if parts[shard].exchange(part, ordering: .relaxed) > part { shrinks = true }
    }
    if let topology, let shares {
      for shard in shares.indices {
        let home = shares[shard] > 0 ? shard : topology.neighbours(of: shard).first { shares[$0] > 0 }!
        Processor.setRoots(Shard(number: home).firstRoot, ofShard: shard)
      }
    }
    return shrinks
  }

  /// A shard's part of the width.
  static func part(of shard: Int) -> UnsafeMutablePointer<Atomic<Int>> { parts + shard }

  private static func capFromEnvironment() -> Int? {
    guard let text = Process.environment("CONCOURSE_MAX_THREADS") else { return nil }
    guard let number = Int(text), (1...highestCap).contains(number) else {
      Trap.warn("CONCOURSE_MAX_THREADS=\(text) is not a number from 1 to \(highestCap); ignored")
      return nil
    }
    return number
  }
}

/// Decides when a band whose workers are all blocked gets threads beyond the cap, and how many.
///
/// The blocked workers may wait for the work that waits: 5,000 items that wait for the 5,001st need 5,001 threads. A
/// flood of items that only sleep looks the same until one of them ends. So grants beyond the cap are slow at first,
/// and double with every 64th grant as long as no entry ends: a hundred threads in the first second, some 4,500 in
/// five.
struct Starvation {
  /// The number of looks in a row without an active worker after which a grant is made.
  private static let patience = 10
  /// The number of grants after which grants double, and the most times that they double.
  private static let doubling = 64
  private static let mostDoublings = 10

  private var looks = 0
  private var grants = 0
  /// The band's threads at the last grant, and the entries that they had begun.
  private var threads = 0
  private var begun: UInt32 = 0

  /// Decides after a look of the monitor at the band.
  /// - Parameters:
  ///   - isBlocked: whether work waits and no worker is active.
  ///   - threads: the band's threads.
  ///   - begun: the entries that they have begun, modulo 2^32.
  /// - Returns: the number of threads that the band may have from now on; nil for no change.
  mutating func look(isBlocked: Bool, threads: Int, begun: UInt32) -> Int? {
    looks = isBlocked ? looks + 1 : 0
    guard looks == Self.patience else { return nil }
    looks = 0
    // Each new thread has begun one entry. If more entries have begun, an entry has ended.
    let stalls = Int(begun &- self.begun) <= threads - self.threads
    grants = stalls ? grants + 1 : 0
    (self.threads, self.begun) = (threads, begun)
    return threads + 1 << Swift.min(grants / Self.doubling, Self.mostDoublings)
  }
}

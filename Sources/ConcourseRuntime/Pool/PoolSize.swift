/// How many workers may run at once, and how many there may be.
enum PoolSize {
  /// The highest cap that can be set.
  private static let highestCap = 4096
  /// How long an idle worker stays, in nanoseconds.
  static let idleLifetime: UInt64 = 5_000_000_000

  // ORDERING: relaxed throughout this file; these are numbers to steer by, nothing is published by them.
  private static let currentWidth = Atomic<Int>(CPUQuota.width(affinity: Processor.affinityCount, quota: nil))
  private static let quotaIsKnown = Atomic<Bool>(false)
  private static let currentCap = Atomic<Int>(capFromEnvironment() ?? 512)
  private static let threads = Atomic<Int>(0)

  /// Active workers per band: the processors this process may use. The CPU quota counts once `settleWidth` has been called.
  static var width: Int {
    // ORDERING: relaxed; see above.
    @inline(__always) get { currentWidth.load(ordering: .relaxed) }
  }

  /// All workers of all bands, at most; blocked ones are replaced up to here.
  static var cap: Int {
    // ORDERING: relaxed; see above.
    get { currentCap.load(ordering: .relaxed) }
    set { currentCap.store(min(max(newValue, 1), highestCap), ordering: .relaxed) }
  }

  /// Workers alive now, in all bands.
  static var threadCount: Int {
    // ORDERING: relaxed; see above.
    threads.load(ordering: .relaxed)
  }

  /// Reserves room for one more thread in a band that has `inBand`. A band may always have as many as
  /// there are processors, so that blocked threads of one band cannot starve the others.
  ///
  /// The cap holds back floods of blocked threads. A band that starves may have `starvationLimit` all the same.
  static func mayGrow(band inBand: Int, starvationLimit: Int) -> Bool {
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

  /// Whether the CPU quota has been read. Reading it takes longer than all else that a program's first use of the pool does,
  /// so it waits until a second worker or a parallel loop may come.
  static var widthIsSettled: Bool {
    // ORDERING: relaxed; see above.
    quotaIsKnown.load(ordering: .relaxed)
  }

  /// Reads the CPU quota, if it has not been read. Two threads may both do so.
  static func settleWidth() {
    if !widthIsSettled { _ = refreshWidth() }
  }

  /// Reads the affinity mask and the CPU quota again: both may change while the process runs.
  /// - Returns: whether the width has shrunk.
  static func refreshWidth() -> Bool {
    let measured = CPUQuota.width(affinity: Processor.affinityCount, quota: CPUQuota.processors())
    // ORDERING: relaxed; see above.
    quotaIsKnown.store(true, ordering: .relaxed)
    return currentWidth.exchange(measured, ordering: .relaxed) > measured
  }

  private static func capFromEnvironment() -> Int? {
    guard let text = Processor.environment("CONCOURSE_MAX_THREADS") else { return nil }
    guard let number = Int(text), (1...highestCap).contains(number) else {
      Trap.warn("CONCOURSE_MAX_THREADS=\(text) is not a number from 1 to \(highestCap); ignored")
      return nil
    }
    return number
  }
}

/// Decides when a band whose workers are all blocked gets threads beyond the cap, and how many.
///
/// What waits may be what the blocked workers wait for: 5,000 items that wait for the 5,001st need 5,001 threads. A
/// flood of items that merely sleep looks the same until one of them ends. So the cap gives way slowly at first, and
/// twice as fast with every 64th grant as long as no entry ends: a hundred threads in the first second, some 4,500 in
/// five.
struct Starvation {
  /// Looks in a row without an active worker that make a grant.
  private static let patience = 10
  /// Grants after which they double, and how often they do.
  private static let doubling = 64
  private static let mostDoublings = 10

  private var looks = 0
  private var grants = 0
  /// What the band had at the last grant: threads, and entries that they had begun.
  private var threads = 0
  private var begun: UInt32 = 0

  /// The monitor has looked at the band.
  /// - Parameters:
  ///   - isBlocked: whether work waits and no worker is active.
  ///   - threads: the band's threads.
  ///   - begun: the entries that they have begun, modulo 2^32.
  /// - Returns: how many threads the band may have from now on, when it is to have more.
  mutating func look(isBlocked: Bool, threads: Int, begun: UInt32) -> Int? {
    looks = isBlocked ? looks + 1 : 0
    guard looks == Self.patience else { return nil }
    looks = 0
    // Each new thread has begun one entry, and is still at it. A further one has been begun because another ended.
    let stalls = Int(begun &- self.begun) <= threads - self.threads
    grants = stalls ? grants + 1 : 0
    (self.threads, self.begun) = (threads, begun)
    return threads + 1 << Swift.min(grants / Self.doubling, Self.mostDoublings)
  }
}

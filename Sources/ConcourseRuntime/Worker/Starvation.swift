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

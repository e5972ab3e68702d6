import Synchronization

/// How often tests have come to each exploration: a loop explores several times at one place. A server counts the same
/// way, and explores at the arrival that it was started for. (A queue would use the engine before a schedule begins.)
enum Arrivals {
  private static let counts = Mutex<[String: Int]>([:])

  /// Counts an arrival. The first is 1.
  static func count(_ key: String) -> Int {
    counts.withLock { counts in
      counts[key, default: 0] += 1
      return counts[key]!
    }
  }

  /// The test has begun anew, and this was its first arrival.
  static func restart(_ key: String) { counts.withLock { $0[key] = 1 } }
}

/// How many workers of a band are in each state, in one word, so that a producer learns by one load whether it
/// must wake a worker.
///
/// | bits  | field     | meaning |
/// |-------|-----------|---------|
/// | 0–15  | active    | workers that run an entry or search |
/// | 16–31 | searching | active workers that search, and will find what is put in now |
/// | 32–47 | parked    | idle workers that can be woken |
/// | 48–63 | threads   | all workers, including those that wait or are stuck |
struct BandCounters: ~Copyable {
  /// The most threads of a band. It is less than 16 bits hold, since a worker that comes back while the monitor gives
  /// it up is counted twice for a moment.
  static let mostThreads = 65_000

  private let word = Atomic<UInt64>(0)

  struct Snapshot {
    let bits: UInt64
    var active: Int { Int(bits & 0xFFFF) }
    var searching: Int { Int(bits >> 16 & 0xFFFF) }
    var parked: Int { Int(bits >> 32 & 0xFFFF) }
    var threads: Int { Int(bits >> 48) }
  }

  /// A change of several counts at once.
  struct Change {
    let difference: UInt64
    init(active: Int = 0, searching: Int = 0, parked: Int = 0, threads: Int = 0) {
      // Two's complement carries between the fields cancel out as long as no field goes below zero.
      difference = UInt64(
        bitPattern: Int64(active) &+ Int64(searching) << 16 &+ Int64(parked) << 32 &+ Int64(threads) << 48)
    }
  }

  /// The counts, ordered after the caller's push.
  var snapshot: Snapshot {
    // ORDERING: sequentially consistent; closes the store→load race between a producer (push, then look
    // at the counts) and a worker (change the counts, then look at the lists). Pool/README.md.
    @inline(__always) get { Snapshot(bits: word.load(ordering: .sequentiallyConsistent)) }
  }

  /// Changes the counts.
  /// - Returns: the counts after the change.
  @discardableResult
  func apply(_ change: Change) -> Snapshot {
    // ORDERING: sequentially consistent; as above.
    Snapshot(bits: word.wrappingAdd(change.difference, ordering: .sequentiallyConsistent).newValue)
  }

  /// Forgets all workers: a forked child has none.
  func reset() {
    // ORDERING: relaxed; a forked child has one thread.
    word.store(0, ordering: .relaxed)
  }
}

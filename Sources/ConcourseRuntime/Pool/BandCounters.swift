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

  /// The lowest bit of each count.
  private enum Shift {
    static let active = 0
    static let searching = 16
    static let parked = 32
    static let threads = 48
  }

  struct Snapshot {
    let bits: UInt64
    var active: Int { count(at: Shift.active) }
    var searching: Int { count(at: Shift.searching) }
    var parked: Int { count(at: Shift.parked) }
    var threads: Int { count(at: Shift.threads) }

    private func count(at shift: Int) -> Int { Int(UInt16(truncatingIfNeeded: bits >> shift)) }
  }

  /// A change of several counts at once.
  struct Change {
    let difference: UInt64
    init(active: Int = 0, searching: Int = 0, parked: Int = 0, threads: Int = 0) {
      // Two's complement carries between the fields cancel out as long as no field goes below zero.
      difference = UInt64(
        bitPattern: Int64(active) << Shift.active &+ Int64(searching) << Shift.searching
          &+ Int64(parked) << Shift.parked &+ Int64(threads) << Shift.threads)
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

#if !LEDGER
  /// The progress of each coroutine that another one is known to follow: the happens-before order of one execution.
  ///
  /// Of a fixed size, so that joining two takes a few instructions: a scenario has at most `capacity` coroutines.
  struct VectorClock {
    static let capacity = 16

    private var counts = SIMD16<UInt32>()

    subscript(_ id: Int) -> UInt32 {
      get { counts[id] }
      set { counts[id] = newValue }
    }

    mutating func join(_ other: VectorClock) {
      counts.replace(with: other.counts, where: other.counts .> counts)
    }

    /// The first coroutine whose progress `other` does not follow.
    func firstBeyond(_ other: VectorClock) -> Int? {
      let beyond = counts .> other.counts
      return beyond == SIMDMask(repeating: false) ? nil : (0..<Self.capacity).first { beyond[$0] }
    }

    func joined(_ other: VectorClock) -> VectorClock {
      var both = self
      both.join(other)
      return both
    }
  }
#else
  /// The ledger has more threads, and nothing that follows their order.
  struct VectorClock {
    static let capacity = 1024

    subscript(_ id: Int) -> UInt32 {
      get { 0 }
      set {}
    }

    mutating func join(_ other: VectorClock) {}
    func firstBeyond(_ other: VectorClock) -> Int? { nil }
    func joined(_ other: VectorClock) -> VectorClock { self }
  }
#endif

/// The progress of each coroutine that another one is known to follow: the happens-before order of one execution.
struct VectorClock {
  private var counts: [UInt32] = []

  subscript(_ id: Int) -> UInt32 {
    get { id < counts.count ? counts[id] : 0 }
    set {
      while counts.count <= id { counts.append(0) }
      counts[id] = newValue
    }
  }

  mutating func join(_ other: VectorClock) {
    for id in other.counts.indices where other.counts[id] > self[id] { self[id] = other.counts[id] }
  }
}

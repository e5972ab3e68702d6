/// The one total order of sequentially consistent steps.
///
/// C11 demands a total order of all such steps that agrees with happens-before and, on each word, with the modification
/// order: a load comes after the store that it reads and before all later stores. The order of execution is one as long
/// as every step reads the newest store. A step that reads an older one must come before the sequentially consistent
/// steps on later stores, so it is allowed only if none of these must come before it.
///
/// C++20 lets this order differ from happens-before in a rare case (a release and an acquire between two sequentially
/// consistent accesses of the same word, on POWER). Here it agrees, as in C11 and on x86-64, ARM64 and RISC-V.
struct TotalOrder {
  /// Where a step is in the order of one word: at a store, itself before the loads that read it.
  struct Place {
    var rank: Rank
    var isLoad: Bool

    static func < (left: Place, right: Place) -> Bool {
      left.rank < right.rank || left.rank == right.rank && !left.isLoad && right.isLoad
    }
  }

  private struct Event {
    let coroutine: Int
    /// The clock of the step, itself included.
    let clock: VectorClock
    let location: Int
    let place: Place
  }

  private var events: [Event] = []

  mutating func append(_ place: Place, at location: Location, by me: Coroutine) {
    events.append(Event(coroutine: me.id, clock: me.clock, location: location.number, place: place))
  }

  /// Whether a step at `place` fits in, if it happens after what `clock` knows.
  func admits(_ place: Place, at location: Location, clock: VectorClock) -> Bool {
    guard events.contains(where: { $0.location == location.number && place < $0.place }) else { return true }
    // Everything that must come before the step: `known` grows with it, `tops` has the latest place on each word.
    var known = clock
    var tops = [location.number: place]
    var isGrowing = true
    while isGrowing {
      isGrowing = false
      for event in events {
        let precedes = tops[event.location].map { event.place < $0 } ?? false
        let isKnown = event.clock[event.coroutine] <= known[event.coroutine]
        guard isKnown || precedes else { continue }
        if event.location == location.number && place < event.place { return false }
        if !isKnown {
          known.join(event.clock)
          isGrowing = true
        }
        if tops[event.location].map({ $0 < event.place }) ?? true {
          tops[event.location] = event.place
          isGrowing = true
        }
      }
    }
    return true
  }
}

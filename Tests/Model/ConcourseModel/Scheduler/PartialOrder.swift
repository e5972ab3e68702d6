/// Tells the search which coroutines may have to go first, from the order of the steps that depend on each other:
/// dynamic partial-order reduction within a bound of preemptions.
///
/// A *transition* is what a coroutine does from one decision to the next, a *block* what it does until it is preempted
/// or stops. Two transitions depend on each other if they touch the same thing, and one of them writes. They *race* if
/// they are of two coroutines and no chain of other dependences orders them.
///
/// The search first lets the running coroutine go on, or the first that can. It visits another option of that decision
/// only if that one's coroutine races with the transition after the decision, or with any transition of the block that
/// begins there. The latter are the conservative points of Coons, Musuvathi and McKinley, "Bounded partial-order
/// reduction" (2013). Nothing is lost: in an execution that begins with another option, take the earliest block that
/// depends on none before it. Moved to the beginning it costs as many preemptions, for what a block costs depends on
/// its own end; and if there is none whose coroutine is visited, the search has met a race that adds one.
///
/// Where the search meets a known state, it does not see the transitions that follow. Each visit of a state therefore
/// keeps its *future*: which coroutine touches what in any execution from there. All of that counts as a race with the
/// transitions so far, unless they come before what the coroutine does next in any case.
final class PartialOrder {
  typealias Counts = SIMD16<UInt32>

  /// What a transition touches.
  enum Kind: UInt64 {
    /// An atomic, a cell or a log.
    case word
    /// The sleepers on a word: wake-ups and waits.
    case sleepers
    /// The number of changes to words: a change, or a pause, which lasts until the next one. Changes commute.
    case changes
    /// Whether a coroutine sleeps.
    case status
    /// The numbers of new coroutines, and of new descriptors.
    case numbering
    /// Everything. Each transition reads it; a fork, and time that a scenario lets pass, write it.
    case all
    /// The steps that other coroutines would make next: a fork or a trap ends them.
    case ending
  }

  /// A dependence that is not noted, to show that tests find it.
  // SAFETY: accessed only on the exploring thread; explorations run one at a time.
  nonisolated(unsafe) static var ignored: Kind?

  /// The transitions that have touched a thing in this execution.
  private struct Trail {
    var execution = 0
    /// The number of the last transition of each coroutine that has written it, or read it since the last write.
    var writes = Counts()
    var reads = Counts()
    /// What comes before a transition that reads it, or writes it.
    var writeClock = Counts()
    var readClock = Counts()
  }

  /// The decisions of a transition on the search's path.
  private struct Extent {
    /// The one before it, if the coroutine was running already, and those within it.
    var first: Int
    var end: Int
    /// The one at which its block began, or the next one if the coroutine was the only one that could go on.
    var block: Int
    var beganAtDecision: Bool
  }

  /// The coroutines that race with something: a bit for each.
  typealias Racers = UInt32

  /// What the search knows of one decision on its path.
  struct Level {
    /// The coroutines that race with the transition that it is within, or with the one that goes on after it.
    var transition: Racers = 0
    /// The same for that transition and those after it in its block.
    var restOfBlock: Racers = 0
    /// The same for the blocks that began here.
    var blocks: Racers = 0
    /// What all executions from here touch.
    fileprivate var future: [Touches] = []
  }

  /// The coroutines that touch a thing: a bit for each that reads, and 16 bits higher for each that writes.
  fileprivate typealias Touches = UInt32

  private static let all = 0
  private static let changes = 1

  private var numbers: [UInt64: Int] = [:]
  private var trails: [Trail] = []
  private var levels: [Level] = []
  private var futures: [[Touches]] = []
  private var futureNumbers: [[Touches]: Int] = [:]

  // Per execution.
  private var execution = 0
  /// False outside `Model.run()`, and after a known state.
  private var isActive = false
  private var hasMetKnown = false
  private var running = 0
  private var clocks = Array(repeating: Counts(), count: VectorClock.capacity)
  private var extents: [[Extent]] = Array(repeating: [], count: VectorClock.capacity)
  /// The coroutines that exist, and neither sleep nor have ended.
  private var awake: UInt32 = 0
  /// The decisions that the search has followed or added.
  private var depth = 0
  /// The depth when the last transition ended; nil during one.
  private var lastEnd: Int?

  init() {
    _ = number(of: 0, .all)
    _ = number(of: 0, .changes)
  }

  // MARK: - The search

  func beginExecution() {
    execution += 1
    (isActive, hasMetKnown) = (false, false)
    for id in clocks.indices {
      clocks[id] = Counts()
      extents[id].removeAll(keepingCapacity: true)
    }
    (awake, depth, lastEnd) = (0, 0, nil)
  }

  /// The search has followed a decision, or added one.
  func takeDecision(isNew: Bool) {
    if isNew { levels.append(Level()) }
    depth += 1
    if isWithinStep && !extents[running].isEmpty { extents[running][extents[running].count - 1].end = depth }
  }

  /// The search has added a decision to the path, which the next execution takes.
  func addDecision() { levels.append(Level()) }

  /// Whether a store that goes before a read can make a difference: after the last decision, others touch the word of
  /// the store, and write that of the read.
  func mayMatter(_ store: EarlyStore, before read: EarlyStore.Overtaken) -> Bool {
    guard let future = levels.last?.future else { return true }
    func touches(_ key: UInt64) -> Touches {
      let thing = number(of: key, .word)
      return thing < future.count ? future[thing] & ~(0x1_0001 << UInt32(read.coroutine)) : 0
    }
    return touches(store.key) != 0 && touches(read.key) >> 16 != 0
  }

  /// Whether a coroutine is in the middle of its transition.
  var isWithinStep: Bool { lastEnd == nil }

  /// The last decision on the path.
  var last: Level { levels[levels.count - 1] }

  /// Removes the last decision.
  /// - Returns: what follows the state before that decision.
  func removeLast() -> Future {
    let last = levels.removeLast()
    if !levels.isEmpty { add(last.future, to: levels.count - 1) }
    let number = futureNumbers[last.future] ?? futures.count
    if number == futures.count {
      futures.append(last.future)
      futureNumbers[last.future] = number
    }
    return Future(touches: number, transition: last.transition, restOfBlock: last.restOfBlock)
  }

  /// What follows a state.
  struct Future {
    fileprivate let touches: Int
    fileprivate let transition: Racers
    fileprivate let restOfBlock: Racers
  }

  /// The execution has reached a known state.
  /// - Parameter goesOn: Whether the running coroutine can go on.
  /// - Parameter isSame: Whether it could when the state was visited.
  func reach(_ known: Future, goesOn: Bool, isSame: Bool) {
    guard isActive else { return }
    (isActive, hasMetKnown) = (false, true)
    let future = futures[known.touches]
    if !levels.isEmpty { add(future, to: levels.count - 1) }
    if let extent = extents[running].last {
      if isWithinStep {
        mark(extent, transition: known.transition, restOfBlock: known.restOfBlock)
      } else if goesOn {
        mark(extent, transition: 0, restOfBlock: isSame ? known.restOfBlock : .max)
      }
    }
    // A sleeper is woken by another, and a new coroutine is made by one.
    var least = Counts(repeating: .max)
    for id in 0..<VectorClock.capacity where awake & 1 << UInt32(id) != 0 {
      least = pointwiseMin(least, clocks[id])
    }
    let following = (0..<VectorClock.capacity).map { id in
      awake & 1 << UInt32(id) != 0 ? clocks[id] : pointwiseMax(clocks[id], least)
    }
    for thing in future.indices where future[thing] != 0 && trails[thing].execution == execution {
      let trail = trails[thing]
      for id in 0..<VectorClock.capacity {
        let writes = future[thing] & 0x1_0000 << UInt32(id) != 0
        let reads = future[thing] & 1 << UInt32(id) != 0
        if writes || reads {
          findRaces(id, with: conflicts(trail, thing, writes, reads), after: following[id])
        }
      }
    }
  }

  private func add(_ touches: [Touches], to level: Int) {
    let missing = touches.count - levels[level].future.count
    if missing > 0 { levels[level].future.append(contentsOf: repeatElement(0, count: missing)) }
    for thing in touches.indices { levels[level].future[thing] |= touches[thing] }
  }

  // MARK: - Transitions

  /// Begins or ends the time with choices.
  func setActive(_ isActive: Bool) {
    self.isActive = isActive && !hasMetKnown
  }

  /// The running coroutine's transition ends.
  func endTransition() {
    guard isActive else { return }
    lastEnd = depth
    if !extents[running].isEmpty { extents[running][extents[running].count - 1].end = depth }
  }

  /// A transition of a coroutine begins.
  /// - Parameter goesOn: Whether it made the last one too, and has not stopped.
  func beginTransition(of id: Int, goesOn: Bool) {
    guard isActive else { return }
    let isAtDecision = depth > lastEnd ?? 0
    lastEnd = nil
    var extent = Extent(
      first: depth, end: depth, block: isAtDecision ? depth - 1 : depth, beganAtDecision: isAtDecision)
    if goesOn {
      if isAtDecision { extent.first = depth - 1 }
      if let last = extents[id].last {
        (extent.block, extent.beganAtDecision) = (last.block, last.beganAtDecision)
      }
    }
    running = id
    clocks[id][id] += 1
    extents[id].append(extent)
    touch(Self.all, isWrite: false)
  }

  /// No coroutine can continue: whatever follows comes after everything so far.
  func everythingStops() {
    var last = Counts()
    for id in clocks.indices { last = pointwiseMax(last, clocks[id]) }
    for id in clocks.indices { clocks[id] = last }
  }

  /// Time passes while no coroutine can continue. It may wake one of several sleepers, which is not a choice of the next
  /// coroutine: all are visited.
  func timePasses(_ wake: () -> Void) {
    lastEnd = nil
    wake()
    lastEnd = depth
  }

  // MARK: - What a transition does

  /// The running coroutine touches something.
  /// - Parameter key: The same in all executions.
  func touch(_ key: UInt64, _ kind: Kind, isWrite: Bool) {
    guard isActive, kind != Self.ignored else { return }
    touch(number(of: key, kind), isWrite: isWrite)
  }

  /// The same for a word, whose number is known.
  func touch(thing: Int, isWrite: Bool) {
    if isActive && Self.ignored != .word { touch(thing, isWrite: isWrite) }
  }

  func change() {
    if isActive && Self.ignored != .changes { touch(Self.changes, isWrite: true) }
  }

  func pause() {
    if isActive && Self.ignored != .changes { touch(Self.changes, isWrite: false) }
  }

  /// The running coroutine touches everything.
  func touchAll() {
    if isActive && Self.ignored != .all { touch(Self.all, isWrite: true) }
  }

  /// A fork or a trap ends the other coroutines: it depends on each step that one of them would make next, so all that
  /// can go on must also go first.
  func endsOthers() {
    guard isActive, Self.ignored != .ending, let extent = extents[running].last else { return }
    touchAll()
    mark(extent, transition: .max, restOfBlock: .max)
  }

  func made(_ child: Int, by parent: Int) {
    clocks[child] = clocks[parent]
    clocks[child][child] = 0
    awake |= 1 << UInt32(child)
    touch(UInt64(child), .status, isWrite: true)
    touch(0, .numbering, isWrite: true)
  }

  func sleeps(_ id: Int) {
    awake &= ~(1 << UInt32(id))
    touch(UInt64(id), .status, isWrite: true)
  }

  /// The running coroutine, or the time that passes, wakes another one.
  func wakes(_ id: Int) {
    awake |= 1 << UInt32(id)
    guard isActive else { return }
    clocks[id] = pointwiseMax(clocks[id], clocks[running])
    touch(UInt64(id), .status, isWrite: true)
  }

  /// The number of a thing in this search.
  func number(of key: UInt64, _ kind: Kind) -> Int {
    let key = History.mix(key, kind.rawValue)
    if let known = numbers[key] { return known }
    numbers[key] = trails.count
    trails.append(Trail())
    return trails.count - 1
  }

  // MARK: - Races

  private func touch(_ thing: Int, isWrite: Bool) {
    let me = running
    if depth == levels.count && depth > 0 {
      let missing = thing + 1 - levels[depth - 1].future.count
      if missing > 0 { levels[depth - 1].future.append(contentsOf: repeatElement(0, count: missing)) }
      levels[depth - 1].future[thing] |= (isWrite ? 0x1_0000 : 1) << UInt32(me)
    }
    if trails[thing].execution != execution {
      trails[thing] = Trail()
      trails[thing].execution = execution
    }
    findRaces(me, with: conflicts(trails[thing], thing, isWrite, !isWrite), after: clocks[me])
    let number = clocks[me][me]
    if !isWrite {
      clocks[me] = pointwiseMax(clocks[me], trails[thing].writeClock)
      trails[thing].reads[me] = number
      trails[thing].readClock = pointwiseMax(trails[thing].readClock, clocks[me])
    } else if thing == Self.changes {
      clocks[me] = pointwiseMax(clocks[me], trails[thing].readClock)
      trails[thing].writes[me] = number
      trails[thing].writeClock = pointwiseMax(trails[thing].writeClock, clocks[me])
    } else {
      clocks[me] = pointwiseMax(clocks[me], pointwiseMax(trails[thing].writeClock, trails[thing].readClock))
      trails[thing].writes = Counts()
      trails[thing].writes[me] = number
      trails[thing].writeClock = clocks[me]
      (trails[thing].reads, trails[thing].readClock) = (Counts(), Counts())
    }
  }

  /// The last transitions that a touch of a thing depends on.
  private func conflicts(_ trail: Trail, _ thing: Int, _ writes: Bool, _ reads: Bool) -> Counts {
    let isOrdered = reads || thing != Self.changes
    return pointwiseMax(isOrdered ? trail.writes : Counts(), writes ? trail.reads : Counts())
  }

  /// Marks those of the transitions that do not come before what a coroutine does after `clock`.
  private func findRaces(_ id: Int, with numbers: Counts, after clock: Counts) {
    let races = numbers .> clock
    guard any(races) else { return }
    for other in 0..<VectorClock.capacity where other != id && races[other] {
      mark(
        extents[other][Int(numbers[other]) - 1], transition: 1 << UInt32(id), restOfBlock: 1 << UInt32(id))
    }
  }

  /// Marks the decisions of a transition and of its block.
  private func mark(_ extent: Extent, transition: Racers, restOfBlock: Racers) {
    if extent.beganAtDecision { levels[extent.block].blocks |= restOfBlock }
    for level in extent.block + (extent.beganAtDecision ? 1 : 0)..<extent.end {
      levels[level].restOfBlock |= restOfBlock
    }
    for level in extent.first..<extent.end { levels[level].transition |= transition }
  }
}

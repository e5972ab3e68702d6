/// Visits every schedule with at most `bound` preemptions and `stale` stale operations, one execution after the other.
///
/// A coroutine runs until it blocks. At each of its steps another one may run instead while preemptions are left.
/// Choosing the next coroutine after one has blocked, ended or paused is free. At each of its operations on an atomic
/// it may use an older store than the newest while stale operations are left.
///
/// A store that could be made early (`EarlyStore`) is found in an execution that makes it late. So once all executions
/// that follow a path have been visited, those come that make such a store after it. Each counts as a stale operation.
final class DepthFirstSearch: SchedulePolicy {
  private enum Choice: Equatable {
    case thread([Int], continuing: Bool)
    /// Among so many stores.
    case store(Int, step: Int)
    /// A store that is made early. The path without it is another one.
    case early(EarlyStore, step: Int)

    var count: Int {
      switch self {
      case .thread(let options, _): options.count
      case .store(let count, _): count
      case .early: 1
      }
    }
  }

  /// The stores that could be made early before the next decision, and how many of them have been.
  private struct Early {
    /// What is left of the bound at that place.
    var stale = 0
    var found: [(store: EarlyStore, read: EarlyStore.Overtaken)] = []
    var visited = 0
  }

  private struct Node {
    let choice: Choice
    /// Whether a coroutine is in the middle of its step: all options are visited.
    let isWithinStep: Bool
    var index = 0
    /// The options that have been visited: a bit for each.
    var done: UInt32 = 1
    /// The state before it, and the number of this visit.
    let visit: (state: UInt64, number: Int)?
  }

  /// A visit of a state: the coroutine that was running (nil if the choice was free), and what is left of the bounds.
  private struct Visit {
    let running: Int?
    let preemptions: Int
    let stale: Int
    /// Nil until all of it has been visited.
    var future: PartialOrder.Future?

    /// Whether this visit reaches everything that `other` reaches.
    func covers(_ other: Visit) -> Bool {
      // One more preemption makes up for a choice that was free or another coroutine's.
      preemptions >= other.preemptions + (running == nil || running == other.running ? 0 : 1)
        && stale >= other.stale
    }
  }

  private let bound: Int
  private let stale: Int
  private let makesEarlyStores: Bool
  private let mergesStates: Bool
  let partialOrder: PartialOrder?
  private var path: [Node] = []
  /// Before the first decision on the path, and after each.
  private var earlyStores = [Early()]
  private var visited: [UInt64: [Visit]] = [:]

  // Per execution.
  private var depth = 0
  private var preemptionsLeft: Int
  private var staleLeft: Int
  private var branches = true
  /// Executions that ended in a known state.
  private(set) var pruned = 0
  /// The number of different states seen.
  var states: Int { visited.count }

  init(bound: Int, stale: Int, makesEarlyStores: Bool, reduction: Model.Reduction) {
    self.bound = bound
    self.stale = stale
    self.makesEarlyStores = makesEarlyStores
    mergesStates = reduction.contains(.states)
    partialOrder = reduction.contains(.order) ? PartialOrder() : nil
    (preemptionsLeft, staleLeft) = (bound, stale)
  }

  func wantsChoice(continuing: Bool) -> Bool { branches && !(continuing && preemptionsLeft == 0) }

  func choose(_ options: [Int], continuing: Bool, at decision: Int, state: () -> UInt64) -> Int? {
    let index = next(.thread(options, continuing: continuing)) {
      visit(state(), running: continuing ? options[0] : nil)
    }
    if continuing, let index, index != 0 { preemptionsLeft -= 1 }
    return index
  }

  func wantsStore(at step: Int) -> Bool {
    guard branches && staleLeft > 0 else { return false }
    // Before the end of the path, only its own choices: finding the options takes time.
    guard depth < path.count else { return true }
    if case .store(_, step) = path[depth].choice { return true }
    return false
  }

  func chooseStore(among count: Int, of coroutine: Int, at step: Int, state: () -> UInt64) -> Int? {
    let index = next(.store(count, step: step)) {
      // The coroutine's next step is certain, unlike at a choice of the next coroutine.
      visit(History.mix(state(), UInt64(coroutine)), running: coroutine)
    }
    if let index, index != 0 { staleLeft -= 1 }
    return index
  }

  /// The option that this execution takes: that of the path, then the first one, from which the path goes on unless the
  /// state is known.
  private func next(_ choice: Choice, _ visit: () -> (isNew: Bool, number: (UInt64, Int)?)) -> Int? {
    let isNew = depth == path.count
    if isNew {
      guard branches else { return 0 }
      let visit = visit()
      guard visit.isNew else { return 0 }
      append(Node(choice: choice, isWithinStep: partialOrder?.isWithinStep ?? true, visit: visit.number))
    }
    let node = path[depth]
    guard node.choice == choice else { return nil }
    depth += 1
    partialOrder?.takeDecision(isNew: isNew)
    return node.index
  }

  private func append(_ node: Node) {
    path.append(node)
    earlyStores.append(Early())
  }

  // MARK: Early stores

  /// The others go on after an early store, which is a preemption. Executions that begin with the same decisions make
  /// the same stores.
  var earlyPlace: Int? {
    guard makesEarlyStores, branches && staleLeft > 0 && preemptionsLeft > 0 && depth == path.count else {
      return nil
    }
    earlyStores[depth].stale = staleLeft
    return depth
  }

  func mayBeEarly(_ store: EarlyStore, before read: EarlyStore.Overtaken) {
    earlyStores[read.place].found.append((store, read))
  }

  func early(at step: Int) -> [EarlyStore] {
    var stores: [EarlyStore] = []
    while depth < path.count, case .early(let store, step) = path[depth].choice {
      stores.append(store)
      depth += 1
      staleLeft -= 1
      partialOrder?.takeDecision(isNew: false)
    }
    if !stores.isEmpty { preemptionsLeft -= 1 }
    return stores
  }

  private func visit(_ state: UInt64, running: Int?) -> (isNew: Bool, number: (UInt64, Int)?) {
    guard mergesStates else { return (true, nil) }
    let visit = Visit(running: running, preemptions: preemptionsLeft, stale: staleLeft)
    let earlier = visited[state, default: []]
    if let known = earlier.first(where: { $0.covers(visit) && ($0.future != nil || partialOrder == nil) }) {
      // The earlier visit covers everything that can follow.
      branches = false
      pruned += 1
      if let future = known.future {
        partialOrder?.reach(future, goesOn: running != nil, isSame: running == known.running)
      }
      return (false, nil)
    }
    visited[state, default: []].append(visit)
    return (true, (state, earlier.count))
  }

  /// Prepares the next execution.
  /// - Returns: false if none is left.
  func advance() -> Bool {
    depth = 0
    (preemptionsLeft, staleLeft) = (bound, stale)
    branches = true
    partialOrder?.beginExecution()
    while true {
      if addEarlyStore() { return true }
      guard let last = path.last else { return false }
      if let index = nextOption(of: last) {
        path[path.count - 1].index = index
        path[path.count - 1].done |= 1 << UInt32(index)
        earlyStores[path.count] = Early()
        return true
      }
      path.removeLast()
      earlyStores.removeLast()
      if let future = partialOrder?.removeLast(), let visit = last.visit {
        visited[visit.state]![visit.number].future = future
      }
    }
  }

  /// Adds a store that is made early to the path.
  /// - Returns: false if none is left that can make a difference.
  private func addEarlyStore() -> Bool {
    let place = path.count
    while earlyStores[place].visited < earlyStores[place].found.count {
      let (store, read) = earlyStores[place].found[earlyStores[place].visited]
      earlyStores[place].visited += 1
      guard partialOrder?.mayMatter(store, before: read) ?? true, !store.bits.mayBeAddress else { continue }
      append(Node(choice: .early(store, step: read.step), isWithinStep: true, visit: nil))
      partialOrder?.addDecision()
      // Later stores of the coroutine may go before the same read, too.
      let left = earlyStores[place].stale - 1
      if left > 0 {
        earlyStores[place + 1].stale = left
        earlyStores[place + 1].found = earlyStores[place].found.dropFirst(earlyStores[place].visited).filter {
          $0.read.step == read.step
        }
      }
      return true
    }
    return false
  }

  private func nextOption(of node: Node) -> Int? {
    guard let partialOrder, !node.isWithinStep, case .thread(let options, let continuing) = node.choice else {
      return node.index + 1 < node.choice.count ? node.index + 1 : nil
    }
    let level = partialOrder.last
    let needed = continuing ? level.blocks | level.transition : level.blocks
    // A coroutine that cannot go on yet may need any of those that can.
    let needsAll = needed & ~options.reduce(0) { $0 | 1 << UInt32($1) } != 0
    return options.indices.first {
      node.done & 1 << UInt32($0) == 0 && (needsAll || needed & 1 << UInt32(options[$0]) != 0)
    }
  }
}

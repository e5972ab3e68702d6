/// Visits every schedule with at most `bound` preemptions and `stale` stale operations, one execution after the other.
///
/// A coroutine runs until it blocks. At each of its steps another one may run instead while preemptions are left.
/// Choosing the next coroutine after one has blocked, ended or paused is free. At each of its operations on an atomic
/// it may use an older store than the newest while stale operations are left.
final class DepthFirstSearch: SchedulePolicy {
  private enum Choice: Equatable {
    case thread([Int], continuing: Bool)
    /// Among so many stores.
    case store(Int, step: Int)

    var count: Int {
      switch self {
      case .thread(let options, _): options.count
      case .store(let count, _): count
      }
    }

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
  private let mergesStates: Bool
  let partialOrder: PartialOrder?
  private var path: [Node] = []
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

  init(bound: Int, stale: Int, reduction: Model.Reduction) {
    self.bound = bound
    self.stale = stale
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
      path.append(
        Node(choice: choice, isWithinStep: partialOrder?.isWithinStep ?? true, visit: visit.number))
    }
    let node = path[depth]
    guard node.choice == choice else { return nil }
    depth += 1
    partialOrder?.takeDecision(isNew: isNew)
    return node.index
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
    while let last = path.last {
      if let index = nextOption(of: last) {
        path[path.count - 1].index = index
        path[path.count - 1].done |= 1 << UInt32(index)
        return true
      }
      path.removeLast()
      if let future = partialOrder?.removeLast(), let visit = last.visit {
        visited[visit.state]![visit.number].future = future
      }
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

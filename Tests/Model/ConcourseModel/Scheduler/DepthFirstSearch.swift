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
    var index: Int
  }

  /// A visit of a state: the coroutine that was running (nil if the choice was free), and what is left of the bounds.
  private struct Visit {
    let running: Int?
    let preemptions: Int
    let stale: Int

    /// Whether this visit reaches everything that `other` reaches.
    func covers(_ other: Visit) -> Bool {
      // One more preemption makes up for a choice that was free or another coroutine's.
      preemptions >= other.preemptions + (running == nil || running == other.running ? 0 : 1)
        && stale >= other.stale
    }
  }

  private let bound: Int
  private let stale: Int
  private let reduces: Bool
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

  init(bound: Int, stale: Int, reduces: Bool) {
    self.bound = bound
    self.stale = stale
    self.reduces = reduces
    (preemptionsLeft, staleLeft) = (bound, stale)
  }

  func wantsChoice(continuing: Bool) -> Bool { branches && !(continuing && preemptionsLeft == 0) }

  func choose(_ options: [Int], continuing: Bool, at decision: Int, state: () -> UInt64) -> Int? {
    let index = next(.thread(options, continuing: continuing)) {
      isNew(state(), running: continuing ? options[0] : nil)
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
      isNew(History.mix(state(), UInt64(coroutine)), running: coroutine)
    }
    if let index, index != 0 { staleLeft -= 1 }
    return index
  }

  /// The option that this execution takes: that of the path, then the first one, from which the path goes on unless the
  /// state is known.
  private func next(_ choice: Choice, _ isNew: () -> Bool) -> Int? {
    if depth < path.count {
      let node = path[depth]
      guard node.choice == choice else { return nil }
      depth += 1
      return node.index
    }
    guard branches, isNew() else { return 0 }
    path.append(Node(choice: choice, index: 0))
    depth += 1
    return 0
  }

  private func isNew(_ state: UInt64, running: Int?) -> Bool {
    guard reduces else { return true }
    let visit = Visit(running: running, preemptions: preemptionsLeft, stale: staleLeft)
    if visited[state, default: []].contains(where: { $0.covers(visit) }) {
      // The earlier visit covers everything that can follow.
      branches = false
      pruned += 1
      return false
    }
    visited[state, default: []].append(visit)
    return true
  }

  /// Prepares the next execution.
  /// - Returns: false if none is left.
  func advance() -> Bool {
    depth = 0
    (preemptionsLeft, staleLeft) = (bound, stale)
    branches = true
    while let last = path.last {
      if last.index + 1 < last.choice.count {
        path[path.count - 1].index += 1
        return true
      }
      path.removeLast()
    }
    return false
  }
}

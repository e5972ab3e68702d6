/// Visits every schedule with at most `bound` preemptions, one execution after the other.
///
/// A coroutine runs until it blocks. At each of its steps another one may run instead while preemptions are left.
/// Choosing the next coroutine after one has blocked, ended or paused is free.
final class DepthFirstSearch: SchedulePolicy {
  private struct Node {
    let options: [Int]
    let continuing: Bool
    var index: Int
  }

  /// A visit of a state: the coroutine that was running (nil if the choice was free), and the preemptions left.
  private struct Visit {
    let running: Int?
    let left: Int

    /// Whether this visit reaches everything that `other` reaches.
    func covers(_ other: Visit) -> Bool {
      // One more preemption makes up for a choice that was free or another coroutine's.
      left >= other.left + (running == nil || running == other.running ? 0 : 1)
    }
  }

  private let bound: Int
  private let reduces: Bool
  private var path: [Node] = []
  private var visited: [UInt64: [Visit]] = [:]

  // Per execution.
  private var depth = 0
  private var preemptions = 0
  private var branches = true
  /// Executions that ended in a known state.
  private(set) var pruned = 0

  init(bound: Int, reduces: Bool) {
    self.bound = bound
    self.reduces = reduces
  }

  func wantsChoice(continuing: Bool) -> Bool { branches && !(continuing && preemptions >= bound) }

  func choose(_ options: [Int], continuing: Bool, at decision: Int, state: () -> UInt64) -> Int? {
    if depth < path.count {
      let node = path[depth]
      guard node.options == options, node.continuing == continuing else { return nil }
      depth += 1
      return take(node.index, continuing)
    }
    guard branches, isNew(options, continuing, state) else { return 0 }
    path.append(Node(options: options, continuing: continuing, index: 0))
    depth += 1
    return 0
  }

  private func take(_ index: Int, _ continuing: Bool) -> Int {
    if continuing && index != 0 { preemptions += 1 }
    return index
  }

  private func isNew(_ options: [Int], _ continuing: Bool, _ state: () -> UInt64) -> Bool {
    guard reduces else { return true }
    let history = state()
    let visit = Visit(running: continuing ? options[0] : nil, left: bound - preemptions)
    if visited[history, default: []].contains(where: { $0.covers(visit) }) {
      // The earlier visit covers everything that can follow.
      branches = false
      pruned += 1
      return false
    }
    visited[history, default: []].append(visit)
    return true
  }

  /// Prepares the next execution.
  /// - Returns: false if none is left.
  func advance() -> Bool {
    depth = 0
    preemptions = 0
    branches = true
    while let last = path.last {
      if last.index + 1 < last.options.count {
        path[path.count - 1].index += 1
        return true
      }
      path.removeLast()
    }
    return false
  }
}

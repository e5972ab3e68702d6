import Glibc
import Testing

@testable import ConcourseRuntime

/// Random programs of threads that hold queues and wait for others.
extension Engine {
  @Suite("Deadlocks in random programs")
  struct DeadlockStressTests {
    /// Waits lead from one rank to a higher one only, so there is no cycle. An alarm would end the process.
    @Test("S153 ten thousand programs without a cycle end, and none is reported", arguments: 0..<4)
    func ordered(round: Int) {
      // Each thread that sleeps is registered and searches.
      ProcessQueues.shared.blockedThreads.patience = 0
      var dice = Seed.dice(round, of: "ordered")
      for _ in 0..<Sanitizer.shrunk(2500) {
        let program = RankedProgram(&dice)
        let seed = dice.next()
        let ended = onThreads(3) { thread in
          var dice = Dice(seed: seed &+ UInt64(thread))
          for _ in 0..<3 { program.act(above: -1, &dice) }
        }
        guard ended && empties(program.items) else {
          Issue.record("a program without a cycle of waits hangs")
          return
        }
      }
      #expect(ProcessQueues.shared.blockedThreads.deadlocksFound == 0)
    }
  }
}

extension Crash {
  @Suite("Deadlocks in random programs")
  struct DeadlockProgramTests {
    /// Each program either ends or is reported, and what is reported never ends.
    @Test("S153 programs are reported exactly if they hang")
    func unordered() async {
      await #expect(processExitsWith: .success) {
        setenv("CONCOURSE_DEADLOCK", "report", 1)
        ProcessQueues.shared.blockedThreads.patience = 0
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO)
        var dice = Seed.dice(of: "unordered")
        var hanging: [Tally] = []
        for _ in 0..<Sanitizer.shrunk(2000) where hanging.count < 60 {
          let reports = ProcessQueues.shared.blockedThreads.deadlocksFound
          let ended = Tally()
          UnorderedProgram(&dice).start(ended, &dice)
          // Either all threads end, or at least two never do.
          #expect(
            awaitValue { ended.value == 3 || ProcessQueues.shared.blockedThreads.deadlocksFound > reports })
          if ProcessQueues.shared.blockedThreads.deadlocksFound > reports { hanging.append(ended) }
        }
        #expect(hanging.count > 5)
        for ended in hanging { #expect(ended.value < 3, "a reported program has ended") }
      }
    }
  }
}

/// Some trees of queues, in ranks. An item of a tree only waits for trees of higher ranks.
private final class RankedProgram: Sendable {
  private let trees: [[DispatchQueue]]
  let items = DispatchGroup()

  init(_ dice: inout Dice) {
    trees = (0..<3).map { rank in
      let root = DispatchQueue(
        label: "root \(rank)", attributes: dice.hits(oneIn: 3) ? .concurrent : [])
      var tree = [root]
      for number in 0..<Int.random(in: 0...2, using: &dice) {
        tree.append(
          DispatchQueue(
            cLabel: nil, isConcurrent: dice.hits(oneIn: 3), qos: .unspecified, isInactive: false,
            target: number == 0 ? root : tree.randomElement(using: &dice)!,
            mayChangeTarget: dice.hits(oneIn: 2)))
      }
      return tree
    }
  }

  /// One random operation of a thread that holds at most the rank `rank`.
  func act(above rank: Int, _ dice: inout Dice) {
    guard rank + 1 < trees.count else { return }
    let next = Int.random(in: rank + 1..<trees.count, using: &dice)
    let queue = trees[next].randomElement(using: &dice)!
    let seed = dice.next()
    let body: @Sendable () -> Void = { [self] in
      var dice = Dice(seed: seed)
      if dice.hits(oneIn: 4) { usleep(UInt32.random(in: 0..<100, using: &dice)) }
      for _ in 0..<Int.random(in: 0...2, using: &dice) { act(above: next, &dice) }
    }
    switch Int.random(in: 0..<11, using: &dice) {
    case 0...2: queue.sync(execute: body)
    case 3: queue.sync(flags: .barrier, execute: body)
    case 4: queue.asyncAndWait(execute: body)
    case 5: queue.asyncAndWait(flags: .barrier, execute: body)
    case 6: queue.async(group: items, flags: .barrier, execute: body)
    case 7:
      let item = DispatchWorkItem(block: body)
      queue.async(group: items, execute: item)
      item.wait()
    case 8:
      queue.suspend()
      queue.async(group: items, execute: body)
      items.enter()
      DispatchQueue.global().async { [self] in
        queue.resume()
        items.leave()
      }
      queue.sync {}
    case 9 where queue.mayChangeTarget:
      queue.setTarget(queue: dice.hits(oneIn: 2) ? trees[next][0] : nil)
      queue.sync(execute: body)
    default: queue.async(group: items, execute: body)
    }
  }
}

/// Three threads that each take three queues, in an order of their own.
private struct UnorderedProgram {
  private let queues: [DispatchQueue]

  init(_ dice: inout Dice) {
    queues = (0..<3).map { number in
      let root = DispatchQueue(label: "root \(number)", attributes: dice.hits(oneIn: 3) ? .concurrent : [])
      return dice.hits(oneIn: 2)
        ? DispatchQueue(
          label: "child \(number)", attributes: dice.hits(oneIn: 3) ? .concurrent : [], target: root)
        : root
    }
  }

  func start(_ ended: Tally, _ dice: inout Dice) {
    for _ in 0..<3 {
      let order = queues.shuffled(using: &dice)
      let seed = dice.next()
      startThread { [self] in
        var dice = Dice(seed: seed)
        take(order[...], &dice)
        ended.add()
      }
    }
  }

  private func take(_ rest: ArraySlice<DispatchQueue>, _ dice: inout Dice) {
    guard let queue = rest.first else { return }
    let inner = rest.dropFirst()
    if dice.hits(oneIn: 3) { queue.async(flags: dice.hits(oneIn: 2) ? .barrier : []) {} }
    if dice.hits(oneIn: 2) { usleep(UInt32.random(in: 0..<50, using: &dice)) }
    switch Int.random(in: 0..<4, using: &dice) {
    case 0: queue.asyncAndWait { take(inner, &dice) }
    case 1: queue.sync(flags: .barrier) { take(inner, &dice) }
    default: queue.sync { take(inner, &dice) }
    }
  }
}

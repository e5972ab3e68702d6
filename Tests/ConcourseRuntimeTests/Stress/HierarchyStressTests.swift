import Testing

@testable import ConcourseRuntime

extension Engine {
  /// Random trees of queues under random operations from several threads.
  @Suite("Stress: hierarchies")
  struct HierarchyStressTests {
    @Test("S3, S20, S28, S31 exclusion, order and completeness in random hierarchies", arguments: 0..<6)
    func random(round: Int) {
      var dice = Seed.dice(round, of: "hierarchy")
      let tree = Tree(queues: 14, submitters: 4, &dice)
      let actions = Sanitizer.shrunk(3000)
      let seed = dice.next()
      startThread {
        // Items and synchronous callers pile up before the inactive queues until this thread gets here.
        for queue in tree.queues.reversed() { queue.queue.activate() }
      }
      let ended = onThreads(tree.submitters) { submitter in
        var dice = Dice(seed: seed &+ UInt64(submitter))
        for _ in 0..<actions { tree.act(submitter, &dice) }
      }
      #expect(ended && empties(tree.group), "\(tree.text)")
      #expect(tree.ran.value == tree.submitted.value)
      #expect(tree.overlaps.value == 0)
      #expect(tree.disorder.value == 0)
      #expect(tree.brokenBarriers.value == 0)
    }
  }
}

private final class TreeQueue: Sendable {
  let queue: DispatchQueue
  let target: TreeQueue?
  let isSerial: Bool
  let depth: Int
  /// Running items of this serial queue and of the queues that target it: never more than one.
  let inside = Unprotected(0)
  /// The number of the last item run, by submitter. Serial queues only.
  let last: Unprotected<[Int]>
  /// The number of items submitted, by submitter; each element belongs to its submitter.
  let submitted: [Unprotected<Int>]
  /// Running items and barriers of this concurrent queue.
  let readers = Tally()
  let writers = Tally()

  init(_ number: Int, below target: TreeQueue?, submitters: Int, _ dice: inout Dice) {
    self.target = target
    isSerial = dice.hits(oneIn: 2)
    depth = (target?.depth ?? 0) + 1
    var attributes: DispatchQueue.Attributes = isSerial ? [] : .concurrent
    if dice.hits(oneIn: 4) { attributes.insert(.initiallyInactive) }
    let classes: [DispatchQoS] = [.unspecified, .unspecified, .utility, .userInitiated, .background]
    queue = DispatchQueue(
      label: "tree \(number)", qos: classes.randomElement(using: &dice)!, attributes: attributes,
      target: target?.queue)
    last = Unprotected([Int](repeating: 0, count: submitters))
    submitted = (0..<submitters).map { _ in Unprotected(0) }
  }
}

private final class Tree: Sendable {
  let queues: [TreeQueue]
  let submitters: Int
  let group = DispatchGroup()
  let submitted = Tally()
  let ran = Tally()
  let overlaps = Tally()
  let disorder = Tally()
  let brokenBarriers = Tally()

  init(queues count: Int, submitters: Int, _ dice: inout Dice) {
    var made: [TreeQueue] = []
    for number in 0..<count {
      let possible = made.filter { $0.depth < 4 }
      let target = dice.hits(oneIn: 4) ? nil : possible.randomElement(using: &dice)
      made.append(TreeQueue(number, below: target, submitters: submitters, &dice))
    }
    queues = made
    self.submitters = submitters
  }

  /// The queues and their states, for a failing test to show.
  var text: String {
    queues.map { "\($0.queue.description), on \($0.target?.queue.label ?? "a global queue")" }
      .joined(separator: "\n")
  }

  /// One random operation of a submitter.
  func act(_ submitter: Int, _ dice: inout Dice) {
    let place = queues.randomElement(using: &dice)!
    let queue = place.queue
    let barrier = dice.hits(oneIn: 6)
    let flags: DispatchWorkItemFlags = barrier ? .barrier : []
    switch Int.random(in: 0..<12, using: &dice) {
    case 0:
      // No blocking call between the two: the resume must come.
      queue.suspend()
      for _ in 0..<Int.random(in: 0..<4, using: &dice) {
        let item = next(place, submitter, barrier: barrier)
        queue.async(group: group, flags: flags) { item() }
      }
      queue.resume()
    case 1, 2:
      let item = next(place, submitter, barrier: barrier)
      queue.sync(flags: flags) { item() }
    case 3:
      let item = next(place, submitter, barrier: barrier)
      queue.asyncAndWait(flags: flags) { item() }
    case 4:
      let item = next(place, submitter, barrier: barrier)
      queue.async(group: group, execute: DispatchWorkItem(qos: .userInitiated, flags: flags) { item() })
    default:
      let item = next(place, submitter, barrier: barrier)
      queue.async(group: group, flags: flags) { item() }
    }
  }

  /// The submitter's next item for `place`, which checks its own order and exclusion.
  private func next(_ place: TreeQueue, _ submitter: Int, barrier: Bool) -> @Sendable () -> Void {
    place.submitted[submitter].value += 1
    let number = place.submitted[submitter].value
    submitted.add()
    return { [self] in
      var link: TreeQueue? = place
      while let queue = link {
        if queue.isSerial {
          queue.inside.value += 1
          if queue.inside.value != 1 { overlaps.add() }
        }
        link = queue.target
      }
      if place.isSerial {
        if place.last.value[submitter] != number - 1 { disorder.add() }
        place.last.value[submitter] = number
      } else if barrier {
        if place.writers.add() != 1 || place.readers.value != 0 { brokenBarriers.add() }
        place.writers.add(-1)
      } else {
        place.readers.add()
        if place.writers.value != 0 { brokenBarriers.add() }
        place.readers.add(-1)
      }
      ran.add()
      link = place
      while let queue = link {
        if queue.isSerial { queue.inside.value -= 1 }
        link = queue.target
      }
    }
  }
}

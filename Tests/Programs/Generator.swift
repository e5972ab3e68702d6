// From a seed to a program. The same seed and size give the same program on every runtime.

extension Program {
  /// - Parameter size: the number of operations at most, and about their number.
  init(seed: UInt64, size: Int) {
    var generator = Generator(seed: seed, size: size)
    generator.makeObjects()
    generator.makeThreads()
    self = generator.program
  }
}

private struct Generator {
  var program = Program()
  private var dice: Dice
  private var left: Int
  private var number = 0
  private var workItems: [Int] = []
  /// The number of bits that are merged into a source is limited, so that sums do not overflow.
  private var merges = 0

  init(seed: UInt64, size: Int) {
    program.seed = seed
    program.size = size
    dice = Dice(seed: seed)
    left = 1 + dice.below(size)
  }

  mutating func makeObjects() {
    let trees = 1 + dice.below(3)
    for tree in 0..<trees {
      var members: [Int] = []
      for place in 0...dice.below(4) {
        var kind: Program.Queue.Kind = dice.hits(oneIn: 2) ? .serial : .concurrent
        #if CONCOURSE
          if place == 0, dice.hits(oneIn: 8) { kind = .workloop }
        #else
          // The same program, but for workloops, which the toolchain's Swift interface lacks.
          if place == 0, dice.hits(oneIn: 8) { kind = .serial }
        #endif
        var queue = Program.Queue(kind: kind, tree: tree)
        if place > 0 {
          queue.target = members[dice.below(members.count)]
          if dice.hits(oneIn: 6) { (queue.target, queue.moves) = (nil, true) }
        }
        queue.isInactive = kind != .workloop && dice.hits(oneIn: 5)
        members.append(program.queues.count)
        program.queues.append(queue)
      }
    }
    program.queues.append(Program.Queue(kind: .global, tree: -1))
    program.groups = (0...dice.below(2)).map { _ in dice.below(trees + 1) }
    program.gates = (0...dice.below(2)).map { _ in dice.below(trees + 1) }
    program.locks = 1 + dice.below(2)
    program.items = (0...dice.below(2)).map { _ in dice.hits(oneIn: 2) }
    let kinds: [Program.Source.Kind] = [.add, .or, .replace]
    program.sources = (0..<dice.below(3)).map { _ in
      Program.Source(kind: kinds[dice.below(3)], queue: dice.below(program.queues.count))
    }
  }

  mutating func makeThreads() {
    let threads = 1 + dice.below(3)
    for thread in 0..<threads {
      let share = left / (threads - thread)
      var operations: [Operation] = []
      let end = left - share
      while left > end { operations += some(Waits(), depth: 0) }
      program.threads.append(operations)
    }
  }

  /// One operation that is allowed here, with what is inside it, or none if the first choice is not allowed.
  private mutating func some(_ here: Waits, depth: Int) -> [Operation] {
    let verb = verb()
    left -= 1
    guard let inside = program.waits(inside: verb, from: here) else { return [] }
    number += 1
    var operation = Operation(number: number, verb: verb)
    if case .item = verb { workItems.append(number) }
    if case .data = verb {
      for _ in 0..<(2 + dice.below(12)) where left > 0 {
        left -= 1
        number += 1
        operation.inside.append(Operation(number: number, verb: .step(step())))
      }
    } else if Self.hasInside(verb), depth < 4 {
      for _ in 0..<dice.below(depth == 0 ? 5 : 3) where left > 0 {
        operation.inside += some(inside, depth: depth + 1)
      }
    }
    return [operation]
  }

  private static func hasInside(_ verb: Operation.Verb) -> Bool {
    switch verb {
    case .async, .sync, .asyncAndWait, .after, .item, .enter, .notify, .locked, .tryLocked, .handOver,
      .suspended,
      .suspendedSource:
      true
    default: false
    }
  }

  private mutating func queue() -> Int { dice.below(program.queues.count) }

  /// A queue that can be suspended.
  private mutating func ownQueue() -> Int {
    let possible = program.queues.indices.filter {
      program.queues[$0].kind == .serial || program.queues[$0].kind == .concurrent
    }
    return possible.isEmpty ? 0 : possible[dice.below(possible.count)]
  }

  private mutating func verb() -> Operation.Verb {
    let barrier = dice.hits(oneIn: 4)
    let group = dice.below(program.groups.count)
    switch dice.below(64) {
    case 0..<14:
      let member = dice.hits(oneIn: 4) ? group : nil
      return .async(queue(), barrier: barrier, enforced: dice.hits(oneIn: 8), group: member)
    case 14..<20:
      let queue = queue()
      // A workloop traps upon `sync`.
      if program.queues[queue].kind == .workloop { return .asyncAndWait(queue, barrier: barrier) }
      return .sync(queue, barrier: barrier)
    case 20..<22: return .asyncAndWait(queue(), barrier: barrier)
    case 22: return .after(queue(), dice.below(300))
    case 23..<28: return item(barrier, group)
    case 28..<30:
      if let item = workItems.randomElement(using: &dice) { return .cancelItem(item) }
      return .work(dice.below(100))
    case 30..<33: return .submit(item: dice.below(program.items.count), to: queue())
    case 33: return .perform(item: dice.below(program.items.count))
    case 34: return .cancel(item: dice.below(program.items.count))
    case 35..<38: return .enter(group, queue())
    case 38..<41: return .notify(group, queue())
    case 41..<43: return .waitGroup(group)
    case 43: return .pollGroup(group, dice.hits(oneIn: 2) ? 0 : dice.below(200))
    case 44..<46: return .locked(dice.below(program.locks))
    case 46: return .tryLocked(dice.below(program.locks), dice.hits(oneIn: 2) ? 0 : dice.below(200))
    case 47: return .handOver(dice.below(program.gates.count), queue())
    case 48..<52:
      let queue = ownQueue()
      let kind = program.queues[queue].kind
      return kind == .serial || kind == .concurrent ? .suspended(queue) : .work(10)
    case 52:
      guard let source = program.sources.indices.randomElement(using: &dice) else { return .work(10) }
      return .suspendedSource(source)
    case 53..<58: return merge() ?? .work(10)
    case 58:
      guard dice.hits(oneIn: 4), let source = program.sources.indices.randomElement(using: &dice) else {
        return .work(10)
      }
      return .cancelSource(source)
    case 59: return retarget() ?? .work(10)
    case 60: return .loop(1 + dice.below(8))
    case 61..<63: return .data
    default: return .work(dice.below(100))
    }
  }

  private mutating func item(_ isBarrier: Bool, _ group: Int) -> Operation.Verb {
    var use = Operation.ItemUse(barrier: isBarrier)
    if dice.hits(oneIn: 3) { use.group = group }
    if dice.hits(oneIn: 3) { use.notifies = queue() }
    use.cancels = dice.hits(oneIn: 3)
    use.waits = dice.hits(oneIn: 3)
    return .item(queue(), use)
  }

  private mutating func merge() -> Operation.Verb? {
    guard merges < 1000, let source = program.sources.indices.randomElement(using: &dice) else { return nil }
    merges += 1
    switch program.sources[source].kind {
    case .add: return .merge(source, UInt(1 + dice.below(9)))
    case .or: return .merge(source, 1 << UInt(dice.below(4)))
    case .replace: return .merge(source, UInt(merges))
    }
  }

  private mutating func retarget() -> Operation.Verb? {
    guard let moving = program.queues.indices.filter({ program.queues[$0].moves }).randomElement(using: &dice)
    else { return nil }
    let tree = program.queues[moving].tree
    let targets = (0..<moving).filter { program.queues[$0].tree == tree }
    return .retarget(moving, targets[dice.below(targets.count)])
  }

  private mutating func step() -> DataProgram.Step {
    let (to, from, a, b) = (dice.below(4), dice.below(4), dice.below(1000), dice.below(1000))
    switch dice.below(14) {
    case 0..<3:
      return .make(to, count: dice.hits(oneIn: 8) ? 5000 : dice.below(40), isOwned: dice.hits(oneIn: 2))
    case 3..<5: return .append(from, to: to)
    case 5..<7: return .subrange(to, from: from, a, b)
    case 7: return .map(from)
    case 8: return .regions(from)
    case 9: return .stop(from)
    case 10: return .region(from, at: a)
    case 11: return .copy(from, a, b)
    case 12: return dice.hits(oneIn: 2) ? .slice(from, a, b) : .iterate(from)
    default: return .byte(from, at: a)
    }
  }
}

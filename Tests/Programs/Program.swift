// Pure values; this file knows no runtime.

/// A program over named objects, as a value. Numbers name the objects: `queues[3]` is queue 3.
struct Program: Sendable {
  struct Queue: Sendable {
    enum Kind: Sendable { case serial, concurrent, workloop, global }

    var kind: Kind
    /// An earlier queue.
    var target: Int?
    var isInactive = false
    /// Queues that end in one root queue of ours form a tree. Global queues belong to no tree: -1.
    var tree: Int
    /// Whether `retarget` may move it, to earlier queues of its tree. Such a queue is created without a
    /// target.
    var moves = false
  }

  struct Source: Sendable {
    enum Kind: Sendable { case add, or, replace }

    var kind: Kind
    var queue: Int
  }

  var seed: UInt64 = 0
  var size = 0
  var queues: [Queue] = []
  /// The position of each group in the order of waits, see `Waits`.
  var groups: [Int] = []
  /// Semaphores with the value 1, used as locks.
  var locks = 0
  /// The positions of semaphores with the value 0, which hand over from an item to its submitter.
  var gates: [Int] = []
  /// Work items that are submitted and performed repeatedly: whether each is a barrier.
  var items: [Bool] = []
  var sources: [Source] = []
  var threads: [[Operation]] = []
}

/// A call, or several that belong together. What is inside another operation belongs to its item or its
/// scope.
struct Operation: Sendable {
  enum Verb: Sendable {
    case async(Int, barrier: Bool, enforced: Bool, group: Int?)
    case sync(Int, barrier: Bool)
    case asyncAndWait(Int, barrier: Bool)
    /// `asyncAfter`, in microseconds.
    case after(Int, Int)
    /// A work item: submitted, with `notify` registered before; then the calls in the order of their listing.
    case item(Int, ItemUse)
    /// Cancels the work item of the operation with that number, if it exists already.
    case cancelItem(Int)
    case submit(item: Int, to: Int)
    case perform(item: Int)
    case cancel(item: Int)
    /// Enters the group; an item leaves it.
    case enter(Int, Int)
    case notify(Int, Int)
    case waitGroup(Int)
    /// Waits with a timeout, in microseconds.
    case pollGroup(Int, Int)
    /// Waits for a lock, does what is inside, signals it.
    case locked(Int)
    /// The same with a timeout, in microseconds; what is inside is done only if the wait succeeds.
    case tryLocked(Int, Int)
    /// An item signals the semaphore, the caller waits for it.
    case handOver(Int, Int)
    /// Suspends the queue, does what is inside, resumes it.
    case suspended(Int)
    case suspendedSource(Int)
    case merge(Int, UInt)
    case cancelSource(Int)
    case retarget(Int, Int)
    /// `concurrentPerform`.
    case loop(Int)
    /// Steps of a data program are inside.
    case data
    case step(DataProgram.Step)
    /// Yields the processor, or spins.
    case work(Int)
  }

  struct ItemUse: Sendable {
    var barrier = false
    var group: Int?
    var notifies: Int?
    var cancels = false
    var waits = false
  }

  let number: Int
  var verb: Verb
  var inside: [Operation] = []
}

// MARK: - Waits

/// Where a thread stands in the order of all waits. A thread that holds a tree (runs an item of one of its queues,
/// or has suspended one of them) may wait only for trees of a higher number; a group with position p stands
/// before tree p. Hence no program of the generator can deadlock.
struct Waits: Sendable {
  /// The highest tree that the thread holds, or -1; times two, so that positions of groups fit between.
  var held = -2
  /// In a lock's scope nothing may wait, nor be submitted with a wait.
  var isLocked = false

  private func holding(_ place: Int) -> Waits { Waits(held: max(held, place), isLocked: isLocked) }
}

extension Program {
  /// The order of waits inside an operation, or nil if the operation is not allowed where `waits` stands.
  func waits(inside verb: Operation.Verb, from waits: Waits) -> Waits? {
    // The tree of a queue; an item of a global queue owes its end only to those who wait for it.
    func tree(_ queue: Int) -> Int { 2 * queues[queue].tree }
    func blocking(_ place: Int) -> Waits? {
      waits.isLocked || place <= waits.held ? nil : Waits(held: place)
    }
    func free(_ queue: Int, owing place: Int? = nil) -> Waits? {
      if let place, queues[queue].tree >= 0, tree(queue) < place { return nil }
      return Waits(held: max(tree(queue), place ?? -2))
    }
    switch verb {
    case .async(let queue, _, _, let group): return free(queue, owing: group.map { 2 * groups[$0] - 1 })
    case .after(let queue, _): return free(queue)
    case .sync(let queue, _), .asyncAndWait(let queue, _):
      if queues[queue].tree >= 0 { return blocking(tree(queue)) }
      return waits.isLocked ? nil : waits
    case .item(let queue, let use):
      let group = use.group.map { 2 * groups[$0] - 1 }
      if !use.waits { return free(queue, owing: group) }
      guard !waits.isLocked, queues[queue].tree < 0 || tree(queue) > waits.held else { return nil }
      return free(queue, owing: max(waits.held, group ?? -2))
    case .enter(let group, let queue): return free(queue, owing: 2 * groups[group] - 1)
    case .notify(_, let queue): return free(queue)
    case .waitGroup(let group): return blocking(2 * groups[group] - 1)
    case .handOver(let gate, let queue):
      let place = 2 * gates[gate] - 1
      return waits.isLocked || place <= waits.held ? nil : free(queue, owing: place)
    case .locked: return waits.isLocked ? nil : Waits(held: waits.held, isLocked: true)
    case .tryLocked: return Waits(held: waits.held, isLocked: true)
    case .suspended(let queue): return Waits(held: max(waits.held, tree(queue)), isLocked: waits.isLocked)
    case .suspendedSource(let source):
      return Waits(held: max(waits.held, tree(sources[source].queue)), isLocked: waits.isLocked)
    default: return waits
    }
  }

  /// Whether no operation can wait forever.
  var isSafe: Bool {
    func safe(_ operations: [Operation], _ here: Waits) -> Bool {
      operations.allSatisfy { operation in
        guard let inside = waits(inside: operation.verb, from: here) else { return false }
        return safe(operation.inside, inside)
      }
    }
    return threads.allSatisfy { safe($0, Waits()) }
  }
}

// MARK: - Parts

extension Program {
  /// All operations, each before those inside it.
  var operations: [Operation] {
    func flat(_ operations: [Operation]) -> [Operation] { operations.flatMap { [$0] + flat($0.inside) } }
    return threads.flatMap(flat)
  }

  /// The program with these operations only. What was inside an operation that goes takes its place.
  func keeping(_ numbers: Set<Int>) -> Program {
    func kept(_ operations: [Operation]) -> [Operation] {
      operations.flatMap { operation in
        let inside = kept(operation.inside)
        guard numbers.contains(operation.number) else { return inside }
        return [Operation(number: operation.number, verb: operation.verb, inside: inside)]
      }
    }
    var result = self
    result.threads = threads.map(kept)
    return result
  }

  /// The queues on the way from a queue to its root, itself first.
  func chain(_ queue: Int) -> [Int] { [queue] + (queues[queue].target.map(chain) ?? []) }

  /// As `chain`, by way of every target that the program gives a queue at some time.
  func reach(_ queue: Int) -> Set<Int> {
    let later = operations.compactMap { operation -> Int? in
      if case .retarget(queue, let target) = operation.verb { target } else { nil }
    }
    return (later + (queues[queue].target.map { [$0] } ?? [])).reduce([queue]) { $0.union(reach($1)) }
  }

  /// Whether one thread runs everything, in the order in which it is written.
  var isSequential: Bool {
    threads.count { !$0.isEmpty } <= 1 && queues.allSatisfy { !$0.isInactive }
      && operations.allSatisfy {
        switch $0.verb {
        case .sync, .asyncAndWait, .perform, .data, .step, .locked, .work: true
        default: false
        }
      }
  }
}

/// A generator of random numbers whose seed decides all.
struct Dice: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }

  mutating func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &self) }
  mutating func hits(oneIn count: Int) -> Bool { below(count) == 0 }
}

import Glibc
import Testing

import struct CConcourse.concourse_event

@testable import ConcourseModel

/// Whether the searches that leave something out find the outcomes of the one that leaves out nothing: of random small
/// programs, at each bound.
///
/// CONCOURSE_SEED is the seed of the programs, CONCOURSE_MODEL_PROGRAMS their number.
extension ModelSuite {
  @Suite struct Reductions {
    private static func number(_ name: String, _ otherwise: UInt64) -> UInt64 {
      getenv(name).flatMap { UInt64(String(cString: $0)) } ?? otherwise
    }
    private static let seed = number("CONCOURSE_SEED", 1)
    private static let count = Int(number("CONCOURSE_MODEL_PROGRAMS", 400))

    @Test func nothingIsLost() {
      var seeds = SplitMix(state: Self.seed)
      var (compared, without, with) = (0, 0, 0)
      for _ in 0..<Self.count {
        let program = RandomProgram(seeds.next())
        for bound in 0...3 {
          guard let comparison = Comparison(program, bound: bound) else { break }
          compared += 1
          without += comparison.executions
          with += comparison.reducedExecutions
          if let difference = comparison.difference {
            Issue.record(
              "\(difference), of \(program.shrunk(bound: bound)), bound \(bound); seed \(Self.seed)")
            return
          }
        }
      }
      #expect(compared > Self.count && with < without / 2, "\(compared) compared: \(with) of \(without)")
      print("\(compared) searches of random programs: \(with) of \(without) executions are needed")
    }

    /// A pause before another thread's store leaves the thread free to look again after its next pause; a pause after
    /// the store does not. The steps are the same, so only the states tell these apart.
    @Test func aStateTellsWhichChangesCameAfterAPause() throws {
      let program = RandomProgram(
        stale: 1,
        [
          [.store(0, 1, .sequentiallyConsistent), .pause, .store(1, 1, .relaxed)],
          [.pause, .load(0, .sequentiallyConsistent), .load(0, .sequentiallyConsistent), .spin(1)],
        ])
      #expect(try #require(Comparison(program, bound: 0)).difference == nil)
    }

    /// A fork and a trap end the other threads, which may go on first.
    @Test(arguments: [Model.Reduction.states, .order, .all])
    func aForkAndATrapRaceWithLaterSteps(reduce: Model.Reduction) {
      let forked = Self.fork(reduce)
      #expect(forked.result.failure == nil && forked.seen == [0, 1], "\(forked)")
      #expect(Self.trap(reduce).failure != nil)
    }

    private static func fork(_ reduce: Model.Reduction) -> (seen: Set<Int>, result: ModelResult) {
      var seen: Set<Int> = []
      let result = Model.explore("a fork beside a store", bound: 1, reduce: reduce, isScenario: false) {
        let box = Box(0)
        // ORDERING: relaxed; the fork alone decides.
        Model.thread("forks") {
          Process.fork()
          seen.insert(box.word.load(ordering: .relaxed))
        }
        Model.thread("stores") { box.word.store(1, ordering: .relaxed) }
        Model.run()
      }
      return (seen, result)
    }

    /// Fails if an execution without a trap is found.
    private static func trap(_ reduce: Model.Reduction) -> ModelResult {
      Model.explore(
        "a trap beside a store", bound: 1, reduce: reduce, expectedTrap: "boom", isScenario: false
      ) {
        let box = Box(0)
        // ORDERING: relaxed; the trap alone decides.
        Model.thread("traps") { Trap.clientBug(1, box.word.load(ordering: .relaxed) == 0 ? "boom" : "late") }
        Model.thread("stores") { box.word.store(1, ordering: .relaxed) }
        Model.run()
      }
    }

    /// Without that dependence the search does not let the other thread go first.
    @Test func aForkAndATrapThatRaceWithNothingAreFound() {
      PartialOrder.ignored = .ending
      defer { PartialOrder.ignored = nil }
      #expect(Self.fork(.order).seen == [0])
      #expect(Self.trap(.order).failure == nil)
    }

    /// Each dependence is needed: without it the search loses an outcome of one of the programs.
    @Test(arguments: [
      PartialOrder.Kind.word, .sleepers, .changes, .status, .numbering, .all, .ending,
    ])
    func aMissingDependenceIsFound(kind: PartialOrder.Kind) {
      PartialOrder.ignored = kind
      defer { PartialOrder.ignored = nil }
      var seeds = SplitMix(state: 1)
      for _ in 0..<4_000 {
        let program = RandomProgram(seeds.next())
        for bound in 1...2 where Comparison(program, bound: bound, [.order])?.difference != nil { return }
      }
      Issue.record("no program needs \(kind)")
    }
  }
}

/// The searches of one program with all reductions and with none.
private struct Comparison {
  let difference: String?
  let executions: Int
  let reducedExecutions: Int

  private static let most = 3_000

  /// - Returns: nil if the program has too many executions.
  init?(_ program: RandomProgram, bound: Int, _ reductions: [Model.Reduction] = [.states, .order, .all]) {
    func explore(_ reduce: Model.Reduction) -> (outcomes: Set<[Int]>, result: ModelResult) {
      var outcomes: Set<[Int]> = []
      let result = Model.explore(
        "random", bound: bound, stale: program.stale, early: true, maxExecutions: Self.most, allowTime: true,
        reduce: reduce, allowedTrap: RandomProgram.trap, isScenario: false
      ) {
        let run = RandomProgram.Run(program) { outcomes.insert($0) }
        Model.run()
        outcomes.insert(run.outcome)
      }
      return (outcomes, result)
    }
    let full = explore([])
    guard full.result.isComplete || full.result.failure != nil else { return nil }
    var difference: String?
    var least = Int.max
    for reduce in reductions {
      let reduced = explore(reduce)
      least = min(least, reduced.result.executions)
      if (reduced.result.failure == nil) != (full.result.failure == nil) {
        difference = "\(reduce): \(reduced.result) instead of \(full.result)"
      } else if full.result.failure == nil && reduced.outcomes != full.outcomes {
        let (lost, gained) = (
          full.outcomes.subtracting(reduced.outcomes), reduced.outcomes.subtracting(full.outcomes)
        )
        difference = "\(reduce): lost \(lost), gained \(gained)"
      }
      if difference != nil { break }
    }
    self.difference = difference
    executions = full.result.executions
    reducedExecutions = least
  }
}

/// Two or three threads that use a few words, and an event and a clock.
private struct RandomProgram: CustomStringConvertible {
  static let trap = "random"

  enum Operation {
    case load(Int, AtomicLoadOrdering)
    case store(Int, UInt32, AtomicStoreOrdering)
    case add(Int, AtomicUpdateOrdering)
    case exchange(Int, UInt32, UInt32, AtomicUpdateOrdering)
    case wait(Int, UInt32)
    case wake(Int, Int32)
    /// With a deadline.
    case timedWait(Int, UInt32)
    case pause, log, look, advance, timedSleep, isAsleep, signal, clear, spawn, fork, trap, watch
    /// The event queue, for so many milliseconds; -1 for ever.
    case poll(Int32)
    case spin(Int)
    case cell(writing: Bool)
  }

  var threads: [[Operation]]
  let stale: Int
  /// Whether the threads must end, which lets time pass.
  let mustEnd: Bool

  init(stale: Int, _ threads: [[Operation]]) { (self.stale, self.threads, mustEnd) = (stale, threads, false) }

  init(_ seed: UInt64) {
    var random = SplitMix(state: seed)
    func below(_ count: UInt64) -> Int { Int(random.next() % count) }
    let words = 1 + UInt64(below(3))
    let theme = below(7)
    mustEnd = theme == 0
    stale = below(3)
    let threadCount = 2 + below(2)
    let length: UInt64 = threadCount == 2 ? 5 : 3
    let loads: [AtomicLoadOrdering] = [.relaxed, .acquiring, .sequentiallyConsistent]
    let stores: [AtomicStoreOrdering] = [.relaxed, .releasing, .sequentiallyConsistent]
    let updates: [AtomicUpdateOrdering] = [
      .relaxed, .acquiring, .releasing, .acquiringAndReleasing, .sequentiallyConsistent,
    ]
    func operation() -> Operation {
      let word = below(words)
      if below(3) == 0 {
        switch theme {
        case 0:
          return [.look, .advance, .timedSleep, .timedWait(word, UInt32(below(2))), .poll(1), .signal][
            below(6)]
        case 1: return below(2) == 0 ? .wait(word, UInt32(below(2))) : .wake(word, Int32(1 + below(2)))
        case 2: return below(2) == 0 ? .pause : .spin(word)
        case 3: return [.isAsleep, .wait(word, 0), .wake(word, 1), .spawn][below(4)]
        case 4: return [.signal, .clear, .spawn, .log, .poll(-1), .poll(0), .watch][below(7)]
        case 5: return below(2) == 0 ? .fork : .trap
        default: return below(4) == 0 ? .cell(writing: below(2) == 0) : .log
        }
      }
      switch below(4) {
      case 0: return .load(word, loads[below(3)])
      case 1: return .store(word, UInt32(1 + below(2)), stores[below(3)])
      case 2: return .add(word, updates[below(5)])
      default: return .exchange(word, UInt32(below(2)), UInt32(1 + below(2)), updates[below(5)])
      }
    }
    threads = (0..<threadCount).map { _ in (0..<2 + below(length - 1)).map { _ in operation() } }
  }

  var description: String {
    "stale \(stale)\(mustEnd ? ", must end" : "")"
      + threads.map { "\n  " + $0.map { "\($0)" }.joined(separator: "; ") }.joined()
  }

  /// The smallest program that still differs, if one operation is removed at a time.
  func shrunk(bound: Int) -> RandomProgram {
    for thread in threads.indices {
      for index in threads[thread].indices {
        var smaller = self
        smaller.threads[thread].remove(at: index)
        if Comparison(smaller, bound: bound)?.difference != nil { return smaller.shrunk(bound: bound) }
      }
    }
    return self
  }

  /// One execution's state.
  // SAFETY: Sendable because coroutines share one system thread.
  final class Run: @unchecked Sendable {
    private let words = (0..<3).map { _ in Box<UInt32>(0) }
    private let log = Model.Log<Int>()
    private let cell = Model.Cell(0)
    private let event = ModelKernel.make(.event)
    private let poller = Int32(System.createPoller())
    private let whenTrapping: ([Int]) -> Void
    /// What each thread has seen; written by that thread alone.
    private var seen: [[Int]] = []
    private let program: RandomProgram
    private static let interest = Readiness([.readable, .oneShot]).rawValue

    init(_ program: RandomProgram, whenTrapping: @escaping ([Int]) -> Void) {
      self.program = program
      self.whenTrapping = whenTrapping
      _ = System.control(poller, 1, event, Self.interest, token: 1)
      if program.mustEnd { Model.moveClock() }
      for operations in program.threads { start(operations) }
    }

    private func start(_ operations: [Operation]) {
      // A thread that another one makes has a place that its maker has chosen, after those of the program.
      seen.append([])
      let id = seen.count - 1
      let body = {
        for operation in operations { self.perform(operation, id) }
        self.seen[id].append(-1)
      }
      program.mustEnd ? Model.thread("\(id)", body) : Model.background("\(id)", body)
    }

    private func perform(_ operation: Operation, _ id: Int) {
      // ORDERING: those of the random program.
      switch operation {
      case .load(let word, let ordering): note(id, words[word].load(ordering))
      case .store(let word, let value, let ordering): words[word].store(value, ordering)
      case .add(let word, let ordering): note(id, words[word].add(ordering))
      case .exchange(let word, let old, let new, let ordering):
        note(id, words[word].exchange(old, new, ordering))
      case .wait(let word, let value): _ = Futex.wait(words[word].word, expected: value)
      case .wake(let word, let count): Futex.wake(words[word].word, count: count)
      case .timedWait(let word, let value):
        let outcome = Futex.wait(
          words[word].word, expected: value, deadline: .uptime(Clock.uptimeAtStart + 2))
        seen[id].append(outcome == .timedOut ? 1 : 0)
      case .poll(let milliseconds):
        withUnsafeTemporaryAllocation(of: concourse_event.self, capacity: 1) {
          seen[id].append(Int(concourse_epoll_wait(poller, $0.baseAddress!, 1, milliseconds)))
        }
      case .watch: _ = System.control(poller, 3, event, Self.interest, token: 1)
      case .fork: Process.fork()
      case .trap:
        whenTrapping(seen.flatMap { $0 + [-2] } + [-3])
        Trap.clientBug(1, RandomProgram.trap)
      case .pause: Processor.pause()
      case .spin(let word):
        seen[id].append(Spin.wait(rounds: 1) { words[word].load(.relaxed) != 0 } ? 1 : 0)
      case .log: log.append(id)
      case .look: seen[id].append(Int(Clock.uptime() - Clock.uptimeAtStart))
      case .advance: Model.advance(nanoseconds: 1)
      case .timedSleep: Model.sleep(nanoseconds: 2)
      case .isAsleep:
        seen[id].append(SystemThread.isAsleep(UInt32((id + 1) % program.threads.count + 2)) == true ? 1 : 0)
      case .signal: ModelKernel.write(event)
      case .clear: seen[id].append(ModelKernel.readAll(event))
      case .spawn: spawn(id)
      case .cell(let writing): if writing { cell.write(id) } else { _ = cell.read() }
      }
    }

    /// Makes a thread that changes a word, and notes its number.
    private func spawn(_ id: Int) {
      let word = words[id % 2]
      let child = Scheduler.current!.spawn("child", isBackground: true) { word.store(3, .relaxed) }
      note(id, UInt32(child))
    }

    private func note(_ id: Int, _ value: UInt32) { seen[id].append(Int(value)) }

    var outcome: [Int] {
      seen.flatMap { $0 + [-2] } + words.map { Int($0.load(.relaxed)) } + log.entries
    }
  }
}

extension Box<UInt32> {
  // ORDERING: those of the random program, here and below.
  fileprivate func load(_ ordering: AtomicLoadOrdering) -> UInt32 {
    switch ordering {
    case .relaxed: word.load(ordering: .relaxed)
    case .acquiring: word.load(ordering: .acquiring)
    default: word.load(ordering: .sequentiallyConsistent)
    }
  }

  fileprivate func store(_ value: UInt32, _ ordering: AtomicStoreOrdering) {
    word.store(value, ordering: ordering)
  }

  fileprivate func add(_ ordering: AtomicUpdateOrdering) -> UInt32 {
    word.wrappingAdd(1, ordering: ordering).oldValue
  }

  fileprivate func exchange(_ old: UInt32, _ new: UInt32, _ ordering: AtomicUpdateOrdering) -> UInt32 {
    word.compareExchange(expected: old, desired: new, ordering: ordering).original
  }
}

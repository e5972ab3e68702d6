#if LEDGER
  /// What moves, steps and wake-ups take, in nanoseconds, and which processor each thread has: the ledger with time.
  ///
  /// Every thread has a clock. A line serves one move at a time: a move begins when the line is free, takes as long as the
  /// distance between the two processors says, and the operation is done at its end; until then the line's holder goes
  /// on. The scheduler always lets the thread whose clock is least make the next step. So threads that contend for a line
  /// queue up as they would at its home.
  struct Costs: Sendable {
    /// A move between two processors of one cache group, between groups of one socket, and between sockets.
    var withinGroup: Double
    var acrossGroups: Double
    var acrossSockets: Double
    /// An atomic operation on a line that its processor has, with the instructions around it.
    var step: Double
    /// A round of spinning.
    var pause: Double
    /// A wake-up: what the waker pays, and after how long the sleeper goes on then.
    var waking: Double
    var wakeLatency: Double

    /// Processors of a group, of a socket, and of the machine.
    var groupSize: Int
    var socketSize = Int.max
    var processors: Int
    /// The distance of the processors of two threads that are made one after the other.
    var stride = 1

    /// The processor of a thread of the model, by its number: the scenario's body is 0, and the threads that it makes go
    /// round the processors. Threads of one processor move no line between them. (No closure says it: the ledger sees
    /// references that are counted.)
    func processor(_ thread: Int) -> Int { (thread + processors - 1) * stride % processors }

    /// How long a move between two threads takes.
    func move(from: Int, to: Int) -> Double {
      let (from, to) = (processor(from), processor(to))
      if from == to { return 0 }
      if from / socketSize != to / socketSize { return acrossSockets }
      return from / groupSize == to / groupSize ? withinGroup : acrossGroups
    }
  }

  /// The clocks of one execution.
  enum Clocks {
    // SAFETY: all are used on the exploring thread only; explorations run one at a time.
    /// nil for a ledger without time.
    private(set) nonisolated(unsafe) static var costs: Costs?
    // SAFETY: as above.
    /// The clock of the thread that was chosen last.
    private nonisolated(unsafe) static var now = 0.0
    // SAFETY: as above.
    /// A clock for each thread; never freed.
    private nonisolated(unsafe) static let clocks: UnsafeMutablePointer<Double> = {
      let clocks = UnsafeMutablePointer<Double>.allocate(capacity: VectorClock.capacity)
      clocks.initialize(repeating: 0, count: VectorClock.capacity)
      return clocks
    }()

    static func begin(_ costs: Costs?) {
      self.costs = costs
      now = 0
      clocks.update(repeating: 0, count: VectorClock.capacity)
      coming.update(repeating: 0, count: VectorClock.capacity)
    }

    static func time(of thread: Int) -> Double { clocks[thread] }

    /// A line whose home is busy until `free` moves to `me`.
    /// - Returns: When it is free for the next.
    static func move(from owner: Int, free: Double, to me: Int) -> Double {
      guard let costs else { return 0 }
      clocks[me] = max(clocks[me], free) + costs.move(from: owner, to: me)
      return clocks[me]
    }

    // SAFETY: as above.
    /// The line that has come to each thread for its next operation; never freed.
    private nonisolated(unsafe) static let coming: UnsafeMutablePointer<UInt> = {
      let lines = UnsafeMutablePointer<UInt>.allocate(capacity: VectorClock.capacity)
      lines.initialize(repeating: 0, count: VectorClock.capacity)
      return lines
    }()

    static func comes(_ line: UInt, _ me: Int) { coming[me] = line }

    /// Whether the line has come to the thread, whose operation uses it now.
    static func take(_ line: UInt, _ me: Int) -> Bool {
      guard coming[me] == line else { return false }
      coming[me] = 0
      return true
    }

    /// An atomic operation, or a round of spinning.
    static func step(_ me: Int, isPause: Bool) {
      guard let costs else { return }
      clocks[me] += isPause ? costs.pause : costs.step
    }

    // SAFETY: as above.
    /// Whether a thread that goes on has only spun (`Model.release`).
    private nonisolated(unsafe) static var hasSpun = false

    static func releaseSpinners(_ body: () -> Void) {
      hasSpun = true
      body()
      hasSpun = false
    }

    static func wake(_ sleeper: Int, by waker: Int) {
      guard let costs else { return }
      if hasSpun {
        clocks[sleeper] = max(clocks[sleeper], clocks[waker])
        return
      }
      clocks[waker] += costs.waking
      clocks[sleeper] = max(clocks[sleeper], clocks[waker] + costs.wakeLatency)
    }

    /// The position of the thread that is first in time. One that could not go on before goes on now.
    static func choose(_ options: [Int]) -> Int {
      var first = 0
      for index in options.indices where clocks[options[index]] < clocks[options[first]] { first = index }
      now = max(now, clocks[options[first]])
      clocks[options[first]] = now
      return first
    }
  }

  /// At each step the thread whose clock is least.
  final class TimedSchedule: SchedulePolicy {
    func wantsChoice(continuing: Bool) -> Bool { true }

    func choose(_ options: [Int], continuing: Bool, at decision: Int, state: () -> UInt64) -> Int? {
      Clocks.choose(options)
    }

    func wantsStore(at step: Int) -> Bool { false }

    func chooseStore(among count: Int, of coroutine: Int, at step: Int, state: () -> UInt64) -> Int? { 0 }
  }

  extension Model {
    /// Spins on a word that has just been looked at, until another thread changes it and calls `release`. The rounds
    /// are no steps: a line that no thread writes does not move.
    static func spin(on word: UInt) { _ = Scheduler.current!.sleep(on: word + 1, until: nil) }

    /// Those that spin on the word look again.
    static func release(_ word: UInt) {
      Clocks.releaseSpinners { Scheduler.current!.wake(on: word + 1, count: 1_000) }
    }

    /// Runs `scenario` once, in the order of its threads' clocks.
    /// - Returns: Also the nanoseconds in which the counted operations were done.
    static func timed(
      _ name: String, _ costs: Costs, countingFrom first: Int = 0, to last: Int = .max,
      _ scenario: @escaping () -> Void
    ) -> (result: ModelResult, ledger: Ledger, nanoseconds: Double) {
      NodeMagazine.depot.abandonStock()
      let result = once(name, TimedSchedule(), stepLimit: 200_000_000, allowsTime: true) {
        Ledger.begin(countingFrom: first, to: last, costs: costs)
        scenario()
        Ledger.end()
      }
      return (result, Ledger.current, Ledger.current.nanoseconds)
    }
  }
#endif

#if LEDGER
  internal import CModelContext

  /// Counts the cache lines that move between threads.
  ///
  /// Every line has the set of threads that hold a copy. A read without a copy moves the line to the reader. A write
  /// moves it to the writer, unless that is its only holder, and takes the copies of all others. The first use of a line
  /// is not a move. Caches have no limit and prefetch nothing.
  ///
  /// Lines are those of real addresses. In the ledger's build an `Atomic` has nothing but its storage, so that the
  /// engine's objects have their real layout. The ledger sees atomics, nodes (through `PlainMemory`), and the header of
  /// each of the engine's objects and closure contexts, where references are counted.
  struct Ledger {
    static let lineSize: UInt = 64

    /// What has been accessed: a place in the source, or the header of an object.
    enum Field: Hashable {
      case place(file: String, line: UInt)
      case node
      case object(type: String)
    }

    struct Line {
      fileprivate var holders = Holders()
      /// The thread that last wrote or took it, and when it can serve the next move.
      fileprivate var (owner, free) = (0, 0.0)
      /// The moves by the field whose access caused them.
      fileprivate(set) var moves: [Field: Int] = [:]
      /// The classes of the objects that have been made there.
      fileprivate(set) var classes: [String] = []
    }

    /// A set of threads.
    fileprivate struct Holders: Equatable {
      private var bits = SIMD16<UInt64>()
      init() {}
      init(_ thread: Int) { insert(thread) }
      mutating func insert(_ thread: Int) { bits[thread / 64] |= 1 << UInt64(thread % 64) }
      func contains(_ thread: Int) -> Bool { bits[thread / 64] & (1 << UInt64(thread % 64)) != 0 }
      var count: Int { (0..<16).reduce(0) { $0 + bits[$1].nonzeroBitCount } }
    }

    private(set) var lines: [UInt: Line] = [:]
    private(set) var transfers = 0
    /// Copies that writes have taken from other threads.
    private(set) var invalidations = 0
    private(set) var wakes = 0
    private(set) var operations = 0
    /// Whether moves count. Holders are followed at all times.
    private var isCounting = false
    private var first = 0
    private var last = Int.max
    /// When the counted operations began and ended, if the ledger has costs.
    private var (start, end) = (0.0, 0.0)

    // SAFETY: used on the exploring thread only; explorations run one at a time.
    nonisolated(unsafe) static var current = Ledger()
    // SAFETY: as above.
    private nonisolated(unsafe) static var types: [UnsafeRawPointer: Field?] = [:]

    /// Begins a new ledger.
    /// - Parameters:
    ///   - first: How many operations pass before moves count.
    ///   - last: The number of the operation with which counting ends.
    ///   - costs: What the operations take; nil for a ledger without time.
    static func begin(countingFrom first: Int, to last: Int, costs: Costs? = nil) {
      current = Ledger()
      Clocks.begin(costs)
      (current.first, current.last) = (first, last)
      current.isCounting = first == 0
      model_observe_references { Ledger.noteObject(UInt(bitPattern: $0), $1, UInt($2)) }
    }

    /// An object is made, if `size` is not 0, or its references are counted.
    private static func noteObject(_ address: UInt, _ metadata: UnsafeRawPointer, _ size: UInt) {
      guard let field = field(of: metadata) else { return }
      // A retain or release writes the word after the metadata.
      if size == 0, case .object(let type) = field, constants.contains(type) { return }
      guard size > 0 else { return current.touch(address + 8..<address + 16, writes: true, field) }
      current.touch(address..<address + size, writes: true, field)
      guard case .object(let type) = field, type != "closure" else { return }
      for number in address / lineSize...(address + size - 1) / lineSize
      where !current.lines[number, default: Line()].classes.contains(type) {
        current.lines[number, default: Line()].classes.append(type)
      }
    }

    /// Objects that are constants of the engine, whose users count no references; in the model they are variables.
    private static let constants: Set<String> = [
      "EventLoop", "ProcessQueues", "Runtime", "TimerTables", "WatchTable",
    ]

    static func end() { model_observe_references(nil) }

    /// Counts an operation of the path.
    static func operation() {
      current.operations += 1
      if current.operations == current.first {
        current.isCounting = true
        current.start = current.time
      }
      if current.operations == current.last { current.isCounting = false }
      if current.operations <= current.last { current.end = current.time }
    }

    static func wake() { if current.isCounting { current.wakes += 1 } }

    /// A sleeper goes on, after a while.
    static func wake(_ sleeper: Int) {
      if let me = Scheduler.runningThread { Clocks.wake(sleeper, by: me) }
    }

    /// An atomic operation, with the instructions around it, or a round of spinning.
    static func step(isPause: Bool = false) {
      if let me = Scheduler.runningThread { Clocks.step(me, isPause: isPause) }
    }

    /// Sets the running thread's clock to when the line has come, if the operation has to move it.
    /// - Returns: Whether it has.
    static func awaitLine(_ number: UInt, writes: Bool) -> Bool {
      guard Clocks.costs != nil, let me = Scheduler.runningThread, let line = current.lines[number] else {
        return false
      }
      let isMine = line.holders.contains(me)
      guard line.holders.count > 0, writes ? !(isMine && line.holders.count == 1) : !isMine else {
        return false
      }
      current.move(number, to: me)
      Clocks.comes(number, me)
      return true
    }

    private mutating func move(_ number: UInt, to me: Int) {
      guard Clocks.costs != nil, let line = lines[number] else { return }
      lines[number]!.free = Clocks.move(from: line.owner, free: line.free, to: me)
      lines[number]!.owner = me
    }

    /// Nanoseconds on the clock of the running thread.
    private var time: Double { Scheduler.runningThread.map(Clocks.time) ?? 0 }

    /// How long the counted operations took.
    var nanoseconds: Double { end - start }

    /// Transfers per operation.
    var perOperation: Double { Double(transfers) / Double(counted) }
    var counted: Int { min(operations, last) - first }

    mutating func touch(_ addresses: Range<UInt>, writes: Bool, _ field: Field) {
      guard let me = Scheduler.runningThread else { return }
      for number in addresses.lowerBound / Self.lineSize...(addresses.upperBound - 1) / Self.lineSize {
        touch(line: number, by: me, writes: writes, field)
      }
    }

    mutating func touch(line number: UInt, by me: Int, writes: Bool, _ field: Field) {
      var moves = false
      var copies = 0
      do {
        let holders = lines[number]?.holders ?? Holders()
        copies = holders.count
        let isMine = holders.contains(me)
        moves = copies > 0 && (writes ? !(isMine && copies == 1) : !isMine)
        if isMine { copies -= 1 }
      }
      let hasCome = Clocks.take(number, me)
      if moves && !hasCome { move(number, to: me) }
      if writes {
        lines[number, default: Line()].holders = Holders(me)
        lines[number]!.owner = me
      } else if moves || copies == 0 {
        lines[number, default: Line()].holders.insert(me)
      }
      guard moves && isCounting else { return }
      transfers += 1
      if writes { invalidations += copies }
      lines[number]!.moves[field, default: 0] += 1
    }

    /// The field of an object's header; nil if the object is not the engine's.
    private static func field(of metadata: UnsafeRawPointer) -> Field? {
      if let known = types[metadata] { return known }
      // SAFETY: metadata begins with its kind, which is a pointer or 0 for a class.
      let kind = metadata.load(as: UInt.self)
      var field: Field?
      if kind == 0 || kind > 0x7FF {
        // SAFETY: metadata of a class is what its type value points to.
        let name = _typeName(unsafeBitCast(metadata, to: Any.Type.self))
        let isEngine = name.hasPrefix("ConcourseModel.") && !name.hasPrefix("ConcourseModel.Model")
        let isOurs = ["Scheduler", "Coroutine", "RandomSchedule", "Location", "File", "Poller"].contains {
          name.hasSuffix(".\($0)")
        }
        if isEngine && !isOurs { field = .object(type: String(name.dropFirst("ConcourseModel.".count))) }
      } else if kind == 0x400 || kind == 0x500 {
        field = .object(type: "closure")
      }
      types[metadata] = .some(field)
      return field
    }
  }

  /// At each step any thread that can go on, with the same probability: threads that are equally quick.
  final class RandomSchedule: SchedulePolicy {
    private var generator: SplitMix
    init(seed: UInt64) { generator = SplitMix(state: seed) }

    func wantsChoice(continuing: Bool) -> Bool { true }

    func choose(_ options: [Int], continuing: Bool, at decision: Int, state: () -> UInt64) -> Int? {
      Int(generator.next() % UInt64(options.count))
    }

    func wantsStore(at step: Int) -> Bool { false }

    func chooseStore(among count: Int, of coroutine: Int, at step: Int, state: () -> UInt64) -> Int? { 0 }
  }

  extension Model {
    /// Runs `scenario` once, under a random schedule, with a ledger.
    static func ledger(
      _ name: String, seed: UInt64 = 1, countingFrom first: Int = 0, to last: Int = .max,
      _ scenario: @escaping () -> Void
    ) -> (result: ModelResult, ledger: Ledger) {
      // The nodes of the execution before are left alone.
      NodeMagazine.depot.abandonStock()
      let result = once(name, RandomSchedule(seed: seed), stepLimit: 200_000_000, allowsTime: true) {
        Ledger.begin(countingFrom: first, to: last)
        scenario()
        Ledger.end()
      }
      return (result, Ledger.current)
    }
  }
#endif

import Synchronization

/// What an operation asks for.
struct Ordering {
  var acquires = false
  var releases = false
  /// Whether it is sequentially consistent.
  var isTotal = false

  init(_ ordering: AtomicLoadOrdering) {
    acquires = ordering != .relaxed
    isTotal = ordering == .sequentiallyConsistent
  }

  init(_ ordering: AtomicStoreOrdering) {
    releases = ordering != .relaxed
    isTotal = ordering == .sequentiallyConsistent
  }

  init(_ ordering: AtomicUpdateOrdering) {
    acquires = ordering != .relaxed && ordering != .releasing
    releases = ordering != .relaxed && ordering != .acquiring
    isTotal = ordering == .sequentiallyConsistent
  }
}

#if !LEDGER
  /// One operation on an atomic word: its scheduling point, the choice of the store that it reads or follows, and its
  /// record. By default that is the newest store; `Scheduler.choose` may take another one that C11 allows.
  struct Access {
    private let scheduler: Scheduler
    private let location: Location
    private let address: UInt
    private let isPrivate: Bool
    private let key: UInt64
    private let file: StaticString
    private let line: UInt
    private let function: StaticString

    /// Comes to the operation's scheduling point, which a quiet one does not have.
    /// - Parameter bits: The word's contents, for its first access in this execution.
    /// - Returns: nil outside executions.
    init?(
      _ word: WordIdentity, at address: UInt, file: StaticString, line: UInt, function: StaticString,
      isQuiet: Bool,
      bits: () -> WordBits
    ) {
      guard let scheduler = Scheduler.current, scheduler.isExecuting else { return nil }
      self.scheduler = scheduler
      self.address = address
      key = word.key
      self.file = file
      self.line = line
      self.function = function
      isPrivate = scheduler.isPrivate(file)
      if isQuiet { scheduler.countStep() } else if !isPrivate { scheduler.arrive() }
      location = scheduler.location(of: word, bits: bits)
      let me = scheduler.running!
      if let maker = word.maker(in: scheduler), me.clock[maker.id] < maker.count {
        scheduler.fail(.race, "the word at \(file):\(line) is used while \(maker.id) makes it")
      }
      if isPrivate, let other = location.stranger(to: me.id, clock: me.clock) {
        scheduler.fail(.race, "\(file):\(line) uses a word that is private, while \(other) uses it")
      }
    }

    private var me: Coroutine { scheduler.running! }

    // MARK: - Operations

    func load(_ ordering: Ordering) -> WordBits {
      let ordering = mutated("load", ordering)
      if !ordering.acquires { beforeRead() }
      let index = choose(clock: me.clock) { admitsLoad($0, ordering) }
      var bits = location.messages[index].bits
      var step = Step(.load, at: address, was: bits, is: bits, file: file, line: line)
      let isBlind = Mutation.meets(.blind, "load", file, line) || ModelFaults.plants(.stale, file, function)
      if isBlind, let stale = scheduler.lastSeen(for: step) {
        bits = stale
        step = step.reading(stale)
      }
      read(index, ordering, step)
      return bits
    }

    /// - Returns: whether the store is now the newest.
    func store(_ bits: WordBits, _ ordering: Ordering) -> Bool {
      let ordering = mutated("store", ordering)
      if let rank = scheduler.reaches(bits, after: nil, ordering, at: location) {
        return reach(rank, ordering, Step(.store, at: address, was: bits, is: bits, file: file, line: line))
      }
      let index = choose(clock: me.clock) { admitsStore(after: $0, ordering) }
      let isNewest = index == location.newest
      if ModelFaults.plants(.noWrite, file, function) {
        let bits = location.messages[index].bits
        read(index, ordering, Step(.load, at: address, was: bits, is: bits, file: file, line: line))
        return false
      }
      let step = Step(
        .store, at: address, was: location.messages[index].bits, is: bits, file: file, line: line)
      write(bits, after: index, ordering, step)
      return isNewest
    }

    /// One indivisible read-modify-write.
    func update(_ ordering: Ordering, _ change: (WordBits) -> WordBits) -> (old: WordBits, isNewest: Bool) {
      let ordering = mutated("update", ordering)
      if !ordering.acquires { beforeRead() }
      let index = choose(clock: me.clock) { admitsStore(after: $0, ordering) }
      let isNewest = index == location.newest
      let old = location.messages[index].bits
      if ModelFaults.plants(.noWrite, file, function) {
        read(index, ordering, Step(.load, at: address, was: old, is: old, file: file, line: line))
        return (old, false)
      }
      let new = change(old)
      if let rank = scheduler.reaches(new, after: index, ordering, at: location) {
        let step = Step(.update, at: address, was: new, is: new, file: file, line: line)
        return (old, reach(rank, ordering, step))
      }
      write(
        new, after: index, ordering, Step(.update, at: address, was: old, is: new, file: file, line: line))
      return (old, isNewest)
    }

    func compareExchange(
      _ expected: WordBits, _ desired: WordBits, _ success: Ordering, _ failure: Ordering
    ) -> (exchanged: Bool, original: WordBits, isNewest: Bool) {
      let (success, failure) = mutated(success, failure)
      if !success.acquires || !failure.acquires { beforeRead() }
      // Compares bits, like the processor.
      let index = choose(clock: me.clock) {
        location.messages[$0].bits == expected ? admitsStore(after: $0, success) : admitsLoad($0, failure)
      }
      let isNewest = index == location.newest
      let old = location.messages[index].bits
      guard old == expected else {
        read(index, failure, Step(.failedUpdate, at: address, was: old, is: old, file: file, line: line))
        return (false, old, isNewest)
      }
      if ModelFaults.plants(.noWrite, file, function) {
        read(index, success, Step(.load, at: address, was: old, is: old, file: file, line: line))
        return (true, old, false)
      }
      if let rank = scheduler.reaches(desired, after: index, success, at: location) {
        let step = Step(.update, at: address, was: desired, is: desired, file: file, line: line)
        return (true, old, reach(rank, success, step))
      }
      write(
        desired, after: index, success,
        Step(.update, at: address, was: old, is: desired, file: file, line: line))
      return (true, old, isNewest)
    }

    /// The kernel's look at a word before it lets a thread sleep on it. Sees what happened before each wake-up on it
    /// that found no sleeper, as the kernel's own barriers ensure; it orders nothing else.
    /// - Returns: whether the word has the value.
    func compareInKernel(_ expected: WordBits) -> Bool {
      scheduler.endOvertaking()
      let newest = location.newest
      // Only a stale value that lets the thread sleep makes a difference.
      let isNew = location.messages[newest].bits != expected
      let clock = me.clock.joined(scheduler.kernelClock(of: address))
      let index = isNew ? choose(clock: clock) { location.messages[$0].bits == expected } : newest
      let bits = location.messages[index].bits
      let sleeps = bits == expected || ModelFaults.futexSleepsRegardless
      read(
        index, Ordering(AtomicLoadOrdering.relaxed),
        Step(sleeps ? .wait : .failedWait, at: address, was: bits, is: bits, file: file, line: line))
      return sleeps
    }

    // MARK: - Choosing and recording

    /// The ordering, unless this process mutates it.
    private func mutated(_ operation: String, _ ordering: Ordering) -> Ordering {
      if Mutation.isRecording { Mutation.record(operation, file, line, ordering) }
      if ModelFaults.plants(.relaxed, file, function) { return Ordering(AtomicLoadOrdering.relaxed) }
      guard let mutation = Mutation.current, mutation.meets(operation, file, line) else { return ordering }
      return mutation.applied(to: ordering, isFailure: false)
    }

    /// The same for a compare-exchange.
    private func mutated(_ success: Ordering, _ failure: Ordering) -> (Ordering, Ordering) {
      let operation = "compareExchange"
      if Mutation.isRecording { Mutation.record(operation, file, line, success, failure) }
      if ModelFaults.plants(.relaxed, file, function) {
        return (Ordering(AtomicLoadOrdering.relaxed), Ordering(AtomicLoadOrdering.relaxed))
      }
      guard let mutation = Mutation.current, mutation.meets(operation, file, line) else {
        return (success, failure)
      }
      return (mutation.applied(to: success, isFailure: false), mutation.applied(to: failure, isFailure: true))
    }

    private func beforeRead() {
      if !isPrivate { scheduler.beforeRead(key) }
    }

    private func choose(clock: VectorClock, where isAllowed: (Int) -> Bool) -> Int {
      isPrivate ? location.newest : scheduler.choose(in: location, clock: clock, where: isAllowed)
    }

    private func admitsLoad(_ index: Int, _ ordering: Ordering) -> Bool {
      guard ordering.isTotal else { return true }
      let message = location.messages[index]
      return scheduler.total.admits(
        .init(rank: message.rank, isLoad: true), at: location, clock: me.clock.joined(message.released))
    }

    private func admitsStore(after index: Int, _ ordering: Ordering) -> Bool {
      guard location.isOpen(after: index) else { return false }
      guard ordering.isTotal else { return true }
      let clock = ordering.acquires ? me.clock.joined(location.messages[index].released) : me.clock
      return scheduler.total.admits(
        .init(rank: location.rank(after: index), isLoad: false), at: location, clock: clock)
    }

    private func read(_ index: Int, _ ordering: Ordering, _ step: Step) {
      let message = location.messages[index]
      let isStale = index != location.newest
      if isStale && !admitsLoad(index, ordering) {
        scheduler.fail(.impossible, "its own early store is in the way")
      }
      if !isPrivate { scheduler.orderEarlyStores(ordering, reading: message, isUpdate: false) }
      let history = location.read(index, by: me)
      if isPrivate { return }
      scheduler.partialOrder?.touch(thing: location.thing, isWrite: false)
      if ordering.acquires { me.clock.join(message.released) }
      if ordering.isTotal {
        scheduler.total.append(.init(rank: message.rank, isLoad: true), at: location, by: me)
      }
      me.history = history
      scheduler.finish(step, at: location, isStale ? " (not the newest)" : "")
    }

    private func write(_ bits: WordBits, after index: Int, _ ordering: Ordering, _ step: Step) {
      let message = location.messages[index]
      let isUpdate = step.kind == .update
      let rank = location.rank(after: index)
      let isStale = index != location.newest
      if isStale && !admitsStore(after: index, ordering) {
        scheduler.fail(.impossible, "its own early store is in the way")
      }
      if !isPrivate { scheduler.orderEarlyStores(ordering, reading: message, isUpdate: isUpdate) }
      if isUpdate && ordering.acquires { me.clock.join(message.released) }
      // A read-modify-write continues the release sequence of the store that it reads. Any other store ends it.
      var released = isUpdate ? message.released : VectorClock()
      if ordering.releases { released.join(me.clock) }
      let history = location.insert(
        bits, after: index, isUpdate: isUpdate, released: released, by: me,
        at: scheduler.steps)
      if isPrivate { return }
      if !ordering.releases {
        scheduler.mayBeEarly(
          EarlyStore(key: key, rank: rank, bits: bits, read: isUpdate ? message.bits : nil), was: message.bits
        )
      }
      scheduler.partialOrder?.touch(thing: location.thing, isWrite: true)
      if ordering.isTotal { scheduler.total.append(.init(rank: rank, isLoad: false), at: location, by: me) }
      me.history = history
      scheduler.finish(step, at: location, isStale ? " (before newer stores)" : "")
    }

    /// The coroutine comes to a store that it has made early.
    /// - Returns: whether it is the newest.
    private func reach(_ rank: Rank, _ ordering: Ordering, _ step: Step) -> Bool {
      guard let (history, index) = location.reach(rank, by: me) else {
        scheduler.fail(.impossible, "a newer store has been seen")
      }
      let before = location.messages[index - 1]
      scheduler.orderEarlyStores(ordering, reading: before, isUpdate: step.kind == .update)
      if ordering.acquires { me.clock.join(before.released) }
      scheduler.partialOrder?.touch(thing: location.thing, isWrite: false)
      me.history = history
      scheduler.finish(step, at: location, " (made early)")
      scheduler.endEarlyStore(rank, at: location)
      return index == location.newest
    }
  }
#endif

/// Which atomic it is, wherever it is moved to, and which coroutine has made it in which execution.
struct WordIdentity {
  let number: UInt32
  /// The same in all executions of a scenario: its maker, and how many words that has made before. Two words may have
  /// the same key, at the cost of dependences that do not exist.
  let key: UInt64
  private let execution: UInt32
  private let coroutine: UInt32
  private let count: UInt32

  // SAFETY: used on the exploring thread only; explorations run one at a time.
  private nonisolated(unsafe) static var last: UInt32 = 0

  // SAFETY: as above.
  private nonisolated(unsafe) static var withoutMaker = (base: UInt64(0), count: UInt64(0))

  /// Words that no coroutine makes have keys from `base` while `body` runs.
  static func keysWithoutMaker(from base: UInt64, _ body: () -> Void) {
    let previous = withoutMaker
    withoutMaker = (base << 32, 0)
    body()
    withoutMaker = previous
  }

  /// The next key, for a word or for something like it.
  static func nextKey() -> UInt64 {
    if let scheduler = Scheduler.current, scheduler.isExecuting, let me = scheduler.running {
      me.things += 1
      return UInt64(me.id + 1) << 32 | 1 << 31 | me.things
    }
    withoutMaker.count += 1
    return withoutMaker.base | withoutMaker.count
  }

  static func beginAfresh() { withoutMaker = (0, 0) }

  /// A new word, made by the running coroutine.
  init() {
    Self.last &+= 1
    number = Self.last
    key = Self.nextKey()
    if let scheduler = Scheduler.current, scheduler.isExecuting, let me = scheduler.running {
      (execution, coroutine, count) = (scheduler.number, UInt32(me.id), me.clock[me.id])
    } else {
      (execution, coroutine, count) = (0, 0, 0)
    }
  }

  /// The coroutine that has made the word in this execution, and its clock then.
  func maker(in scheduler: Scheduler) -> (id: Int, count: UInt32)? {
    execution == scheduler.number ? (Int(coroutine), count) : nil
  }
}

// Where many threads read one concurrent queue at once, a count of readers in the state word is a cache line that each of
// them takes away from the others, twice for an item. With more than two processors, synchronous readers that meet there
// often are counted *apart*: in indicators, one for each processor, in cache lines of their own.
//
// The word then has `Snapshot.standing` more readers than are counted there. These places stand for all readers that the
// indicators count, so that a barrier finds readers and waits. The thread for which readers are in the way, or that must
// know their number, closes the indicators: it adds them up, and gives back the standing places but for the sum. A closed
// indicator does not change, and a reader that finds its indicator closed uses the word. So each place is counted once,
// wherever it is taken and given back; a single indicator may be below zero.
//
// Asynchronous items are counted in the word as before. Each has a reference to the queue of its own.
//
// One thread opens the indicators: the one that has added the standing places. It sets `apart` when all are open, unless
// something waits by then. One thread closes them: the one that clears `apart`, or the one that could not set it. If it
// loses its processor meanwhile, the queue waits for it. Readers that come later than an entry find the list not empty,
// and wait behind it, whatever the indicators say.

/// The indicators of one queue.
struct ReaderIndicators: ~Copyable {
  /// The indicators are opened after this many collisions in the word, each soon after the one before.
  private static var patience: Int { Int(Tuning.value(16, inModel: 1)) }
  /// The same for each indicator, once they have been closed: opening and closing them then takes little of the time.
  private static var patienceAfterBarrier: Int { Int(Tuning.value(16, inModel: 0)) }
  /// In nanoseconds. Rarer collisions cost less than the memory of the indicators.
  private static let soon: UInt64 = 1_000_000
  /// The value of an indicator that is closed.
  private static let closed = Int.min
  /// From one indicator to the next: two cache lines, since processors fetch pairs of them.
  private static let stride = 128

  /// The number of indicators, a power of two, then the indicators, each at a multiple of the stride. Made on first use. The
  /// first field, for `concourse report`.
  private let memory = Atomic<UnsafeMutableRawPointer?>(nil)
  // ORDERING: relaxed, all three; they only decide when the indicators are opened.
  private let patienceLeft = Atomic<Int>(patience)
  private let patienceInAll = Atomic<Int>(patience)
  private let lastCollision = Atomic<UInt64>(0)

  /// A reader has met another in the word.
  /// - Returns: whether the readers should be counted apart.
  func collided() -> Bool {
    let now = Clock.uptime()
    // ORDERING: relaxed, all; see above.
    let isSoon = now &- lastCollision.exchange(now, ordering: .relaxed) < Self.soon
    if !isSoon { patienceLeft.store(patienceInAll.load(ordering: .relaxed), ordering: .relaxed) }
    return patienceLeft.wrappingSubtract(1, ordering: .relaxed).newValue <= 0
  }

  /// Opens all indicators. Only for the thread that has added the standing places.
  func open() {
    // ORDERING: relaxed; the thread that opened them before has released the word since, and this one has acquired it.
    let memory = self.memory.load(ordering: .relaxed) ?? make()
    for number in 0..<Self.count(memory) {
      // ORDERING: releasing; pairs with `take`: a reader sees what the barriers before it wrote.
      Self.indicator(number, memory).pointee.store(0, ordering: .releasing)
    }
  }

  private func make() -> UnsafeMutableRawPointer {
    let processors =
      PoolSize.topology?.sizes.reduce(0, +) ?? max(PoolSize.processorsAtStart, Processor.affinityCount)
    var count = 1
    while count < processors { count *= 2 }
    let memory = UnsafeMutableRawPointer.allocate(
      byteCount: (count + 1) * Self.stride, alignment: Self.stride)
    memory.storeBytes(of: count, as: Int.self)
    for number in 0..<count {
      (memory + (number + 1) * Self.stride).bindMemory(to: Atomic<Int>.self, capacity: 1)
        .initialize(to: Atomic(Self.closed))
    }
    // ORDERING: releasing; publishes the indicators to readers.
    self.memory.store(memory, ordering: .releasing)
    return memory
  }

  private static func count(_ memory: UnsafeMutableRawPointer) -> Int { memory.load(as: Int.self) }

  /// The number of indicators; 0 before they are first opened. For tests.
  // ORDERING: acquiring; as in `own`.
  var count: Int { memory.load(ordering: .acquiring).map(Self.count) ?? 0 }

  private static func indicator(
    _ number: Int, _ memory: UnsafeMutableRawPointer
  ) -> UnsafeMutablePointer<Atomic<Int>> {
    // SAFETY: `make` has bound the memory.
    (memory + (number + 1) * stride).assumingMemoryBound(to: Atomic<Int>.self)
  }

  /// The indicator of the calling thread. Threads that are made together have ids in a row, so they seldom share one.
  @inline(__always)
  private func own(_ thread: UInt32) -> UnsafeMutablePointer<Atomic<Int>>? {
    // ORDERING: acquiring; pairs with the store in `make`.
    guard let memory = memory.load(ordering: .acquiring) else { return nil }
    return Self.indicator(Int(thread) & (Self.count(memory) - 1), memory)
  }

  /// Takes a reader's place.
  /// - Returns: false if the indicators are closed.
  func take(_ thread: UInt32) -> Bool {
    guard let indicator = own(thread) else { return false }
    // ORDERING: relaxed; confirmed by the compare-exchange.
    var seen = indicator.pointee.load(ordering: .relaxed)
    while seen != Self.closed {
      // ORDERING: acquiring; pairs with `open`.
      let (done, original) = indicator.pointee.weakCompareExchange(
        expected: seen, desired: seen + 1, successOrdering: .acquiring, failureOrdering: .relaxed)
      if done { return true }
      seen = original
    }
    return false
  }

  /// Gives back a reader's place, wherever it was taken.
  /// - Returns: false if the indicators are closed.
  func giveBack(_ thread: UInt32) -> Bool {
    guard let indicator = own(thread) else { return false }
    // ORDERING: relaxed; confirmed by the compare-exchange.
    var seen = indicator.pointee.load(ordering: .relaxed)
    while seen != Self.closed {
      // ORDERING: releasing; pairs with `close`: the next barrier sees what the reader wrote.
      let (done, original) = indicator.pointee.weakCompareExchange(
        expected: seen, desired: seen - 1, successOrdering: .releasing, failureOrdering: .relaxed)
      if done { return true }
      seen = original
    }
    return false
  }

  /// Closes all indicators. Only for the thread that is to give back the standing places.
  /// - Returns: the number of readers.
  func close() -> Int {
    // ORDERING: relaxed; as in `open`.
    let memory = self.memory.load(ordering: .relaxed)!
    let count = Self.count(memory)
    var readers = 0
    for number in 0..<count {
      // ORDERING: acquiring; pairs with `giveBack`.
      readers += Self.indicator(number, memory).pointee.exchange(Self.closed, ordering: .acquiring)
    }
    // ORDERING: relaxed, both; as in `collided`.
    patienceInAll.store(Self.patienceAfterBarrier * count, ordering: .relaxed)
    patienceLeft.store(Self.patienceAfterBarrier * count, ordering: .relaxed)
    return readers
  }

  deinit {
    // ORDERING: relaxed; no other thread has the queue.
    guard let memory = memory.load(ordering: .relaxed) else { return }
    for number in 0..<Self.count(memory) { Self.indicator(number, memory).deinitialize(count: 1) }
    memory.deallocate()
  }
}

extension DispatchQueue {
  // MARK: Readers

  /// Takes the place of a synchronous reader, if the queue is free. The caller has found the list empty.
  @inline(__always)
  final func beginReading() -> Bool {
    state.takeReaderPlace(limit: UInt64(width.value), collided: { readersCollided() }) || beginReadingApart()
  }

  @inline(never)
  private final func beginReadingApart() -> Bool {
    state.snapshot.isFreeApart
      && uncountedQueueExtras._withUnsafeGuaranteedRef { $0.readers.take(CurrentThread.id) }
  }

  /// Gives back the place of a synchronous reader.
  @inline(__always)
  final func endReading() {
    if state.snapshot.isApart { endReadingApart() } else { giveUpPlace() }
  }

  @inline(never)
  private final func endReadingApart() {
    if !state.snapshot.hasExcess {
      let isGivenBack = uncountedQueueExtras._withUnsafeGuaranteedRef {
        $0.readers.giveBack(CurrentThread.id)
      }
      if isGivenBack { return }
    } else {
      endApart()
    }
    giveUpPlace()
  }

  /// Two readers have met in the word. If that happens often, they are counted apart.
  @inline(never)
  final func readersCollided() {
    guard PoolSize.hasManyProcessors, state.snapshot.mayCountApart else { return }
    let collides = uncountedQueueExtras._withUnsafeGuaranteedRef { $0.readers.collided() }
    guard collides, state.beginApart() else { return }
    uncountedQueueExtras._withUnsafeGuaranteedRef { $0.readers.open() }
    if !state.setApart(), closeIndicators() { handOn() }
  }

  // MARK: What waits for readers

  /// Something waits for the readers, or must know their number: counts them in the word again. The caller keeps the
  /// queue: an item that has waited for the readers may release it.
  @inline(__always)
  final func endApart() {
    if state.snapshot.isApart { closeApart() }
  }

  @inline(never)
  private final func closeApart() {
    if state.clearApart(), closeIndicators() { handOn() }
  }

  /// The same, for a thread that has submitted a barrier. It may hold locks, so it does not hand the queue on.
  @inline(__always)
  final func endApartAsSubmitter() -> QueueState.Wake {
    state.snapshot.isApart ? closeApartAsSubmitter() : .nothing
  }

  @inline(never)
  private final func closeApartAsSubmitter() -> QueueState.Wake {
    state.clearApart()
      ? state.releaseStanding(readers: uncountedQueueExtras._withUnsafeGuaranteedRef { $0.readers.close() })
      : .nothing
  }

  /// Closes the indicators. Only for the thread that has cleared `apart`, or failed to set it.
  /// - Returns: whether the caller now owns the queue, and must hand it on.
  @inline(never)
  final func closeIndicators() -> Bool {
    let readers = uncountedQueueExtras._withUnsafeGuaranteedRef { $0.readers.close() }
    return state.releaseStanding(CurrentThread.id, readers: readers).owns
  }
}

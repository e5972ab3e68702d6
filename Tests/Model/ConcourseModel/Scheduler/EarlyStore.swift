internal import Glibc

/// A store that a thread makes before loads that come earlier in its program: load buffering.
///
/// Armv8 and C11 allow it; RC11 does not. A thread's later store depends on the loads that it overtakes, or not; the
/// model runs real code and sees no dependences. So it asks for a proof by execution, as the promising semantics of
/// Kang and others do ("A promising semantics for relaxed-memory concurrency", 2017):
///
/// - An execution in which the thread goes on alone from the load makes the store. The search then begins another one
///   with the same steps up to that load, in which the store is made first (`DepthFirstSearch`), and others go on.
/// - In that one the thread must still make the same store, to the same word with the same value at the same place in
///   the modification order, whatever the overtaken loads return now. Otherwise the execution is impossible: it ends
///   and does not count. If another thread fails before, its failure counts only if the store is made when its thread
///   goes on alone.
///
/// Such an execution is like one without an early store, and ends too, unless another thread has seen the store before
/// its own thread goes on, and the load that it is made before returns something newer.
///
/// What may be overtaken is a read without acquiring, and what may go early is a store or a read-modify-write without
/// releasing. Between the two may come anything but the following, which the same rules of Armv8 forbid: a
/// read-modify-write that acquires and releases, a sequentially consistent load after a releasing store, an acquiring
/// read of what was stored later than the early store, unless by a plain store of its own thread. Nor may the thread
/// pause, or enter the kernel.
///
/// Not covered: addresses are not stored early, since what they lead to need not exist yet; nor is a store that leaves
/// the value of a word as it is.
struct EarlyStore: Equatable, Sendable {
  /// The word (`WordIdentity.key`), and the place in its modification order.
  let key: UInt64
  let rank: Rank
  let bits: WordBits
  /// What a read-modify-write reads; nil for a store.
  let read: WordBits?

  /// One that has been made, while its thread has not come to it.
  struct Pending {
    let store: EarlyStore
    /// The step at which it was made.
    let time: Int
    /// Nil until the word is used for the first time.
    var location: Int?
  }

  /// A read that a later store may overtake: the coroutine has gone on alone since.
  struct Overtaken {
    let step: Int
    /// The word (`WordIdentity.key`), and the coroutine.
    let key: UInt64
    let coroutine: Int
    /// The place in the search (`SchedulePolicy.earlyPlace`).
    let place: Int
  }

  /// As a schedule has it.
  var text: String {
    ([String(key, radix: 16), "\(rank)"]
      + ([bits] + [read].compactMap { $0 }).map {
        String($0.low, radix: 16) + ($0.high == 0 ? "" : "." + String($0.high, radix: 16))
      }).joined(separator: ",")
  }

  init(key: UInt64, rank: Rank, bits: WordBits, read: WordBits?) {
    (self.key, self.rank, self.bits, self.read) = (key, rank, bits, read)
  }

  /// Parses a `text`.
  init?(_ text: Substring) {
    let parts = text.split(separator: ",")
    let values = parts.dropFirst(2).compactMap { part in
      let halves = part.split(separator: ".").map { UInt64($0, radix: 16) }
      return halves.first?.map { WordBits(low: $0, high: halves.count > 1 ? halves[1] ?? 0 : 0) }
    }
    guard parts.count > 2, let key = UInt64(parts[0], radix: 16), let rank = Rank(parts[1]),
      (1...2).contains(values.count), values.count == parts.count - 2
    else { return nil }
    self.init(key: key, rank: rank, bits: values[0], read: values.count > 1 ? values[1] : nil)
  }

  var hash: UInt64 { History.mix(History.mix(key, bits.low ^ bits.high &* 3), rank.bitPattern) }
}

extension WordBits {
  /// Whether a part of it may be the address of something, with or without a tag.
  var mayBeAddress: Bool {
    [low, high].contains { part in
      let page = part & 0xFFFF_FFFF_F000
      return page >> 32 != 0 && msync(UnsafeMutableRawPointer(bitPattern: UInt(page)), 1, MS_ASYNC) == 0
    }
  }
}

extension Location {
  /// The newest store that a coroutine may read or follow: its own early stores come later in its program.
  func top(for me: Coroutine) -> Int {
    if me.early.isEmpty { return newest }
    guard let early = me.early.filter({ $0.location == number }).map(\.store.rank).min() else {
      return newest
    }
    return max(0, (messages.firstIndex { $0.rank >= early } ?? 1) - 1)
  }
}

// MARK: - What the threads do

extension Scheduler {
  /// The running coroutine comes to a read that does not acquire: its later stores may be made now.
  /// - Parameter key: That of the word.
  func beforeRead(_ key: UInt64) {
    guard isExploring else { return }
    let me = running!
    while true {
      let stores = policy.early(at: steps)
      if stores.isEmpty { break }
      for store in stores {
        choices.append(.early(store, step: steps))
        makeEarly(store)
      }
      me.expectsNewer = steps
      giveWay()
    }
    if let place = policy.earlyPlace {
      me.overtaken.append(EarlyStore.Overtaken(step: steps, key: key, coroutine: me.id, place: place))
    }
  }

  private func makeEarly(_ store: EarlyStore) {
    let me = running!
    me.history = History.mix(me.history, store.hash)
    partialOrder?.touch(store.key, .word, isWrite: true)
    me.early.append(EarlyStore.Pending(store: store, time: steps))
    remark("stores early: \(store.bits.text)")
    countChange()
    let known = locations.values.filter { $0.key == store.key }
    if let location = known.min(by: { $0.number < $1.number }) {
      me.history = place(me.early.count - 1, of: me, in: location)
    }
  }

  /// Puts the early stores to a word into its modification order when it is used for the first time.
  func placeEarlyStores(in location: Location) {
    for coroutine in coroutines {
      for index in coroutine.early.indices
      where coroutine.early[index].location == nil && coroutine.early[index].store.key == location.key {
        _ = place(index, of: coroutine, in: location)
      }
    }
  }

  /// - Returns: the history of the step.
  private func place(_ index: Int, of coroutine: Coroutine, in location: Location) -> UInt64 {
    coroutine.early[index].location = location.number
    let early = coroutine.early[index]
    guard let history = location.insert(early.store, by: coroutine, at: early.time) else {
      fail(.impossible, "there is no such place for the early store")
    }
    return history
  }

  /// The running coroutine has made a store without releasing, which could have come before its reads.
  func mayBeEarly(_ store: EarlyStore, was: WordBits) {
    if store.bits == was { return }
    for read in running!.overtaken where read.step < steps { policy.mayBeEarly(store, before: read) }
  }

  /// The place of the early store that the running coroutine makes now in its program; nil if it makes another one.
  /// - Parameter index: What it follows, if it is a read-modify-write.
  func reaches(_ bits: WordBits, after index: Int?, _ ordering: Ordering, at location: Location) -> Rank? {
    guard !running!.early.isEmpty, !ordering.releases else { return nil }
    let early = running!.early.filter { $0.location == location.number }.min { $0.store.rank < $1.store.rank }
    guard let store = early?.store, store.bits == bits, (store.read == nil) == (index == nil) else {
      return nil
    }
    guard let index else { return store.rank }
    let next = location.messages.dropFirst(index + 1).first
    return next?.rank == store.rank ? store.rank : nil
  }

  /// The running coroutine has come to an early store.
  func endEarlyStore(_ rank: Rank, at location: Location) {
    running!.early.removeAll { $0.location == location.number && $0.store.rank == rank }
    guard let failure = pendingFailure, coroutines.allSatisfy(\.early.isEmpty) else { return }
    fail(failure.kind, failure.message)
  }

  /// What the running coroutine does now is ordered after its earlier reads, and before its later stores.
  func endOvertaking() {
    let me = running!
    me.overtaken.removeAll(keepingCapacity: true)
    if !me.early.isEmpty { fail(.impossible, "\(me.title) has not made its early store") }
  }

  /// The running coroutine reads a store, or follows it with a read-modify-write.
  func orderEarlyStores(_ ordering: Ordering, reading message: Message, isUpdate: Bool) {
    let me = running!
    if let time = me.expectsNewer {
      me.expectsNewer = nil
      guard message.time > time, me.early.allSatisfy({ $0.time < time || isSeen($0, by: me) }) else {
        fail(.impossible, "a store need not be early")
      }
    }
    if ordering.acquires {
      if isUpdate && ordering.releases { return endOvertaking() }
      // An acquiring load that is sequentially consistent does not overtake a releasing store.
      if ordering.isTotal { me.overtaken.removeAll { $0.step <= me.lastRelease } }
      if me.early.contains(where: {
        (message.maker != me.id || message.isUpdate) && $0.time <= message.time
          || ordering.isTotal && $0.time <= me.lastRelease
      }) {
        endOvertaking()
      }
    }
    if ordering.releases { me.lastRelease = steps }
  }

  /// Whether another coroutine has seen an early store.
  private func isSeen(_ early: EarlyStore.Pending, by me: Coroutine) -> Bool {
    locations.values.contains { $0.number == early.location && $0.isSeen(early.store.rank, by: me) }
  }
}

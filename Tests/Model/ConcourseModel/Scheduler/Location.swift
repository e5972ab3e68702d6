/// A place in the modification order of a word: larger is later. Not an index, since a store may be put between two
/// others.
typealias Rank = Double

/// One store to a word.
struct Message {
  let bits: WordBits
  let rank: Rank
  /// Whether it is a read-modify-write. Nothing may come between it and the store that it read.
  var isUpdate = false
  /// The history of the step that stored it.
  var history: UInt64 = 0
  /// The number of that step, and the coroutine.
  var time = 0
  var maker = 0
  /// What an acquiring load of it obtains.
  var released = VectorClock()
}

/// What a coroutine has seen of a word.
struct Touch {
  let coroutine: Int
  /// The store that it made or read.
  let rank: Rank
  /// Its clock at the first and at the last such step.
  let first: UInt32
  var last: UInt32
}

/// An atomic word during one execution: its stores in modification order, and who has seen which.
///
/// A thread may read any store that is not older than one that it knows of (coherence): each step that happens before
/// the load has seen a store, and the newest of these is the `floor`. The same goes for the place of a new store, so
/// the modification order need not agree with the order of the steps. Positions are what C11 leaves open; `TotalOrder`
/// restricts them further for sequentially consistent steps.
final class Location {
  /// Stores older than this many are forgotten.
  static let depth = 12

  /// Its number in order of first use, for traces.
  let number: Int
  /// Its number for `PartialOrder`.
  let thing: Int
  let key: UInt64
  private(set) var messages: [Message]
  private var touches: [Touch] = []
  /// The sum of the histories of the reads since the newest store.
  private var reads: UInt64 = 0

  init(number: Int, thing: Int, key: UInt64, bits: WordBits) {
    self.number = number
    self.thing = thing
    self.key = key
    messages = [Message(bits: bits, rank: 0)]
  }

  var newest: Int { messages.count - 1 }

  /// The oldest message that a step with this clock may read or follow.
  func floor(for clock: VectorClock) -> Int {
    var floor = messages[0].rank
    for touch in touches where touch.rank > floor && touch.first <= clock[touch.coroutine] {
      floor = touch.rank
    }
    return messages.lastIndex { $0.rank <= floor }!
  }

  /// Whether a store may be put right after a message.
  func isOpen(after index: Int) -> Bool { index == newest || !messages[index + 1].isUpdate }

  /// The place of a store right after a message.
  func rank(after index: Int) -> Rank {
    index == newest ? messages[index].rank + 1 : (messages[index].rank + messages[index + 1].rank) / 2
  }

  /// A coroutine other than `me` that has accessed the word without being followed by `clock`.
  func stranger(to me: Int, clock: VectorClock) -> Int? {
    touches.first { $0.coroutine != me && $0.last > clock[$0.coroutine] }?.coroutine
  }

  /// Whether a coroutine other than `me` has seen the store at a place, or a later one.
  func isSeen(_ rank: Rank, by me: Coroutine) -> Bool {
    touches.contains { $0.coroutine != me.id && $0.rank >= rank }
  }

  // MARK: Steps

  /// Records that `me` has read a message.
  /// - Returns: the history of the step.
  func read(_ index: Int, by me: Coroutine) -> UInt64 {
    let history = History.mix(me.history, messages[index].history)
    reads &+= history
    touch(messages[index].rank, me)
    return history
  }

  /// Records a store right after a message.
  /// - Parameter released: what an acquiring load of it obtains.
  /// - Returns: the history of the step.
  func insert(
    _ bits: WordBits, after index: Int, isUpdate: Bool, released: VectorClock, by me: Coroutine, at time: Int
  ) -> UInt64 {
    let message = add(
      bits, at: rank(after: index), after: index, isUpdate: isUpdate, released: released, by: me, time)
    touch(message.rank, me)
    forget()
    return message.history
  }

  /// Puts a store into its place before its coroutine comes to it.
  /// - Returns: the history of the step; nil if the place is not free.
  func insert(_ store: EarlyStore, by me: Coroutine, at time: Int) -> UInt64? {
    guard let index = messages.lastIndex(where: { $0.rank < store.rank }), isOpen(after: index),
      !messages.contains(where: { $0.rank == store.rank }),
      store.read.map({ $0 == messages[index].bits }) ?? true
    else { return nil }
    let isUpdate = store.read != nil
    let message = add(
      store.bits, at: store.rank, after: index, isUpdate: isUpdate,
      released: isUpdate ? messages[index].released : VectorClock(), by: me, time)
    return message.history
  }

  /// Records that `me` has come to a store that it has made before.
  /// - Returns: the history of the step, and the store's index; nil if it has seen a later one, or it is forgotten.
  func reach(_ rank: Rank, by me: Coroutine) -> (history: UInt64, index: Int)? {
    guard let index = messages.firstIndex(where: { $0.rank == rank }), floor(for: me.clock) < index else {
      return nil
    }
    touch(rank, me)
    return (History.mix(me.history, messages[index].history), index)
  }

  private func add(
    _ bits: WordBits, at rank: Rank, after index: Int, isUpdate: Bool, released: VectorClock,
    by me: Coroutine,
    _ time: Int
  ) -> Message {
    let isNewest = index == newest
    let neighbour = isNewest ? reads : messages[index + 1].history
    let history = History.mix(History.mix(me.history, messages[index].history), neighbour)
    if isNewest { reads = 0 }
    let message = Message(
      bits: bits, rank: rank, isUpdate: isUpdate, history: history, time: time, maker: me.id,
      released: released)
    messages.insert(message, at: index + 1)
    return message
  }

  private func forget() {
    if messages.count > Self.depth {
      messages.removeFirst()
      touches.removeAll { $0.rank < messages[0].rank }
    }
  }

  private func touch(_ rank: Rank, _ me: Coroutine) {
    let now = me.clock[me.id]
    for index in touches.indices.reversed() where touches[index].coroutine == me.id {
      if touches[index].rank == rank {
        touches[index].last = now
        return
      }
      break
    }
    touches.append(Touch(coroutine: me.id, rank: rank, first: now, last: now))
  }
}

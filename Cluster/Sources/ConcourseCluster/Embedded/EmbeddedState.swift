/// What the engine in memory knows of one queue. Pure: it calls nothing, and its owner locks it.
struct EmbeddedState {
  struct Item: Sendable {
    let number: UInt64
    let bytes: [UInt8]
    /// The starts so far.
    var attempt = 0
  }

  typealias Receive = @Sendable (any Delivery) -> Void

  private struct Worker {
    let receive: Receive
    var allowed = 0
    /// Deliveries that the owner hands over at the moment.
    var underWay = 0
    /// Called when there is none, once the worker was removed.
    var ended: (@Sendable () -> Void)?
  }

  private let settings: QueueSettings
  private var isClosed = false
  private var lastNumber: UInt64 = 0
  /// In the order of their submission. What lies before `first` has been taken.
  private var items: [Item] = []
  private var first = 0
  /// Items that wait for their time, by their number.
  private var early: [UInt64: Item] = [:]
  /// Items that run again; they go before the others.
  private var returned: [Item] = []
  /// Items that workers have, or that wait for another attempt.
  private var outstanding = 0
  private var ids: Set<String> = []
  /// When each id is forgotten, the oldest first; what lies before `firstID` has been.
  private var idEnds: [(id: String, end: ContinuousClock.Instant)] = []
  private var firstID = 0
  private var workers: [Int: Worker] = [:]
  /// The order in which workers get items: each goes to the end when it gets one.
  private var turns: [Int] = []
  private var lastWorker = 0
  private var failed: [StoredFailure] = []
  private var lastFailure: UInt64 = 0

  init(_ settings: QueueSettings) { self.settings = settings }

  private var pending: Int { items.count - first + early.count + returned.count + outstanding }

  private func check() throws { if isClosed { throw ClusterError.closed } }

  mutating func close() {
    isClosed = true
    turns = []
  }

  /// - Returns: The number of the item, too, if it was stored. The owner calls `isDue` at its time if it has one.
  mutating func store(_ item: NewItem, at now: ContinuousClock.Instant) throws
    -> (ClusterSubmission, number: UInt64?)
  {
    try check()
    forgetIDs(at: now)
    if let id = item.id, ids.contains(id) { return (.duplicate, nil) }
    if let limit = settings.options.limit, pending >= limit {
      throw ClusterError.full(queue: settings.label, limit: limit)
    }
    if let id = item.id {
      ids.insert(id)
      idEnds.append((id, now + settings.options.idsAreKept))
    }
    let new = newItem(item.bytes)
    if item.due == nil { items.append(new) } else { early[new.number] = new }
    return (.stored, new.number)
  }

  /// The time of an item has come: it becomes the last one.
  mutating func isDue(_ number: UInt64) {
    if let item = early.removeValue(forKey: number) { items.append(item) }
  }

  private mutating func newItem(_ bytes: [UInt8]) -> Item {
    lastNumber += 1
    return Item(number: lastNumber, bytes: bytes)
  }

  private mutating func forgetIDs(at now: ContinuousClock.Instant) {
    while firstID < idEnds.count, idEnds[firstID].end <= now {
      ids.remove(idEnds[firstID].id)
      firstID += 1
    }
    if firstID > idEnds.count / 2 {
      idEnds.removeFirst(firstID)
      firstID = 0
    }
  }

  mutating func addWorker(_ receive: @escaping Receive) throws -> Int {
    try check()
    lastWorker += 1
    workers[lastWorker] = Worker(receive: receive)
    turns.append(lastWorker)
    return lastWorker
  }

  /// - Returns: Whether no delivery to the worker is under way. Otherwise `received` returns `ended` after the last one.
  mutating func removeWorker(_ worker: Int, _ ended: @escaping @Sendable () -> Void) -> Bool {
    turns.removeAll { $0 == worker }
    guard let underWay = workers[worker]?.underWay, underWay > 0 else {
      workers[worker] = nil
      return true
    }
    workers[worker]!.ended = ended
    return false
  }

  /// The worker has got its delivery.
  /// - Returns: What the caller must call then.
  mutating func received(_ worker: Int) -> (@Sendable () -> Void)? {
    workers[worker]!.underWay -= 1
    guard workers[worker]!.underWay == 0, let ended = workers[worker]!.ended else { return nil }
    workers[worker] = nil
    return ended
  }

  mutating func allow(_ count: Int, for worker: Int) { workers[worker]?.allowed += count }

  /// The next item and the worker that gets it, unless one of both is missing or the width is reached.
  mutating func next() -> (item: Item, worker: Int, receive: Receive)? {
    guard outstanding < settings.width, !(returned.isEmpty && first == items.count),
      let turn = turns.firstIndex(where: { workers[$0]!.allowed > 0 })
    else { return nil }
    let worker = turns.remove(at: turn)
    turns.append(worker)
    workers[worker]!.allowed -= 1
    workers[worker]!.underWay += 1
    outstanding += 1
    var item = returned.isEmpty ? takeFirst() : returned.removeFirst()
    item.attempt += 1
    return (item, worker, workers[worker]!.receive)
  }

  private mutating func takeFirst() -> Item {
    let item = items[first]
    first += 1
    // Amortised: each item is moved once at most.
    if first > items.count / 2 {
      items.removeFirst(first)
      first = 0
    }
    return item
  }

  mutating func finish(_ item: Item) { outstanding -= 1 }

  mutating func giveBack(_ item: Item) {
    outstanding -= 1
    returned.append(item)
  }

  mutating func bury(_ item: Item, reason: String) {
    outstanding -= 1
    lastFailure += 1
    failed.append(
      StoredFailure(number: lastFailure, bytes: item.bytes, reason: reason, attempts: item.attempt))
  }

  func pendingCount() throws -> Int {
    try check()
    return pending
  }

  func failures(after number: UInt64, atMost count: Int) throws -> [StoredFailure] {
    try check()
    return Array(failed.lazy.filter { $0.number > number }.prefix(max(count, 0)))
  }

  mutating func removeFailure(_ number: UInt64) throws -> StoredFailure {
    try check()
    guard let index = failed.firstIndex(where: { $0.number == number }) else {
      throw ClusterError.noSuchFailure(queue: settings.label, number: number)
    }
    return failed.remove(at: index)
  }

  mutating func putBack(_ number: UInt64) throws { items.append(newItem(try removeFailure(number).bytes)) }
}

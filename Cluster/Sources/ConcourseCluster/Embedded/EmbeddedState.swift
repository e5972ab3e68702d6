/// What the engine in memory knows of one queue. Pure: it calls nothing, and its owner locks it.
struct EmbeddedState {
  struct Item: Sendable {
    let number: UInt64
    let bytes: [UInt8]
    var id: String?
    var wantsResult = false
    var group: String?
    var order = ItemOrder.none
    /// The starts so far.
    var attempt = 0
  }

  /// The first barrier that has not ended.
  private enum Barrier {
    case none
    case waiting(Item)
    /// It may start, or runs.
    case alone

    /// The barrier, if it waits.
    var item: Item? { if case .waiting(let item) = self { item } else { nil } }
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
  private var isSuspended = false
  private var lastNumber: UInt64 = 0
  /// Those that may start, in the order of their submission or of their turn. What lies before `first` has been taken.
  private var items: [Item] = []
  private var first = 0
  /// Of each key with an item that may start or runs, the items that wait for it.
  private var lines: [String: ArraySlice<Item>] = [:]
  private var inLine = 0
  /// Items that have joined the queue before the barrier, and have not ended.
  private var before = 0
  private var barrier = Barrier.none
  /// Items behind the barrier.
  private var behind: ArraySlice<Item> = []
  /// Items that wait for their time, by their number.
  private var early: [UInt64: Item] = [:]
  /// Items that run again; they go before the others.
  private var returned: [Item] = []
  /// Items that workers have, or that wait for another attempt, by their number.
  private var outstanding: [UInt64: Item] = [:]
  /// Those among them that do not start again.
  private var cancelled: Set<UInt64> = []
  /// The item of each id.
  private var ids: [String: (number: UInt64, wantsResult: Bool)] = [:]
  private var idEnds = Expiries<String>()
  private var outcomes: [UInt64: ItemOutcome] = [:]
  private var outcomeEnds = Expiries<UInt64>()
  /// How many items each group has that have not ended, and for those who wait for the last one.
  private var groups: [String: (count: Int, hints: [Hint])] = [:]
  /// For those who wait for an outcome.
  private var hints: [UInt64: [Hint]] = [:]
  private var workers: [Int: Worker] = [:]
  /// The order in which workers get items: each goes to the end when it gets one.
  private var turns: [Int] = []
  private var lastWorker = 0
  private var failed: [(failure: StoredFailure, order: ItemOrder)] = []
  private var lastFailure: UInt64 = 0

  init(_ settings: QueueSettings) { self.settings = settings }

  private var pending: Int {
    items.count - first + inLine + early.count + returned.count + outstanding.count + behind.count
      + (barrier.item == nil ? 0 : 1)
  }

  private func check() throws { if isClosed { throw ClusterError.closed } }

  mutating func close() {
    isClosed = true
    turns = []
  }

  /// - Returns: The number of the item that counts, too. The owner calls `isDue` at its time if it was stored and has
  ///   one.
  mutating func store(_ item: NewItem, at now: ContinuousClock.Instant) throws
    -> (ClusterSubmission, number: UInt64)
  {
    try check()
    forget(at: now)
    if let id = item.id, let first = ids[id] {
      if item.wantsResult, !first.wantsResult {
        throw ClusterError.noResult(queue: settings.label, reason: QueueSettings.wantsNoResult)
      }
      return (.duplicate, first.number)
    }
    if let limit = settings.options.limit, pending >= limit {
      throw ClusterError.full(queue: settings.label, limit: limit)
    }
    var new = newItem(item.bytes)
    new.wantsResult = item.wantsResult
    new.group = item.group
    new.order = item.order
    new.id = item.id
    if let group = item.group { groups[group, default: (0, [])].count += 1 }
    if let id = item.id {
      ids[id] = (new.number, item.wantsResult)
      idEnds.append(id, until: now + settings.options.idsAreKept)
    }
    if item.due == nil { join(new) } else { early[new.number] = new }
    return (.stored, new.number)
  }

  /// The time of an item has come: it becomes the last one.
  mutating func isDue(_ number: UInt64) {
    if let item = early.removeValue(forKey: number) { join(item) }
  }

  /// The item becomes the last one of the queue.
  private mutating func join(_ item: Item) {
    guard case .none = barrier else { return behind.append(item) }
    switch item.order {
    case .barrier where before == 0:
      barrier = .alone
      items.append(item)
    case .barrier: barrier = .waiting(item)
    case .key(let key) where lines[key] != nil:
      before += 1
      lines[key]!.append(item)
      inLine += 1
    case .key(let key):
      before += 1
      lines[key] = []
      items.append(item)
    case .none:
      before += 1
      items.append(item)
    }
  }

  /// An item that might start, or ran, has ended.
  private mutating func leave(_ item: Item) {
    if item.order == .barrier { return leaveBarrier() }
    if case .key(let key) = item.order {
      if let next = lines[key]!.popFirst() {
        inLine -= 1
        items.append(next)
      } else {
        lines[key] = nil
      }
    }
    leaveBefore()
  }

  private mutating func leaveBefore() {
    before -= 1
    if before == 0, let item = barrier.item {
      barrier = .alone
      items.append(item)
    }
  }

  private mutating func leaveBarrier() {
    barrier = .none
    while case .none = barrier, let item = behind.popFirst() { join(item) }
  }

  private mutating func newItem(_ bytes: [UInt8]) -> Item {
    lastNumber += 1
    return Item(number: lastNumber, bytes: bytes)
  }

  private mutating func forget(at now: ContinuousClock.Instant) {
    while let id = idEnds.next(at: now) { ids[id] = nil }
    while let number = outcomeEnds.next(at: now) { outcomes[number] = nil }
  }

  /// What became of an item. If that is not known, `hint` is told when it is.
  mutating func outcome(of number: UInt64, _ hint: Hint, at now: ContinuousClock.Instant) throws
    -> ItemOutcome?
  {
    try check()
    forget(at: now)
    if let outcome = outcomes[number] { return outcome }
    forget(hint, of: number)
    hints[number, default: []].append(hint)
    return nil
  }

  mutating func forget(_ hint: Hint, of number: UInt64) {
    hints[number]?.removeAll { $0 === hint }
    if hints[number]?.isEmpty == true { hints[number] = nil }
  }

  /// - Parameter hasTurn: Whether the item may start, or has; otherwise others still hold its key.
  /// - Returns: What the owner must tell.
  private mutating func end(
    _ outcome: ItemOutcome, of item: Item, hasTurn: Bool = true, at now: ContinuousClock.Instant
  ) -> [Hint] {
    cancelled.remove(item.number)
    if hasTurn { leave(item) }
    var told: [Hint] = []
    if let group = item.group, let (count, waiting) = groups[group] {
      groups[group] = count == 1 ? nil : (count - 1, waiting)
      if count == 1 { told = waiting }
    }
    guard item.wantsResult else { return told }
    forget(at: now)
    outcomes[item.number] = outcome
    // As long as its id, which another caller may use.
    outcomeEnds.append(
      item.number, until: now + max(settings.options.resultsAreKept, settings.options.idsAreKept))
    return told + (hints.removeValue(forKey: item.number) ?? [])
  }

  /// Whether the group has no item that has not ended. Otherwise `hint` is told when it has none.
  mutating func isFinished(_ group: String, _ hint: Hint) throws -> Bool {
    try check()
    guard groups[group] != nil else { return true }
    forget(hint, of: group)
    groups[group]!.hints.append(hint)
    return false
  }

  mutating func forget(_ hint: Hint, of group: String) { groups[group]?.hints.removeAll { $0 === hint } }

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
    guard !isSuspended, outstanding.count < settings.width, !(returned.isEmpty && first == items.count),
      let turn = turns.firstIndex(where: { workers[$0]!.allowed > 0 })
    else { return nil }
    let worker = turns.remove(at: turn)
    turns.append(worker)
    workers[worker]!.allowed -= 1
    workers[worker]!.underWay += 1
    var item = returned.isEmpty ? takeFirst() : returned.removeFirst()
    item.attempt += 1
    outstanding[item.number] = item
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

  mutating func finish(_ item: Item, returning result: [UInt8]?, at now: ContinuousClock.Instant) -> [Hint] {
    outstanding[item.number] = nil
    return end(.result(result), of: item, at: now)
  }

  mutating func giveBack(_ item: Item, at now: ContinuousClock.Instant) -> [Hint] {
    outstanding[item.number] = nil
    if cancelled.contains(item.number) { return end(.cancelled, of: item, at: now) }
    returned.append(item)
    return []
  }

  /// - Returns: What the owner must tell, too.
  mutating func cancel(_ id: String, at now: ContinuousClock.Instant) throws -> (ClusterCancellation, [Hint])
  {
    try check()
    if let item = early.values.first(where: { $0.id == id }) {
      early[item.number] = nil
      return (.cancelled, end(.cancelled, of: item, hasTurn: false, at: now))
    }
    for (key, line) in lines {
      guard let index = line.firstIndex(where: { $0.id == id }) else { continue }
      inLine -= 1
      let item = lines[key]!.remove(at: index)
      leaveBefore()
      return (.cancelled, end(.cancelled, of: item, hasTurn: false, at: now))
    }
    if let index = behind.firstIndex(where: { $0.id == id }) {
      return (.cancelled, end(.cancelled, of: behind.remove(at: index), hasTurn: false, at: now))
    }
    if let item = barrier.item, item.id == id {
      return (.cancelled, end(.cancelled, of: item, at: now))
    }
    if let index = items[first...].firstIndex(where: { $0.id == id }) {
      return (.cancelled, end(.cancelled, of: items.remove(at: index), at: now))
    }
    if let index = returned.firstIndex(where: { $0.id == id }) {
      return (.started, end(.cancelled, of: returned.remove(at: index), at: now))
    }
    guard let item = outstanding.values.first(where: { $0.id == id }) else { return (.notPending, []) }
    cancelled.insert(item.number)
    return (.started, [])
  }

  func suspension() throws -> Bool {
    try check()
    return isSuspended
  }

  mutating func setSuspended(_ isSuspended: Bool) throws {
    try check()
    self.isSuspended = isSuspended
  }

  mutating func bury(_ item: Item, reason: String, at now: ContinuousClock.Instant) -> [Hint] {
    outstanding[item.number] = nil
    lastFailure += 1
    let failure = StoredFailure(
      number: lastFailure, bytes: item.bytes, reason: reason, attempts: item.attempt)
    failed.append((failure, item.order))
    return end(.failed(reason: reason, attempts: item.attempt), of: item, at: now)
  }

  func pendingCount() throws -> Int {
    try check()
    return pending
  }

  func failures(after number: UInt64, atMost count: Int) throws -> [StoredFailure] {
    try check()
    return Array(failed.lazy.map(\.failure).filter { $0.number > number }.prefix(max(count, 0)))
  }

  mutating func removeFailure(_ number: UInt64) throws -> (failure: StoredFailure, order: ItemOrder) {
    try check()
    guard let index = failed.firstIndex(where: { $0.failure.number == number }) else {
      throw ClusterError.noSuchFailure(queue: settings.label, number: number)
    }
    return failed.remove(at: index)
  }

  mutating func putBack(_ number: UInt64) throws {
    let (failure, order) = try removeFailure(number)
    var item = newItem(failure.bytes)
    item.order = order
    join(item)
  }
}

/// What is forgotten after the same time each, the oldest first.
private struct Expiries<Key> {
  /// What lies before `first` has been forgotten.
  private var ends: [(key: Key, end: ContinuousClock.Instant)] = []
  private var first = 0

  mutating func append(_ key: Key, until end: ContinuousClock.Instant) { ends.append((key, end)) }

  /// The next one that is forgotten by then.
  mutating func next(at now: ContinuousClock.Instant) -> Key? {
    guard first < ends.count, ends[first].end <= now else { return nil }
    let key = ends[first].key
    first += 1
    if first > ends.count / 2 {
      ends.removeFirst(first)
      first = 0
    }
    return key
  }
}

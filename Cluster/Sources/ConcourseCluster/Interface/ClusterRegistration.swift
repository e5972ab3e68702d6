internal import Concourse
internal import Synchronization

/// The offer of this process to run items of a queue.
///
/// It runs at most `width` items at a time, and asks the engine for another when a handler has returned or an item has to
/// wait for others; acknowledgements are answered meanwhile. It may hold as many waiting items as
/// `ClusterQueueOptions.width` says. While items are here it sends beats for them, so that an item may take as long as it
/// needs.
///
/// Items are run by **runners**, tasks that take one item after the other. At most one runner has not taken its first item.
/// One that takes an item makes the next runner first, if another item waits and has a place. So no item waits
/// for the handler of another, and short items need few tasks.
public final class ClusterRegistration: Sendable {
  private struct State {
    /// The items that need beats: all that came and have not ended.
    var held: [ObjectIdentifier: any Delivery] = [:]
    /// Those that came and have not started. More may come than the width allows.
    var waiting = ArraySlice<any Delivery>()
    /// How many places are taken.
    var running = 0
    /// Those that wait for others. They take no place.
    var inLine: Set<ObjectIdentifier> = []
    /// Those that have waited so, and need a place now.
    var ready = ArraySlice<CheckedContinuation<Void, Never>>()
    /// Whether a runner has been made that has not taken an item yet.
    var hasNewRunner = false
    /// How many items were asked for and have not come.
    var asked = 0
    var source: (any DeliverySource)?
    var isCancelled = false
    /// The source brings no item any more.
    var sourceHasEnded = false
    var beats: DispatchSourceTimer?
    var drained: [CheckedContinuation<Void, Never>] = []

    var isDrained: Bool { isCancelled && sourceHasEnded && held.isEmpty }

    /// What follows when a place has become free or an item has come.
    mutating func next(width: Int, takes: Bool) -> Next {
      var next = Next()
      if running < width { next.ready = ready.popFirst() }
      if next.ready != nil { running += 1 }
      if takes, running < width { next.item = waiting.popFirst() }
      if next.item != nil { running += 1 }
      // A slice keeps what was taken out of it until its elements move.
      if ready.isEmpty { ready = [] }
      if waiting.isEmpty { waiting = [] }
      next.needsRunner = !hasNewRunner && !waiting.isEmpty && running < width
      if next.needsRunner { hasNewRunner = true }
      if !isCancelled, let source {
        next.count = max(0, width - running - waiting.count - ready.count - asked)
        if next.count > 0 { next.source = source }
        asked += next.count
      }
      next.isEnd = isDrained
      return next
    }
  }

  /// What follows after unlocking.
  private struct Next {
    /// What the runner that asks runs next.
    var item: (any Delivery)?
    /// An item that has waited for others has got a place.
    var ready: CheckedContinuation<Void, Never>?
    var needsRunner = false
    /// How many items to ask for.
    var count = 0
    var source: (any DeliverySource)?
    var isEnd = false
  }

  /// How many items a runner runs before it lets other tasks of its class go first.
  private static let longestRun = 64

  private let settings: QueueSettings
  private let width: Int
  private let handler: @Sendable (_ item: [UInt8], _ wantsResult: Bool) async throws -> [UInt8]?
  private let queue: DispatchConcurrentQueue
  /// It keeps this object until the end of the last item.
  private let cluster: Cluster
  private let figures: QueueFigures
  private let state = Mutex(State())

  init(
    settings: QueueSettings, qos: DispatchQoS, width: Int, cluster: Cluster,
    handler: @escaping @Sendable (_ item: [UInt8], _ wantsResult: Bool) async throws -> [UInt8]?
  ) {
    self.settings = settings
    self.width = width
    self.cluster = cluster
    figures = cluster.figures(of: settings.label)
    self.handler = handler
    queue = DispatchConcurrentQueue(label: settings.label, qos: qos)
  }

  func start(on engineQueue: any EngineQueue) async throws {
    try cluster.add(self)
    let source: any DeliverySource
    do {
      // The source keeps the registration until its end, so that each item that comes is run.
      source = try await engineQueue.deliveries { self.receive($0) }
    } catch {
      // `shutdown` may wait for it meanwhile.
      state.withLock { state in state.isCancelled = true }
      sourceHasEnded()
      throw error
    }
    // `shutdown` may have cancelled it meanwhile.
    var isCancelled = false
    change { state in
      state.source = source
      isCancelled = state.isCancelled
    }
    if isCancelled { source.cancel { self.sourceHasEnded() } }
  }

  /// How many items have come and not ended, for tests.
  var heldCount: Int { state.withLock { $0.held.count } }

  /// Asks for no more items. Those that were asked for may still come, for some seconds, and run; `drained` waits for
  /// them.
  public func cancel() {
    let source = state.withLock { state -> (any DeliverySource)? in
      defer { state.isCancelled = true }
      return state.isCancelled ? nil : state.source
    }
    source?.cancel { self.sourceHasEnded() }
  }

  private func sourceHasEnded() { change { state in state.sourceHasEnded = true } }

  /// Waits until no item of the registration runs any more. Call `cancel` first; not in the handler.
  public func drained() async {
    await withCheckedContinuation { continuation in
      let isDrained = state.withLock { state in
        if state.isDrained { return true }
        state.drained.append(continuation)
        return false
      }
      if isDrained { continuation.resume() }
    }
  }

  /// Changes the state, and does what follows.
  /// - Parameter takes: Whether the caller is a runner, which runs the item that this returns.
  private func change(takes: Bool, _ body: (inout State) -> Void) -> (any Delivery)? {
    let next = state.withLock { state in
      body(&state)
      return state.next(width: width, takes: takes)
    }
    next.ready?.resume()
    if next.needsRunner { makeRunner() }
    next.source?.request(next.count)
    if next.isEnd { end() }
    return next.item
  }

  private func change(_ body: (inout State) -> Void) { _ = change(takes: false, body) }

  private func receive(_ delivery: any Delivery) {
    change { state in
      // More may come than were asked for.
      state.asked = max(0, state.asked - 1)
      if state.beats == nil, let interval = delivery.beatInterval { state.beats = beats(every: interval) }
      state.held[ObjectIdentifier(delivery)] = delivery
      state.waiting.append(delivery)
    }
  }

  private func makeRunner() {
    Task(executorPreference: queue) { [self] in
      var next = change(takes: true) { $0.hasNewRunner = false }
      var count = 1
      while let delivery = next {
        let hasEnded = await perform(delivery)
        next = change(takes: count < Self.longestRun) { state in
          let id = ObjectIdentifier(delivery)
          // It may have ended in the line.
          if state.inLine.remove(id) == nil { state.running -= 1 }
          if hasEnded { state.held[id] = nil }
        }
        count += 1
      }
    }
  }

  /// Runs the handler, and tells the engine how it ended.
  /// - Returns: Whether the delivery has ended. If not, `hasEnded` is called for it.
  private func perform(_ delivery: any Delivery) async -> Bool {
    guard
      await delivery.begin(
        unless: { self.state.withLock { $0.isCancelled } }, in: Place(registration: self, delivery: delivery))
    else { return true }
    let attempts = settings.options.attempts
    let attempt = delivery.attempt
    guard attempt <= attempts else {
      // No start has ended here, so one that is not put aside yet does not count.
      _ = await bury(
        delivery,
        "it was started \(attempt - 1) times; the last worker ended, or lost its connection, while it had it")
      return true
    }
    do {
      let result = try await run(delivery)
      try await delivery.finish(returning: result) {
        self.figures.change { $0.finished += 1 }
        self.hasEnded(delivery)
      }
      return false
    } catch let error as NoAttemptHelps {
      if await !bury(delivery, error.reason) { figures.change { $0.failed += 1 } }
    } catch {
      // A beat that was late may have cost an attempt meanwhile.
      let attempt = delivery.attempt
      if attempt >= attempts {
        if await !bury(delivery, "\(error)") { figures.change { $0.failed += 1 } }
      } else {
        figures.change { $0.failed += 1 }
        await delivery.again(after: settings.options.delay(afterAttempt: attempt))
      }
    }
    return true
  }

  private func bury(_ delivery: any Delivery, _ reason: String) async -> Bool {
    let isAside = await delivery.bury(reason: reason)
    if isAside { figures.change { $0.putAside += 1 } }
    return isAside
  }

  private func run(_ delivery: any Delivery) async throws -> [UInt8]? {
    figures.change { counts in
      counts.started += 1
      counts.running += 1
    }
    // Before the engine learns of the end: `drained` may return while it still answers.
    defer { figures.change { $0.running -= 1 } }
    return try await handler(delivery.bytes, delivery.wantsResult)
  }

  private struct Place: DeliveryPlace {
    let registration: ClusterRegistration
    let delivery: any Delivery
    func leave() { registration.waitsInLine(delivery) }
    func take() async { await registration.place(for: delivery) }
  }

  private func hasEnded(_ delivery: any Delivery) {
    change { state in state.held[ObjectIdentifier(delivery)] = nil }
  }

  private func waitsInLine(_ delivery: any Delivery) {
    change { state in
      // It may be in the line still, if it has been delivered anew there.
      if state.inLine.insert(ObjectIdentifier(delivery)).inserted { state.running -= 1 }
    }
  }

  /// Waits until an item that has left its place gets one again.
  private func place(for delivery: any Delivery) async {
    await withCheckedContinuation { continuation in
      change { state in
        state.inLine.remove(ObjectIdentifier(delivery))
        state.ready.append(continuation)
      }
    }
  }

  /// No item runs, and none will come.
  private func end() {
    let (drained, source) = state.withLock { state in
      state.beats?.cancel()
      state.beats = nil
      // The source keeps this object.
      defer { (state.drained, state.source) = ([], nil) }
      return (state.drained, state.source)
    }
    // Not destroyed under the lock.
    withExtendedLifetime(source) {}
    for continuation in drained { continuation.resume() }
    cluster.remove(self)
  }

  /// They go on until the registration has ended; without items they send nothing.
  private func beats(every interval: Duration) -> DispatchSourceTimer {
    // Not on the queue of the handlers, where beats would wait for these.
    let timer = DispatchSource.makeTimerSource(queue: DispatchQueue.global(qos: .userInitiated))
    timer.setEventHandler { [weak self] in
      guard let self else { return }
      for delivery in state.withLock({ Array($0.held.values) }) { delivery.beat() }
    }
    timer.schedule(deadline: .now() + interval.asInterval, repeating: interval.asInterval)
    timer.activate()
    return timer
  }
}

internal import Concourse
internal import Synchronization

/// The offer of this process to run items of a queue.
///
/// It runs at most `width` items at a time, and asks the engine for another when one is finished or has to wait for
/// others. It may hold as many waiting items as `ClusterQueueOptions.width` says. While items are here it sends beats for
/// them, so that an item may take as long as it needs.
public final class ClusterRegistration: Sendable {
  private struct State {
    /// The items that run, and those that came although the width was reached.
    var running: [ObjectIdentifier: any Delivery] = [:]
    var waiting: [any Delivery] = []
    /// Those that wait for others. They take no place.
    var inLine: [ObjectIdentifier: any Delivery] = [:]
    /// Those that have waited so, and need a place now.
    var ready: [(delivery: any Delivery, continuation: CheckedContinuation<Void, Never>)] = []
    /// How many items were asked for and have not come.
    var asked = 0
    var source: (any DeliverySource)?
    var isCancelled = false
    /// The source brings no item any more.
    var sourceHasEnded = false
    var beats: DispatchSourceTimer?
    var drained: [CheckedContinuation<Void, Never>] = []

    var isIdle: Bool { running.isEmpty && waiting.isEmpty && inLine.isEmpty && ready.isEmpty }
    var isDrained: Bool { isCancelled && sourceHasEnded && isIdle }

    /// How many more items may be asked for, which count as asked for then.
    mutating func ask(width: Int) -> Int {
      guard !isCancelled, source != nil else { return 0 }
      let count = max(0, width - running.count - waiting.count - ready.count - asked)
      asked += count
      return count
    }
  }

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
    let (isCancelled, count) = state.withLock { state in
      state.source = source
      return (state.isCancelled, state.ask(width: width))
    }
    if isCancelled { source.cancel { self.sourceHasEnded() } } else { source.request(count) }
  }

  /// Asks for no more items. Those that were asked for may still come, for some seconds, and run; `drained` waits for
  /// them.
  public func cancel() {
    let source = state.withLock { state -> (any DeliverySource)? in
      defer { state.isCancelled = true }
      return state.isCancelled ? nil : state.source
    }
    source?.cancel { self.sourceHasEnded() }
  }

  private func sourceHasEnded() {
    let isEnd = state.withLock { state in
      state.sourceHasEnded = true
      return state.isDrained
    }
    if isEnd { end() }
  }

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

  private func receive(_ delivery: any Delivery) {
    let startsNow = state.withLock { state in
      // More may come than were asked for.
      state.asked = max(0, state.asked - 1)
      if let interval = delivery.beatInterval { startBeats(every: interval, &state) }
      if state.running.count >= width {
        state.waiting.append(delivery)
        return false
      }
      state.running[ObjectIdentifier(delivery)] = delivery
      return true
    }
    if startsNow { run(delivery) }
  }

  private func run(_ delivery: any Delivery) {
    Task(executorPreference: queue) {
      await self.perform(delivery)
      self.finished(delivery)
    }
  }

  /// Runs the handler, and tells the engine how it ended.
  private func perform(_ delivery: any Delivery) async {
    guard
      await delivery.begin(
        unless: { self.state.withLock { $0.isCancelled } }, in: Place(registration: self, delivery: delivery))
    else { return }
    let attempts = settings.options.attempts
    let attempt = delivery.attempt
    guard attempt <= attempts else {
      figures.change { $0.putAside += 1 }
      await delivery.bury(
        reason:
          "it was started \(attempt - 1) times; the last worker ended, or lost its connection, while it had it"
      )
      return
    }
    figures.change { counts in
      counts.started += 1
      counts.running += 1
    }
    defer { figures.change { $0.running -= 1 } }
    do {
      let result = try await handler(delivery.bytes, delivery.wantsResult)
      figures.change { $0.finished += 1 }
      await delivery.finish(returning: result)
    } catch let error as NoAttemptHelps {
      figures.change { $0.putAside += 1 }
      await delivery.bury(reason: error.reason)
    } catch {
      // A beat that was late may have cost an attempt meanwhile.
      let attempt = delivery.attempt
      if attempt >= attempts {
        figures.change { $0.putAside += 1 }
        await delivery.bury(reason: "\(error)")
      } else {
        figures.change { $0.failed += 1 }
        await delivery.again(after: settings.options.delay(afterAttempt: attempt))
      }
    }
  }

  private struct Place: DeliveryPlace {
    let registration: ClusterRegistration
    let delivery: any Delivery
    func leave() { registration.waitsInLine(delivery) }
    func take() async { await registration.place(for: delivery) }
  }

  private func waitsInLine(_ delivery: any Delivery) {
    state.withLock { state in state.inLine[ObjectIdentifier(delivery)] = delivery }
    leaves(delivery)
  }

  /// Waits until an item that has left its place gets one again.
  private func place(for delivery: any Delivery) async {
    await withCheckedContinuation { continuation in
      let hasPlace = state.withLock { state in
        guard state.inLine.removeValue(forKey: ObjectIdentifier(delivery)) != nil else { return true }
        if state.running.count >= width {
          state.ready.append((delivery, continuation))
          return false
        }
        state.running[ObjectIdentifier(delivery)] = delivery
        return true
      }
      if hasPlace { continuation.resume() }
    }
  }

  private func finished(_ delivery: any Delivery) {
    // It may have ended in the line.
    state.withLock { state in _ = state.inLine.removeValue(forKey: ObjectIdentifier(delivery)) }
    leaves(delivery)
  }

  /// The place of the item is free for another one.
  private func leaves(_ delivery: any Delivery) {
    enum Next {
      case item(any Delivery)
      case ready(CheckedContinuation<Void, Never>)
    }
    let (next, source, count, isEnd) = state.withLock {
      state -> (Next?, (any DeliverySource)?, Int, Bool) in
      state.running[ObjectIdentifier(delivery)] = nil
      var next: Next?
      if state.running.count < width, !state.ready.isEmpty {
        let (delivery, continuation) = state.ready.removeFirst()
        state.running[ObjectIdentifier(delivery)] = delivery
        next = .ready(continuation)
      } else if state.running.count < width, !state.waiting.isEmpty {
        let delivery = state.waiting.removeFirst()
        state.running[ObjectIdentifier(delivery)] = delivery
        next = .item(delivery)
      }
      if state.isIdle { stopBeats(&state) }
      return (next, state.source, state.ask(width: width), state.isDrained)
    }
    switch next {
    case .item(let delivery): run(delivery)
    case .ready(let continuation): continuation.resume()
    case nil: break
    }
    if count > 0 { source?.request(count) }
    if isEnd { end() }
  }

  /// No item runs, and none will come.
  private func end() {
    let (drained, source) = state.withLock { state in
      stopBeats(&state)
      // The source keeps this object.
      defer { (state.drained, state.source) = ([], nil) }
      return (state.drained, state.source)
    }
    // Not destroyed under the lock.
    withExtendedLifetime(source) {}
    for continuation in drained { continuation.resume() }
    cluster.remove(self)
  }

  private func startBeats(every interval: Duration, _ state: inout State) {
    guard state.beats == nil else { return }
    // Not on the queue of the handlers, where beats would wait for these.
    let timer = DispatchSource.makeTimerSource(queue: DispatchQueue.global(qos: .userInitiated))
    timer.setEventHandler { [weak self] in self?.beat() }
    timer.schedule(deadline: .now() + interval.asInterval, repeating: interval.asInterval)
    timer.activate()
    state.beats = timer
  }

  private func stopBeats(_ state: inout State) {
    state.beats?.cancel()
    state.beats = nil
  }

  private func beat() {
    let held = state.withLock { state in
      Array(state.running.values) + state.waiting + Array(state.inLine.values) + state.ready.map(\.delivery)
    }
    for delivery in held { delivery.beat() }
  }
}

internal import Concourse
internal import Synchronization

/// The offer of this process to run items of a queue.
///
/// It holds at most `width` items at a time, and asks the engine for another when one is finished. While items are here
/// it sends beats for them, so that an item may take as long as it needs.
public final class ClusterRegistration: Sendable {
  private struct State {
    /// The items that run, and those that came although the width was reached.
    var running: [ObjectIdentifier: any Delivery] = [:]
    var waiting: [any Delivery] = []
    var source: (any DeliverySource)?
    var isCancelled = false
    /// The source brings no item any more.
    var sourceHasEnded = false
    var beats: DispatchSourceTimer?
    var drained: [CheckedContinuation<Void, Never>] = []

    var isIdle: Bool { running.isEmpty && waiting.isEmpty }
    var isDrained: Bool { isCancelled && sourceHasEnded && isIdle }
  }

  private let settings: QueueSettings
  private let width: Int
  private let handler: @Sendable (_ item: [UInt8], _ wantsResult: Bool) async throws -> [UInt8]?
  private let queue: DispatchConcurrentQueue
  /// It keeps this object until the end of the last item.
  private let cluster: Cluster
  private let state = Mutex(State())

  init(
    settings: QueueSettings, qos: DispatchQoS, width: Int, cluster: Cluster,
    handler: @escaping @Sendable (_ item: [UInt8], _ wantsResult: Bool) async throws -> [UInt8]?
  ) {
    self.settings = settings
    self.width = width
    self.cluster = cluster
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
    let isCancelled = state.withLock { state in
      state.source = source
      return state.isCancelled
    }
    if isCancelled { source.cancel { self.sourceHasEnded() } } else { source.request(width) }
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
    guard await delivery.begin(unless: { self.state.withLock { $0.isCancelled } }) else { return }
    let attempts = settings.options.attempts
    let attempt = delivery.attempt
    guard attempt <= attempts else {
      await delivery.bury(
        reason:
          "it was started \(attempt - 1) times; the last worker ended, or lost its connection, while it had it"
      )
      return
    }
    do {
      await delivery.finish(returning: try await handler(delivery.bytes, delivery.wantsResult))
    } catch let error as NoAttemptHelps {
      await delivery.bury(reason: error.reason)
    } catch {
      // A beat that was late may have cost an attempt meanwhile.
      let attempt = delivery.attempt
      if attempt >= attempts {
        await delivery.bury(reason: "\(error)")
      } else {
        await delivery.again(after: settings.options.delay(afterAttempt: attempt))
      }
    }
  }

  private func finished(_ delivery: any Delivery) {
    let (next, source, isEnd) = state.withLock { state -> ((any Delivery)?, (any DeliverySource)?, Bool) in
      state.running[ObjectIdentifier(delivery)] = nil
      if !state.waiting.isEmpty {
        let next = state.waiting.removeFirst()
        state.running[ObjectIdentifier(next)] = next
        return (next, nil, false)
      }
      if state.isIdle { stopBeats(&state) }
      return (nil, state.isCancelled ? nil : state.source, state.isDrained)
    }
    if let next { run(next) }
    source?.request(1)
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
    let held = state.withLock { state in Array(state.running.values) + state.waiting }
    for delivery in held { delivery.beat() }
  }
}

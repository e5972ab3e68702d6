internal import Glibc

/// The state of one read or write, from its submission until its handler has returned for the last time.
///
/// It is a pure value: it knows neither descriptor, lock, timer nor thread. The `DescriptorEntry` owns it and carries
/// out the actions that its transitions return.
///
/// An operation advances in steps: items of a global queue, or of a serial queue that targets it. A step makes
/// transfers, each one system call, until there is something to deliver or the descriptor runs dry. Steps of one
/// operation never overlap, and no step waits for readiness: an operation whose descriptor is not ready is parked.
///
/// After a delivery the operation *follows* its handler: the next step starts when the handler returns, on the same
/// worker, which finds its buffer in its processor's cache and wakes no other. Steps run beside a handler that was slow
/// in its last call. A handler may wait for something that waits for the operation's input, so following ends after a
/// few milliseconds in any case.
struct OperationState {
  enum Phase {
    /// Its turn in the schedule has not come.
    case waiting
    /// A step is submitted or runs, or the ring has a request.
    case stepping
    /// The step is arming the watch for the descriptor.
    case arming(isWoken: Bool)
    /// It waits for the watch or the retry timer.
    case parked
    /// It waits for the handler to return, at most until the patience timer is due.
    case following
    /// It waits for the handler to take some of the outbox.
    case throttled
    case finished
  }

  private struct Following {
    var hasBegun = false
    var handlerIsSlow = false
    /// How often the operation has waited for its handler, and at which count the patience timer was set.
    var count = 0
    var timed: Int?
  }

  /// Whether a step has come after a delivery, so that steps and handler calls alternate.
  var hasFollowed: Bool { following.hasBegun }

  enum Timer {
    /// The descriptor is tried again.
    case retry
    /// The channel's interval.
    case interval
    /// The end of following.
    case patience
  }

  /// What the owner must do after a transition.
  struct Actions {
    enum Next {
      /// Nothing now: an event, a timer or the handler continues the operation, or it has ended.
      case wait
      /// Make this transfer in the current step.
      case transfer(Transfer)
      /// Arm the watch in the current step, then call `didArm`.
      case arm
      /// Submit a step.
      case step
    }

    /// How many more calls of the handler to submit.
    var calls = 0
    /// Whether input or output has ended; the last of the calls is then the operation's last.
    var hasEnded = false
    /// A timer to set, and its delay in nanoseconds.
    var timer: (kind: Timer, delay: UInt64)?
    var next = Next.wait
  }

  /// The operation stops transferring while deliveries that cost this many bytes wait for a slow handler.
  static let largestOutbox = 32 << 20
  /// What a delivery and the call that is submitted for it cost beside the data.
  static let deliveryCost = 256
  /// Transfers in a step before other items get the worker.
  static let transfersPerStep = 16
  /// A handler that takes longer than this many nanoseconds runs beside the next step.
  static let quickHandler: UInt64 = 50_000
  static let patience: UInt64 = 5_000_000
  /// After this many vain attempts in a row the timer takes the watch's place, so that a descriptor that reports
  /// readiness but has nothing does not keep a worker busy.
  static let watchedAttempts = 4
  /// The first delay of the retry timer. It doubles with every few attempts.
  static let firstRetry: UInt64 = 1_000_000
  private static let attemptsPerDoubling = 4
  private static let mostDoublings = 6

  private var progress: OperationProgress
  /// For random channels, the place in the file, or nil if the sum exceeds `Int.max`.
  private let start: Int?
  private let type: DispatchIO.StreamType
  private let pacing: Channel.Pacing?

  private var phase = Phase.waiting
  private var isStopped = false
  private var transfersLeft = 0
  /// How many bytes the current transfer asks for.
  private var asked = 0
  /// How many attempts in a row found nothing.
  private var vainAttempts = 0
  private var hasSetInterval = false

  /// Deliveries whose handler call has not begun.
  private var outbox = Fifo<OperationProgress.Delivery>()
  /// What the deliveries in the outbox and in the running handler call cost.
  private var outboxCost = 0
  private var costWithHandler = 0

  private var following = Following()

  /// - Parameter offset: for random channels, counted from where the channel began.
  init(_ progress: OperationProgress, for channel: Channel, offset: Int) {
    self.progress = progress
    type = channel.type
    pacing = channel.pacing
    let (sum, overflow) = channel.base.addingReportingOverflow(offset)
    start = overflow ? nil : sum
  }

  /// Whether all deliveries have been taken and no more will come.
  var hasDeliveredAll: Bool { isFinished && outbox.isEmpty }

  var isFinished: Bool {
    switch phase {
    case .finished: true
    case .waiting, .stepping, .arming, .parked, .following, .throttled: false
    }
  }

  // MARK: Beginning and ending

  /// The operation may continue: its turn has come, or what it waited for has happened.
  mutating func resume() -> Actions {
    phase = .stepping
    return Actions(next: .step)
  }

  /// The channel was closed with `.stop`.
  mutating func stop() -> Actions {
    isStopped = true
    switch phase {
    case .parked, .following, .throttled: return end(.failure(ECANCELED))
    case .waiting, .stepping, .arming, .finished: return Actions()
    }
  }

  mutating func end(_ reason: OperationProgress.End) -> Actions { deliver(progress.end(reason)) }

  private mutating func deliver(_ deliveries: [OperationProgress.Delivery]) -> Actions {
    var actions = Actions()
    for delivery in deliveries { deliver(delivery, &actions) }
    return actions
  }

  private mutating func deliver(_ delivery: OperationProgress.Delivery, _ actions: inout Actions) {
    outbox.append(delivery)
    outboxCost += cost(delivery)
    actions.calls += 1
    if delivery.isLast {
      phase = .finished
      actions.hasEnded = true
    }
  }

  /// The memory that the delivery takes. The data of a write belongs to the client.
  private func cost(_ delivery: OperationProgress.Delivery) -> Int {
    switch progress.direction {
    case .read: Self.deliveryCost + (delivery.data?.count ?? 0)
    case .write: Self.deliveryCost
    }
  }

  // MARK: Transfers

  /// A step has begun, and the file is open.
  mutating func beginStep() -> Actions {
    transfersLeft = Self.transfersPerStep
    var actions = nextTransfer()
    if let pacing, !hasSetInterval, !actions.hasEnded {
      hasSetInterval = true
      actions.timer = (.interval, pacing.interval)
    }
    return actions
  }

  private mutating func nextTransfer() -> Actions {
    let count = progress.request
    if count == 0 { return deliver([progress.complete()]) }
    if isStopped { return end(.failure(ECANCELED)) }
    guard let offset = nextOffset else { return end(.failure(EINVAL)) }
    if outboxCost >= Self.largestOutbox {
      phase = .throttled
      return Actions()
    }
    transfersLeft -= 1
    asked = count
    let data = progress.direction == .write ? progress.data : nil
    return Actions(next: .transfer(Transfer(count: count, offset: offset, data: data)))
  }

  /// The offset of the next transfer; nil if no file has that offset.
  private var nextOffset: Int? {
    switch type {
    case .stream: return Transfer.filePosition
    case .random:
      guard let start, start >= 0 else { return nil }
      let (sum, overflow) = start.addingReportingOverflow(progress.transferred)
      return overflow ? nil : sum
    }
  }

  /// A transfer has ended.
  /// - Parameter inStep: whether the step that made it goes on; false when the ring carried it out.
  mutating func didTransfer(_ outcome: Transfer.Outcome, _ road: OpenFile.Road, inStep: Bool) -> Actions {
    var actions = Actions()
    let moved: Int
    let delivery: OperationProgress.Delivery?
    switch outcome {
    case .read(let data):
      moved = data.count
      delivery = progress.read(data)
    case .wrote(let count):
      moved = count
      delivery = progress.wrote(count)
    case .wouldBlock:
      moved = 0
      delivery = progress.ranDry()
    case .endOfFile:
      return end(.endOfFile)
    case .failure(let error):
      return end(.failure(error))
    }
    vainAttempts = moved == 0 ? vainAttempts + 1 : 0
    if let delivery { deliver(delivery, &actions) }
    if actions.hasEnded { return actions }
    if isDry(moved, road) && !isStopped {
      park(road, &actions)
    } else if delivery != nil {
      follow(&actions)
    } else if inStep && transfersLeft > 0 {
      return nextTransfer()
    } else {
      actions.next = .step
    }
    return actions
  }

  /// Whether another transfer would find nothing now.
  private func isDry(_ moved: Int, _ road: OpenFile.Road) -> Bool {
    if moved == 0 { return true }
    // A pipe or socket that moved less than asked for has no more now, and the kernel reports the next bytes. A
    // one-shot read tries again, since only an empty descriptor ends it.
    return road == .readiness && progress.manner == .pieces && moved < min(asked, ReadBuffer.small)
  }

  // MARK: Parking

  private mutating func park(_ road: OpenFile.Road, _ actions: inout Actions) {
    if road == .readiness && vainAttempts <= Self.watchedAttempts {
      phase = .arming(isWoken: false)
      actions.next = .arm
    } else {
      phase = .parked
      let doublings = min(vainAttempts / Self.attemptsPerDoubling, Self.mostDoublings)
      actions.timer = (.retry, Self.firstRetry << UInt64(doublings))
    }
  }

  /// The step has armed the watch.
  /// - Parameter failure: 0, or the errno if the descriptor cannot be watched.
  mutating func didArm(_ failure: Int32) -> Actions {
    guard case .arming(let isWoken) = phase else { return Actions() }
    if failure != 0 { return end(.failure(failure)) }
    if isWoken || isStopped { return resume() }
    phase = .parked
    return Actions()
  }

  /// The descriptor may be ready.
  mutating func wake() -> Actions {
    switch phase {
    case .parked: return resume()
    case .arming: phase = .arming(isWoken: true)
    case .waiting, .stepping, .following, .throttled, .finished: break
    }
    return Actions()
  }

  // MARK: The handler

  /// Puts the next step off until the handler has returned, unless the handler is slow.
  private mutating func follow(_ actions: inout Actions) {
    following.hasBegun = true
    if following.handlerIsSlow {
      phase = .stepping
      actions.next = .step
      return
    }
    phase = .following
    following.count += 1
    if following.timed == nil {
      following.timed = following.count
      actions.timer = (.patience, Self.patience)
    }
  }

  /// A call of the handler begins: takes its delivery out.
  mutating func takeDelivery() -> OperationProgress.Delivery {
    let delivery = outbox.removeFirst()
    costWithHandler = cost(delivery)
    return delivery
  }

  /// The call has returned, and its data has been released.
  /// - Parameter duration: how many nanoseconds it took.
  mutating func handlerDidReturn(after duration: UInt64) -> Actions {
    outboxCost -= costWithHandler
    following.handlerIsSlow = duration > Self.quickHandler
    switch phase {
    case .following: return resume()
    case .throttled: return outboxCost < Self.largestOutbox ? resume() : Actions()
    case .waiting, .stepping, .arming, .parked, .finished: return Actions()
    }
  }

  // MARK: Timers

  mutating func timerIsDue(_ timer: Timer) -> Actions {
    switch timer {
    case .retry: return wake()
    case .interval: return intervalHasPassed()
    case .patience: return patienceHasEnded()
    }
  }

  private mutating func intervalHasPassed() -> Actions {
    guard let pacing, !isFinished else { return Actions() }
    var actions = Actions(timer: (.interval, pacing.interval))
    // A handler that lags behind gets no extra calls.
    if outbox.isEmpty, let delivery = progress.intervalPassed(strict: pacing.isStrict) {
      deliver(delivery, &actions)
    }
    return actions
  }

  private mutating func patienceHasEnded() -> Actions {
    guard case .following = phase else {
      following.timed = nil
      return Actions()
    }
    if following.timed == following.count {
      following.timed = nil
      following.handlerIsSlow = true
      return resume()
    }
    // The handler has returned since the timer was set, and is being followed again.
    following.timed = following.count
    return Actions(timer: (.patience, Self.patience))
  }
}

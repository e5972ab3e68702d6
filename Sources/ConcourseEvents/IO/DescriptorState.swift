internal import Glibc

/// The state of a descriptor under the control of channels: its file, its channels and their operations.
///
/// A `DescriptorEntry` guards it. Transitions collect effects, which the entry carries out after unlocking.
struct DescriptorState {
  enum Stage {
    case unopened(UnopenedFile)
    /// A thread is opening the file; these operations wait for it.
    case opening(waiting: [IOOperation])
    case open(OpenFile)
    /// The descriptor is bad, or the file could not be opened.
    case failed(Int32)
    case givenBack
  }

  /// A closure that runs while no operation does.
  // SAFETY: `body` and `object` are OWNED BY the submitter, then by the item that runs the barrier. `precedesClose` is
  // guarded as noted; the rest is constant.
  final class Barrier: @unchecked Sendable {
    let queue: DispatchQueue
    /// The address of the client's code; the body may be a closure of the C interface that calls it.
    let code: UInt
    private var body: (() -> Void)?
    /// Retained for the body: a C program may have released the channel that its barrier uses.
    private var object: DispatchIO?
    let channel: Channel
    /// Whether the channel was open when the barrier was submitted. GUARDED BY the entry's lock.
    @exclusivity(unchecked) fileprivate(set) var precedesClose = false

    init(queue: DispatchQueue, body: @escaping () -> Void, code: UInt, object: DispatchIO) {
      (self.queue, self.body, self.code, self.object) = (queue, body, code, object)
      channel = object.channel
    }

    /// Takes out what the item releases. The thread that has submitted the item may still refer to the barrier, and
    /// must not run the client's code when it drops it.
    func take() -> (body: () -> Void, object: DispatchIO) {
      defer { (body, object) = (nil, nil) }
      return (body!, object!)
    }
  }

  /// What the entry must do after unlocking.
  enum Effect {
    /// Submit a step.
    case step(IOOperation)
    /// Submit a call of the handler.
    case callHandler(IOOperation)
    case run(Barrier)
    case cleanUp(Channel, error: Int32)
    case set(IOOperation.Timer, delay: UInt64)
    case cancel(IOOperation.Timer)
  }

  /// What the thread that runs a step must do next.
  enum Step {
    case transfer(Transfer, OpenFile)
    /// Open the file, call `didOpen`, and begin the step again.
    case open(UnopenedFile)
    /// Arm the watch, then call `didArm`.
    case arm(OpenFile)
    /// The operation continues later, or it has ended.
    case leave
  }

  private(set) var stage: Stage
  /// What the channel opens, if it was made from a path.
  private let path: UnopenedFile?
  private var effects: [Effect] = []

  private var schedule = DescriptorSchedule<IOOperation, Barrier>()
  /// Operations that have begun and whose input or output has not ended.
  private var running: [IOOperation] = []
  /// Operations whose handler has not returned for the last time.
  private var unfinished = 0
  private var openChannels = 0
  /// From the first channel until the descriptor is given back.
  private var isTaken = false
  /// All channels that share the descriptor, open or closed. Their cleanup handlers run together. Those of one-shot
  /// operations are only counted.
  private(set) var channels: [Channel] = []
  /// The barrier that runs, and its thread.
  private var runningBarrier: (barrier: Barrier, thread: UInt32)?

  init(_ stage: Stage) {
    self.stage = stage
    if case .unopened(let file) = stage { path = file } else { path = nil }
  }

  /// Whether the descriptor can be given back.
  var isUnused: Bool { isTaken && openChannels == 0 && unfinished == 0 && schedule.isIdle }

  /// Starts what may start now.
  /// - Returns: the effects of all transitions since the last call.
  mutating func takeEffects() -> [Effect] {
    while let start = schedule.start() {
      switch start {
      case .operation(let operation):
        running.append(operation)
        carryOut(operation.state.resume(), for: operation)
      case .barrier(let barrier):
        effects.append(.run(barrier))
      }
    }
    var taken: [Effect] = []
    swap(&taken, &effects)
    return taken
  }

  // MARK: Channels

  /// - Returns: false if the descriptor has been given back.
  mutating func attach(_ channel: Channel) -> Bool {
    switch stage {
    case .givenBack: return false
    case .failed(let error):
      switch channel.state.fail(error) {
      case .leave: effects.append(.cleanUp(channel, error: error))
      case .nothing: break
      }
    case .unopened, .opening, .open:
      isTaken = true
      openChannels += 1
      // There may be a million one-shot operations, which end in any order.
      if !channel.isForOneOperation { channels.append(channel) }
    }
    return true
  }

  /// - Parameter stopping: whether the channel's operations end early.
  mutating func close(_ channel: Channel, stopping: Bool) {
    retire(channel)
    guard stopping else { return }
    channel.state.stop()
    for operation in running where operation.channel === channel {
      carryOut(operation.state.stop(), for: operation)
    }
    for operation in schedule.withdraw(where: { $0.channel === channel }) {
      // It ends after the operation ahead of it, so that handlers learn of the end in the order of the operations.
      if operation.lane != .random,
        let ahead = running.first(where: { $0.channel === channel && $0.lane == operation.lane })
      {
        ahead.stoppedBehind.append(operation)
      } else {
        carryOut(operation.state.end(.failure(ECANCELED)), for: operation)
      }
    }
  }

  private mutating func retire(_ channel: Channel) {
    switch channel.state.close() {
    case .leave: openChannels -= 1
    case .nothing: break
    }
  }

  /// What a new channel for the same file starts from.
  enum Origin {
    case descriptor(Int32)
    case path(UnopenedFile)
    case refused(Int32)
  }

  func origin(besides channel: Channel) -> Origin {
    switch (channel.state.admission(), stage) {
    case (.refused(let error), _), (.admitted, .failed(let error)): return .refused(error)
    case (.admitted, .open(let file)): return path.map(Origin.path) ?? .descriptor(file.descriptor)
    case (.admitted, .unopened), (.admitted, .opening), (.admitted, .givenBack):
      return path.map(Origin.path) ?? .refused(ECANCELED)
    }
  }

  /// The last channel has closed and the last handler has returned.
  /// - Returns: the channels to clean up.
  mutating func giveBack() -> [Channel] {
    if case .opening = stage { Trap.runtimeBug("a file was given back while it was being opened") }
    stage = .givenBack
    defer { (channels, isTaken) = ([], false) }
    return channels
  }

  // MARK: The file

  enum Access {
    case known(Int32)
    /// Open the file and call `didOpen`.
    case open(UnopenedFile)
  }

  /// The descriptor as clients see it: -1 if there is none. A call from a barrier opens the file.
  mutating func descriptor(for channel: Channel, on thread: UInt32) -> Access {
    if channel.state.isClosed && !isBeforeClose(of: channel, on: thread) { return .known(-1) }
    switch stage {
    case .open(let file): return .known(file.descriptor)
    case .unopened(let file) where thread == runningBarrier?.thread:
      stage = .opening(waiting: [])
      return .open(file)
    case .unopened, .opening, .failed, .givenBack: return .known(-1)
    }
  }

  /// Whether the thread runs a barrier that the closed channel still lets finish: the barrier was submitted before.
  private func isBeforeClose(of channel: Channel, on thread: UInt32) -> Bool {
    guard let (barrier, barrierThread) = runningBarrier, barrierThread == thread else { return false }
    return barrier.channel === channel && barrier.precedesClose && !channel.state.isStopped
  }

  /// - Parameter file: nil if the file could not be opened. The channel stays open and its operations fail.
  mutating func didOpen(_ file: OpenFile?, _ error: Int32) {
    if case .opening(let waiting) = stage {
      for operation in waiting { submitStep(of: operation) }
    }
    stage = file.map(Stage.open) ?? .failed(error)
  }

  // MARK: Barriers

  mutating func submit(_ barrier: Barrier) {
    barrier.precedesClose = !barrier.channel.state.isClosed
    schedule.addBarrier(barrier)
  }

  mutating func didBegin(_ barrier: Barrier, on thread: UInt32) { runningBarrier = (barrier, thread) }

  mutating func barrierDidEnd() {
    runningBarrier = nil
    schedule.finishBarrier()
  }

  // MARK: Operations

  /// Schedules an operation, or ends it at once if its channel refuses it.
  mutating func submit(_ operation: IOOperation) {
    unfinished += 1
    switch operation.channel.state.admission() {
    case .admitted: schedule.add(operation, operation.lane)
    case .refused(let error): carryOut(operation.state.end(.failure(error)), for: operation)
    }
  }

  mutating func beginStep(of operation: IOOperation) -> Step {
    switch stage {
    case .open(let file):
      return goOn(operation.state.beginStep(), with: operation, on: file)
    case .unopened(let file):
      stage = .opening(waiting: [])
      return .open(file)
    case .opening(let waiting):
      stage = .opening(waiting: waiting + [operation])
    case .failed(let error):
      carryOut(operation.state.end(.failure(error)), for: operation)
    case .givenBack:
      carryOut(operation.state.end(.failure(ECANCELED)), for: operation)
    }
    return .leave
  }

  mutating func didTransfer(_ outcome: Transfer.Outcome, for operation: IOOperation, on file: OpenFile)
    -> Step
  {
    goOn(operation.state.didTransfer(outcome, file.road, inStep: true), with: operation, on: file)
  }

  mutating func ringDidTransfer(_ outcome: Transfer.Outcome, for operation: IOOperation) {
    carryOut(operation.state.didTransfer(outcome, .file, inStep: false), for: operation)
  }

  mutating func didArm(_ operation: IOOperation, _ failure: Int32) {
    carryOut(operation.state.didArm(failure), for: operation)
  }

  /// The descriptor may be ready.
  mutating func wake(_ direction: OperationProgress.Direction) {
    for operation in running where operation.direction == direction {
      carryOut(operation.state.wake(), for: operation)
    }
  }

  mutating func timerIsDue(_ timer: IOOperation.Timer) {
    carryOut(timer.operation.state.timerIsDue(timer.kind), for: timer.operation)
  }

  func hasEnded(_ operation: IOOperation) -> Bool { operation.state.isFinished }

  func takeDelivery(of operation: IOOperation) -> OperationProgress.Delivery {
    operation.state.takeDelivery()
  }

  /// - Returns: what the operation kept for its handler, if this was the last call; to be released without the lock.
  mutating func handlerDidReturn(_ operation: IOOperation, after duration: UInt64) -> (
    OperationHandler.Call?, DispatchIO?
  ) {
    carryOut(operation.state.handlerDidReturn(after: duration), for: operation)
    guard operation.state.hasDeliveredAll else { return (nil, nil) }
    if operation.manner == .pieces { unfinished -= 1 }
    defer { (operation.handler, operation.object) = (nil, nil) }
    return (operation.handler, operation.object)
  }

  // MARK: Actions

  private mutating func carryOut(_ actions: OperationState.Actions, for operation: IOOperation) {
    if actions.hasEnded { didEnd(operation) }
    for _ in 0..<actions.calls { effects.append(.callHandler(operation)) }
    if actions.hasEnded {
      for other in operation.stoppedBehind { carryOut(other.state.end(.failure(ECANCELED)), for: other) }
      operation.stoppedBehind = []
    }
    if let (kind, delay) = actions.timer { effects.append(.set(operation.timer(kind), delay: delay)) }
    if case .step = actions.next { submitStep(of: operation) }
  }

  /// As `carryOut`, in a step that may go on.
  private mutating func goOn(
    _ actions: OperationState.Actions, with operation: IOOperation, on file: OpenFile
  ) -> Step {
    carryOut(actions, for: operation)
    switch actions.next {
    case .transfer(let transfer): return .transfer(transfer, file)
    case .arm: return .arm(file)
    case .wait, .step: return .leave
    }
  }

  private mutating func submitStep(of operation: IOOperation) {
    // A worker next runs the queue that it has made runnable. An item of a global queue would wait behind others.
    if operation.state.hasFollowed && operation.stepQueue == nil {
      operation.stepQueue = DispatchQueue(
        label: "DispatchIO", target: DispatchQueue.global(at: operation.level))
    }
    effects.append(.step(operation))
  }

  private mutating func didEnd(_ operation: IOOperation) {
    if let index = running.firstIndex(where: { $0 === operation }) {
      running.remove(at: index)
      schedule.finish(operation.lane)
    }
    effects += operation.timers.map(Effect.cancel)
    operation.timers = []
    // The handler of a one-shot operation runs after the descriptor has been given back.
    if operation.manner == .once {
      unfinished -= 1
      retire(operation.channel)
    }
  }
}

/// One read or write of a channel. Only its `DescriptorState` reads and changes the variables.
final class IOOperation {
  /// A timer of an operation. It keeps the operation, which drops it when it ends.
  // SAFETY: everything is constant.
  final class Timer: LoopTimer, @unchecked Sendable {
    let kind: OperationState.Timer
    let operation: IOOperation

    fileprivate init(_ kind: OperationState.Timer, _ operation: IOOperation) {
      self.kind = kind
      self.operation = operation
      super.init(owner: nil)
    }

    override func fire() { operation.entry.timerIsDue(self) }
  }

  let entry: DescriptorEntry
  let channel: Channel
  let lane: DescriptorSchedule<IOOperation, DescriptorState.Barrier>.Lane
  let direction: OperationProgress.Direction
  let manner: OperationProgress.Manner
  let level: QoSLevel
  /// A serial queue, where the handler runs.
  let queue: DispatchQueue

  /// OWNED BY the submitter, then by `queue`; nil when it has been called for the last time.
  fileprivate(set) var handler: OperationHandler.Call?
  /// The address of the client's code, which recordings show.
  let code: UInt

  /// The channel's object, which handlers of a C program may use after its owner has released it. nil for a one-shot
  /// operation, and from the last call of the handler on.
  fileprivate(set) var object: DispatchIO?

  /// Runs the steps once they alternate with handler calls; nil until then. OWNED BY the step: set before it is
  /// submitted.
  fileprivate(set) var stepQueue: DispatchQueue?

  // GUARDED BY the entry's lock. Unchecked, since no access begins within another one.
  @exclusivity(unchecked) fileprivate var state: OperationState
  fileprivate var timers: [Timer] = []
  /// Stopped operations that end when this one has ended.
  fileprivate var stoppedBehind: [IOOperation] = []

  /// - Parameter offset: for random channels, counted from where the channel began.
  init(
    _ channel: Channel, _ entry: DescriptorEntry, _ progress: OperationProgress, offset: Int,
    _ queue: DispatchQueue, _ handler: OperationHandler, for object: DispatchIO? = nil
  ) {
    self.channel = channel
    self.object = object
    self.entry = entry
    (self.handler, code) = (handler.call, handler.code)
    direction = progress.direction
    manner = progress.manner
    level = queue.level == .unspecified ? Frame.inheritedLevel : queue.level
    // Calls must not overlap: a concurrent queue gets a serial queue in front of it.
    let isSerial = queue.kind.isSerial || progress.manner == .once
    self.queue = isSerial ? queue : DispatchQueue(label: queue.label, target: queue)
    lane =
      switch (channel.type, progress.direction) {
      case (.random, _): .random
      case (.stream, .read): .streamRead
      case (.stream, .write): .streamWrite
      }
    state = OperationState(progress, for: channel, offset: offset)
  }

  fileprivate func timer(_ kind: OperationState.Timer) -> Timer {
    if let known = timers.first(where: { $0.kind == kind }) { return known }
    let made = Timer(kind, self)
    timers.append(made)
    return made
  }
}

extension IOOperation: TransferClient {
  func ringDidTransfer(_ outcome: Transfer.Outcome) { entry.ringDidTransfer(outcome, for: self) }
}

// SAFETY: see the guards and the owner above.
extension IOOperation: @unchecked Sendable {}

internal import Glibc

/// A descriptor under the control of channels: what is shared by all channels on it.
///
/// It exists from the first channel until the last has closed and its operations have ended; then the
/// descriptor is given back as it was found, and the cleanup handlers of all its channels are submitted.
/// A channel made from a path has an entry of its own, which goes the same way if the file cannot be opened.
/// Everything is decided under one lock and done after unlocking: see `Effects`.
final class DescriptorEntry {
  enum Stage {
    case unopened(UnopenedFile)
    /// A thread is opening the file; these operations wait for it.
    case opening([IOOperation])
    case open(OpenFile)
    /// There is no descriptor: it was a bad one, or opening the file failed.
    case failed(Int32)
    case givenBack
  }

  /// Something a channel wants to run when nothing else does.
  struct Barrier {
    let queue: DispatchQueue
    let body: () -> Void
  }

  let lock = Lock()
  /// What the channel opens, if it was made from a path.
  let path: UnopenedFile?

  // GUARDED BY `lock`.
  private(set) var stage: Stage
  private var schedule = DescriptorSchedule<IOOperation, Barrier>()
  /// Operations that have been started and whose input or output has not ended.
  private var running: [IOOperation] = []
  /// Operations submitted whose handler has not returned for the last time.
  private var unfinished = 0
  private var openChannels = 0
  /// The channels that have come while there was a descriptor to be had; they are cleaned up together.
  private var cleanups: [Channel] = []
  /// The thread that runs a barrier, for `fileDescriptor` to know.
  private var barrierThread: UInt32 = 0
  private var readWatch: ReadinessWatch?
  private var writeWatch: ReadinessWatch?

  /// An entry of a client's descriptor.
  init(_ stage: Stage) {
    self.stage = stage
    path = nil
  }

  /// An entry of a file that its first operation opens.
  init(opening path: UnopenedFile) {
    stage = .unopened(path)
    self.path = path
  }

  /// What a transition has found to be done after unlocking.
  struct Effects {
    var steps: [IOOperation] = []
    var deliveries: [IOOperation] = []
    var submissions: [(DispatchQueue, () -> Void)] = []
    var barriers: [Barrier] = []
    var endedTimers: [LoopTimer] = []
    var followers: [IOOperation] = []
  }

  /// Changes something under the lock, starts what may start then, and does what is to be done.
  func change<Result>(_ body: (inout Effects) -> Result) -> Result {
    var effects = Effects()
    lock.lock()
    let result = body(&effects)
    startWhatMay(&effects)
    let mayGiveBack = isUnused
    lock.unlock()
    // First, so that one who is told once finds the descriptor as it was.
    if mayGiveBack { giveBack() }
    for timer in effects.endedTimers { timer.cancel() }
    for operation in effects.followers { operation.limitFollowing() }
    for operation in effects.deliveries { operation.submitDelivery() }
    for (queue, body) in effects.submissions { queue.asyncUnsafe(execute: body) }
    for barrier in effects.barriers { run(barrier) }
    for operation in effects.steps { operation.submitStep() }
    return result
  }

  private func startWhatMay(_ effects: inout Effects) {
    while let start = schedule.start() {
      switch start {
      case .operation(let operation):
        running.append(operation)
        operation.begin(&effects)
      case .barrier(let barrier):
        effects.barriers.append(barrier)
      }
    }
  }

  private func run(_ barrier: Barrier) {
    barrier.queue.asyncUnsafe { [self] in
      lock.withLock { barrierThread = CurrentThread.id }
      barrier.body()
      change { _ in
        barrierThread = 0
        schedule.finishBarrier()
      }
    }
  }

  // MARK: Channels

  /// A channel comes to the descriptor.
  /// - Returns: false when it has been given back already.
  func attach(_ channel: Channel) -> Bool {
    change { effects in
      switch stage {
      case .givenBack: return false
      case .failed(let error): fail(channel, error, &effects)
      case .unopened, .opening, .open:
        openChannels += 1
        cleanups.append(channel)
      }
      return true
    }
  }

  /// A channel closes.
  /// - Parameter stopping: whether its operations end early.
  func close(_ channel: Channel, stopping: Bool) {
    change { effects in
      retire(channel)
      guard stopping else { return }
      for operation in running where operation.channel === channel { operation.stop(&effects) }
      for operation in schedule.withdraw(where: { $0.channel === channel }) {
        // Behind one that still runs, so that handlers hear of the end in the order of the operations.
        if operation.lane != .random,
          let ahead = running.first(where: { $0.channel === channel && $0.lane == operation.lane })
        {
          ahead.endBehind(operation)
        } else {
          operation.end(.failure(ECANCELED), &effects)
        }
      }
    }
  }

  /// Call under the lock.
  private func retire(_ channel: Channel) {
    switch channel.state.close() {
    case .leave: openChannels -= 1
    case .nothing: break
    }
  }

  /// There is no descriptor for a channel that has just come: its cleanup handler is told at once. Call under
  /// the lock.
  private func fail(_ channel: Channel, _ error: Int32, _ effects: inout Effects) {
    switch channel.state.fail(error) {
    case .leave: effects.submissions.append((channel.cleanupQueue, { channel.runCleanup(error) }))
    case .nothing: break
    }
  }

  // MARK: Operations

  /// Takes an operation up, or ends it at once if its channel takes none.
  func submit(_ operation: IOOperation) {
    change { effects in
      unfinished += 1
      switch operation.channel.state.admission() {
      case .admitted: schedule.add(operation, operation.lane)
      case .refused(let error): operation.end(.failure(error), &effects)
      }
    }
  }

  /// An operation that runs has no more input or output. Call under the lock.
  func didEnd(_ operation: IOOperation) {
    if let index = running.firstIndex(where: { $0 === operation }) {
      running.remove(at: index)
      schedule.finish(operation.lane)
    }
  }

  /// An operation's handler has returned for the last time. Call under the lock.
  func didFinish(_ operation: IOOperation) { unfinished -= 1 }

  /// The one operation of a channel that exists for it alone has ended. Call under the lock.
  func didFinishOnly(_ operation: IOOperation) {
    unfinished -= 1
    retire(operation.channel)
  }

  func submit(_ barrier: Barrier) {
    change { _ in schedule.addBarrier(barrier) }
  }

  // MARK: The file

  enum Opening {
    case open(OpenFile)
    case failed(Int32)
    /// Somebody else is at it: the operation's step is submitted when it is done.
    case later
  }

  /// The open file, opened now if it was not yet.
  /// - Parameter operation: who asks; nil from a barrier.
  func file(for operation: IOOperation?) -> Opening {
    lock.lock()
    switch stage {
    case .open(let file):
      lock.unlock()
      return .open(file)
    case .failed(let error):
      lock.unlock()
      return .failed(error)
    case .opening(let waiting):
      if let operation { stage = .opening(waiting + [operation]) }
      lock.unlock()
      return .later
    case .givenBack:
      lock.unlock()
      return .failed(ECANCELED)
    case .unopened(let unopened):
      stage = .opening([])
      lock.unlock()
      return open(unopened)
    }
  }

  private func open(_ unopened: UnopenedFile) -> Opening {
    let (file, error) = unopened.open()
    return change { effects in
      if case .opening(let waiting) = stage { effects.steps += waiting }
      guard let file else {
        // Operations are told; the channel stays until it closes.
        stage = .failed(error)
        return .failed(error)
      }
      stage = .open(file)
      return .open(file)
    }
  }

  /// What another channel on the same descriptor finds: the descriptor, or the reason why there is none.
  var openDescriptor: (descriptor: Int32?, error: Int32) {
    lock.withLock {
      switch stage {
      case .open(let file): (file.descriptor, 0)
      case .failed(let error): (nil, error)
      case .unopened, .opening, .givenBack: (nil, 0)
      }
    }
  }

  /// What a channel that is not closed answers when asked for its descriptor.
  func descriptor() -> Int32 {
    let (known, mayOpen) = lock.withLock { () -> (Int32?, Bool) in
      switch stage {
      case .open(let file): (file.descriptor, false)
      case .unopened: (nil, barrierThread == CurrentThread.id)
      case .opening, .failed, .givenBack: (nil, false)
      }
    }
    if let known { return known }
    guard mayOpen, case .open(let file) = file(for: nil) else { return -1 }
    return file.descriptor
  }

  // MARK: Readiness

  /// The watch for one direction, made when first needed; nil once it cannot be told any more.
  func watch(_ direction: OperationProgress.Direction, on descriptor: Int32) -> ReadinessWatch {
    lock.withLock {
      switch direction {
      case .read:
        let watch = readWatch ?? ReadinessWatch(descriptor, .read)
        readWatch = watch
        return watch
      case .write:
        let watch = writeWatch ?? ReadinessWatch(descriptor, .write)
        writeWatch = watch
        return watch
      }
    }
  }

  // MARK: Giving back

  /// Call under the lock.
  private var isUnused: Bool { !cleanups.isEmpty && openChannels == 0 && unfinished == 0 && schedule.isIdle }

  /// Gives the descriptor back, unless another channel has come.
  private func giveBack() {
    // The kernel's watches go first and without the lock, since they may be about to tell. A channel that
    // comes meanwhile will make new ones.
    let watches = lock.withLock { () -> [ReadinessWatch?] in
      guard isUnused else { return [] }
      defer { (readWatch, writeWatch) = (nil, nil) }
      return [readWatch, writeWatch]
    }
    for watch in watches { watch?.remove() }
    lock.lock()
    guard isUnused, readWatch == nil, writeWatch == nil else {
      lock.unlock()
      return
    }
    var ended: [Channel] = []
    if case .open(let file) = stage {
      // Under the lock: whoever comes next finds the descriptor as it was, or waits.
      file.giveBack()
      if !file.isOwn { DescriptorTable.forget(file.descriptor, self) }
    }
    if case .opening = stage { Trap.runtimeBug("a file was given back while it was being opened") }
    swap(&ended, &cleanups)
    stage = .givenBack
    lock.unlock()
    for channel in ended { channel.cleanupQueue.asyncUnsafe { channel.runCleanup(0) } }
  }
}

// SAFETY: everything is GUARDED BY `lock`.
extension DescriptorEntry: @unchecked Sendable {}

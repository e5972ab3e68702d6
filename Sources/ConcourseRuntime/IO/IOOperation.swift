internal import Glibc

/// One read or write of a channel, from its submission until its handler has been called for the last time.
///
/// It advances in steps, each an item of a global queue: one system call mostly, then whatever that gives
/// to deliver. A step is never under way twice, and nobody waits in one: an operation whose descriptor is
/// not ready is parked.
final class IOOperation {
  enum Phase {
    /// Waits for its turn in the schedule.
    case waiting
    /// A step is submitted or under way, or the ring has its request.
    case stepping
    /// Its step is arranging that it be woken.
    case parking(isWoken: Bool)
    /// Waits to be woken.
    case parked
    /// Waits until its handler has returned, though not for long: see `IOOperation+Pace.swift`.
    case following
    /// Waits until its handler has dealt with some of what was delivered.
    case throttled
    case finished
  }

  /// Who is told.
  enum Receiver {
    case pieces(DispatchQueue, (Bool, DispatchData?, Int32) -> Void)
    case once(DispatchQueue, (DispatchData?, Int32) -> Void)
  }

  /// So much may wait for a slow handler before its operation stops reading.
  private static let largestOutbox = 32 << 20
  /// Steps without anything to deliver that may follow one another before others get the thread.
  private static let turns = 16

  let channel: Channel
  let entry: DescriptorEntry
  let lane: DescriptorSchedule<IOOperation, DescriptorEntry.Barrier>.Lane
  /// For random channels, the place in the file; nil for streams.
  private let start: Int?
  private let direction: OperationProgress.Direction
  let level: QoSLevel
  let pacing: Channel.Pacing?

  // GUARDED BY the entry's lock.
  var progress: OperationProgress
  var phase = Phase.waiting
  private var isStopped = false
  /// Stopped operations that end when this one has.
  private var stoppedBehind: [IOOperation] = []
  private(set) var outbox = Fifo<OperationProgress.Delivery>()
  private var outboxBytes = 0
  /// How often in a row there was nothing to be had.
  private var dryLooks = 0
  var pace = Pace()
  /// Made when first needed; they hold this object, which drops them when it has finished.
  private var retryTimer: LoopTimer?
  var intervalTimer: LoopTimer?
  var followTimer: LoopTimer?

  /// OWNED BY whoever submits, then by the receiver's queue; nil when everything has been told.
  private var receiver: Receiver?

  /// - Parameters:
  ///   - offset: counted from where the channel began; for random channels only.
  init(
    _ channel: Channel, _ entry: DescriptorEntry, _ progress: OperationProgress, offset: Int,
    _ receiver: Receiver
  ) {
    self.channel = channel
    self.entry = entry
    self.progress = progress
    direction = progress.direction
    let queue: DispatchQueue
    switch receiver {
    case .pieces(let asked, let handler):
      queue = asked
      // Calls must not overlap: what is not serial is given a serial queue of the operation's in front.
      let serial = asked.kind.isSerial ? asked : DispatchQueue(label: asked.label, target: asked)
      self.receiver = .pieces(serial, handler)
    case .once(let asked, _):
      queue = asked
      self.receiver = receiver
    }
    level = queue.level == .unspecified ? Frame.inheritedLevel : queue.level
    switch (channel.type, progress.direction) {
    case (.random, _):
      lane = .random
      let (sum, overflow) = channel.base.addingReportingOverflow(offset)
      start = overflow ? -1 : sum
    case (.stream, .read):
      lane = .streamRead
      start = nil
    case (.stream, .write):
      lane = .streamWrite
      start = nil
    }
    pacing = channel.pacing
  }

  // MARK: Transitions, called under the entry's lock

  typealias Effects = DescriptorEntry.Effects

  /// Its turn has come, or it has been woken.
  func begin(_ effects: inout Effects) {
    phase = .stepping
    effects.steps.append(self)
  }

  /// Its channel was closed so that operations end early.
  func stop(_ effects: inout Effects) {
    isStopped = true
    switch phase {
    case .parked, .following, .throttled: end(.failure(ECANCELED), &effects)
    case .waiting, .stepping, .parking, .finished: break
    }
  }

  /// Lets a stopped operation that has not started end after this one, which is about to.
  func endBehind(_ operation: IOOperation) { stoppedBehind.append(operation) }

  func end(_ end: OperationProgress.End, _ effects: inout Effects) {
    for delivery in progress.end(end) { deliver(delivery, &effects) }
  }

  func deliver(_ delivery: OperationProgress.Delivery, _ effects: inout Effects) {
    if delivery.isLast {
      phase = .finished
      entry.didEnd(self)
      effects.endedTimers += [retryTimer, intervalTimer, followTimer].compactMap { $0 }
      (retryTimer, intervalTimer, followTimer) = (nil, nil, nil)
    }
    switch receiver! {
    case .pieces:
      outbox.append(delivery)
      outboxBytes += cost(delivery)
      effects.deliveries.append(self)
    case .once(let queue, let handler):
      guard delivery.isLast else { return }
      receiver = nil
      entry.didFinishOnly(self)
      effects.submissions.append((queue, { handler(delivery.data, delivery.error) }))
    }
    guard delivery.isLast else { return }
    let behind = stoppedBehind
    stoppedBehind = []
    for operation in behind { operation.end(.failure(ECANCELED), &effects) }
  }

  /// How much memory a delivery holds that would not be held without it.
  private func cost(_ delivery: OperationProgress.Delivery) -> Int {
    switch direction {
    case .read: delivery.data?.count ?? 0
    case .write: 0
    }
  }

  // MARK: Steps

  func submitStep() {
    let queue = entry.lock.withLock { pace.queue } ?? Runtime.globalQueue(level)
    queue.asyncUnsafe { self.step() }
  }

  private func step() {
    let file: OpenFile
    switch entry.file(for: self) {
    case .open(let open): file = open
    case .later: return
    case .failed(let error): return entry.change { end(.failure(error), &$0) }
    }
    startInterval()
    for _ in 0..<Self.turns {
      guard let transfer = nextTransfer() else { return }
      let outcome = perform(transfer, on: file)
      if case .pending = outcome { return }
      switch advance(outcome, asked: transfer.count, file.road) {
      case .again: continue
      case .park: return park(file.road == .readiness ? file.descriptor : nil)
      case .leave: return
      }
    }
    submitStep()
  }

  private struct Transfer {
    let count: Int
    /// -1 for the file's own position.
    let offset: Int
    /// What to write.
    let data: DispatchData
  }

  /// What to do next, or nil if the operation waits or has ended.
  private func nextTransfer() -> Transfer? {
    entry.lock.lock()
    let count = progress.request
    let isValid = start.map { $0 >= 0 && !$0.addingReportingOverflow(progress.transferred).overflow } ?? true
    if isStopped || count == 0 || !isValid {
      entry.lock.unlock()
      entry.change { effects in
        if count == 0 {
          deliver(progress.complete(), &effects)
        } else {
          end(.failure(isStopped ? ECANCELED : EINVAL), &effects)
        }
      }
      return nil
    }
    defer { entry.lock.unlock() }
    if outboxBytes >= Self.largestOutbox {
      phase = .throttled
      return nil
    }
    return Transfer(
      count: count, offset: start.map { $0 + progress.transferred } ?? -1,
      data: progress.direction == .write ? progress.data : .empty)
  }

  private func perform(_ transfer: Transfer, on file: OpenFile) -> FileTransfer.Outcome {
    switch direction {
    case .read:
      FileTransfer.read(file, transfer.count, offset: transfer.offset, for: self)
    case .write:
      FileTransfer.write(file, transfer.data, transfer.count, offset: transfer.offset, for: self)
    }
  }

  private enum Next {
    case again, park
    /// The operation has ended, or its next step is submitted.
    case leave
  }

  /// Counts in what a transfer has given.
  private func advance(_ outcome: FileTransfer.Outcome, asked: Int, _ road: OpenFile.Road) -> Next {
    entry.change { effects in
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
        end(.endOfFile, &effects)
        return .leave
      case .failure(let error):
        end(.failure(error), &effects)
        return .leave
      case .pending:
        Trap.runtimeBug("a transfer that has not ended was counted in")
      }
      dryLooks = moved == 0 ? dryLooks + 1 : 0
      if let delivery {
        deliver(delivery, &effects)
        if delivery.isLast { return .leave }
      }
      // Less than asked for from a pipe or socket: there is no more now, and the kernel will tell of more.
      // Who is told once has to look, since only an empty descriptor ends his operation.
      let isDry =
        moved == 0 || road == .readiness && progress.manner == .pieces && moved < min(asked, 64 << 10)
      if isDry && !isStopped {
        phase = .parking(isWoken: false)
        return .park
      }
      if delivery == nil { return .again }
      follow(&effects)
      return .leave
    }
  }

  /// The ring has carried out the request.
  func didTransfer(_ outcome: FileTransfer.Outcome) {
    switch advance(outcome, asked: .max, .file) {
    case .again: submitStep()
    case .park: park(nil)
    case .leave: break
    }
  }

  // MARK: Waiting

  /// Arranges to be woken when the descriptor is ready.
  /// - Parameter descriptor: nil for one that nobody tells of.
  private func park(_ descriptor: Int32?) {
    let looks = entry.lock.withLock { dryLooks }
    var failure: Int32 = 0
    if let descriptor, looks <= 4 {
      failure = entry.watch(direction, on: descriptor).await(self)
    } else {
      // Who is told that a descriptor is ready and finds nothing, again and again, must not go on in
      // circles; and nobody tells of a file that is not ready. Later, and each time later still.
      let timer = entry.lock.withLock { () -> LoopTimer in
        let timer = retryTimer ?? LoopTimer(owner: self)
        retryTimer = timer
        return timer
      }
      set(timer, after: 1_000_000 << UInt64(min(looks / 4, 6)))
    }
    entry.change { effects in
      if failure != 0 {
        end(.failure(failure), &effects)
      } else if case .parking(let isWoken) = phase {
        if isWoken || isStopped { begin(&effects) } else { phase = .parked }
      }
    }
  }

  /// The descriptor may be ready.
  func wake() {
    entry.change { effects in
      switch phase {
      case .parked: begin(&effects)
      case .parking: phase = .parking(isWoken: true)
      case .waiting, .stepping, .following, .throttled, .finished: break
      }
    }
  }

  // MARK: The handler

  /// Submits one call of the handler: the oldest that has not been made.
  func submitDelivery() {
    guard case .pieces(let queue, let handler)? = receiver else { return }
    queue.asyncUnsafe { self.callHandler(handler) }
  }

  private func callHandler(_ handler: (Bool, DispatchData?, Int32) -> Void) {
    var delivery: OperationProgress.Delivery? = entry.lock.withLock { outbox.removeFirst() }
    let (isLast, freed) = (delivery!.isLast, cost(delivery!))
    let begun = Clock.uptime()
    handler(isLast, delivery!.data, delivery!.error)
    delivery = nil
    let duration = Clock.uptime() &- begun
    let told = entry.change { effects -> Receiver? in
      outboxBytes -= freed
      if isLast {
        entry.didFinish(self)
        // What the handler has captured goes with the last call, whoever still holds the operation.
        defer { receiver = nil }
        return receiver
      } else {
        handlerDidReturn(after: duration, hasRoom: outboxBytes < Self.largestOutbox, &effects)
      }
      return nil
    }
    _ = told
  }
}

// SAFETY: see the guards and owners above.
extension IOOperation: @unchecked Sendable {}

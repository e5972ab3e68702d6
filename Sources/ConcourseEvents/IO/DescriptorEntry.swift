/// A descriptor under the control of channels, shared by all channels on it.
///
/// It exists from the first channel until the last has closed and its operations have ended. Then it gives the
/// descriptor back as it was and submits the cleanup handlers of all its channels. A channel made from a path has an
/// entry of its own.
///
/// `DescriptorState` decides, under the entry's lock. The entry acts without the lock: it submits steps, handlers and
/// barriers, opens the file, makes the transfers, and arms watches and timers.
final class DescriptorEntry {
  private let lock = Lock(.descriptorEntry)
  // GUARDED BY `lock`.
  // Unchecked, since no access begins during another one.
  @exclusivity(unchecked) private var state: DescriptorState
  /// Made when first needed. The watches retain the entry until they are removed.
  private var readWatch: FileWatch?
  private var writeWatch: FileWatch?

  init(_ stage: DescriptorState.Stage) { state = DescriptorState(stage) }

  /// Makes a transition under the lock, and carries out its effects after unlocking.
  @inline(__always)
  private func change<Result>(_ transition: (inout DescriptorState) -> Result) -> Result {
    lock.lock()
    let result = transition(&state)
    let effects = state.takeEffects()
    let isUnused = state.isUnused
    lock.unlock()
    // Give back first, so that the handler of a one-shot operation finds the descriptor as it was.
    if isUnused { giveBack() }
    for effect in effects { carryOut(effect) }
    return result
  }

  private func carryOut(_ effect: DescriptorState.Effect) {
    switch effect {
    case .step(let operation):
      let queue = operation.stepQueue ?? DispatchQueue.global(at: operation.level)
      queue.asyncUnsafe { operation.entry.step(operation) }
    case .callHandler(let operation):
      operation.queue.asyncUnrecorded { operation.entry.callHandler(of: operation) }
    case .run(let barrier):
      barrier.queue.asyncUnrecorded { self.run(barrier) }
    case .cleanUp(let channel, let error):
      guard channel.cleanupQueue.hasThread else { return }
      channel.cleanupQueue.asyncUnrecorded { channel.runCleanup(error) }
    case .set(let timer, let delay):
      set(timer, delay)
    case .cancel(let timer):
      timer.cancel()
    }
  }

  @inline(never)
  private func set(_ timer: IOOperation.Timer, _ delay: UInt64) {
    timer.set(.uptime(Clock.uptime() &+ delay))
    // The operation may have ended, and cancelled the timer, before it was set. The loop would keep both.
    if lock.withLock({ state.hasEnded(timer.operation) }) { timer.cancel() }
  }

  // MARK: For channels

  /// Adds a channel to the descriptor.
  /// - Returns: false if the descriptor has been given back.
  func attach(_ channel: Channel) -> Bool { change { $0.attach(channel) } }

  /// Closes a channel.
  /// - Parameter stopping: whether its operations end early.
  func close(_ channel: Channel, stopping: Bool) { change { $0.close(channel, stopping: stopping) } }

  /// What a new channel for the same file starts from: the descriptor, the path, or an error.
  func origin(besides channel: Channel) -> DescriptorState.Origin {
    lock.withLock { state.origin(besides: channel) }
  }

  /// The descriptor as clients see it: -1 if there is none. A call from a barrier opens the file.
  func descriptor(for channel: Channel) -> Int32 {
    switch lock.withLock({ state.descriptor(for: channel, on: CurrentThread.id) }) {
    case .known(let descriptor): descriptor
    case .open(let unopened): open(unopened)?.descriptor ?? -1
    }
  }

  func submit(_ operation: IOOperation) { change { $0.submit(operation) } }

  func submit(_ barrier: DescriptorState.Barrier) { change { $0.submit(barrier) } }

  private func run(_ barrier: DescriptorState.Barrier) {
    lock.withLock { state.didBegin(barrier, on: CurrentThread.id) }
    let (body, object) = barrier.take()
    if Recording.isOn { ItemRecording.run(barrier.code, from: nil, body) } else { body() }
    change { $0.barrierDidEnd() }
    withExtendedLifetime((body, object)) {}
  }

  // MARK: Steps

  private func step(_ operation: IOOperation) {
    var next = change { $0.beginStep(of: operation) }
    while true {
      switch next {
      case .transfer(let transfer, let file):
        guard let outcome = transfer.perform(on: file, for: operation) else { return }
        next = change { $0.didTransfer(outcome, for: operation, on: file) }
      case .open(let unopened):
        open(unopened)
        next = change { $0.beginStep(of: operation) }
      case .arm(let file):
        let failure = armWatch(operation.direction, on: file.descriptor)
        return change { $0.didArm(operation, failure) }
      case .leave:
        return
      }
    }
  }

  @discardableResult
  private func open(_ unopened: UnopenedFile) -> OpenFile? {
    let (file, error) = unopened.open()
    change { $0.didOpen(file, error) }
    return file
  }

  /// The ring has carried out a request.
  func ringDidTransfer(_ outcome: Transfer.Outcome, for operation: IOOperation) {
    change { $0.ringDidTransfer(outcome, for: operation) }
  }

  private func callHandler(of operation: IOOperation) {
    if Recording.isOn {
      ItemRecording.run(operation.code, from: nil) { callHandlerNow(of: operation) }
    } else {
      callHandlerNow(of: operation)
    }
  }

  private func callHandlerNow(of operation: IOOperation) {
    var delivery: OperationProgress.Delivery? = lock.withLock { state.takeDelivery(of: operation) }
    let begun = Clock.uptime()
    operation.handler!(delivery!.isLast, delivery!.data, delivery!.error)
    // The next step may use the data's memory again.
    delivery = nil
    let duration = Clock.uptime() &- begun
    let released = change { $0.handlerDidReturn(operation, after: duration) }
    withExtendedLifetime(released) {}
  }

  func timerIsDue(_ timer: IOOperation.Timer) { change { $0.timerIsDue(timer) } }

  // MARK: Readiness

  /// Asks the kernel to report once when the descriptor is ready.
  /// - Returns: 0, or the errno if the descriptor is bad.
  private func armWatch(_ direction: OperationProgress.Direction, on descriptor: Int32) -> Int32 {
    let (watch, isNew) = lock.withLock { () -> (FileWatch, Bool) in
      if let known = direction == .read ? readWatch : writeWatch { return (known, false) }
      let made = FileWatch(descriptor: descriptor, interest: direction == .read ? .read : .write, owner: self)
      if direction == .read { readWatch = made } else { writeWatch = made }
      return (made, true)
    }
    return isNew ? watch.install() : watch.rearm()
  }

  // MARK: Giving back

  /// Gives the descriptor back, unless another channel has come.
  private func giveBack() {
    // The kernel's watches go first, without the lock, since they may be about to report. A channel that comes
    // meanwhile makes new ones.
    let watches = lock.withLock { () -> [FileWatch?] in
      guard state.isUnused else { return [] }
      defer { (readWatch, writeWatch) = (nil, nil) }
      return [readWatch, writeWatch]
    }
    for watch in watches { watch?.remove() }
    lock.lock()
    guard state.isUnused, readWatch == nil, writeWatch == nil else {
      lock.unlock()
      return
    }
    if case .open(let file) = state.stage {
      // Under the lock: the next channel on the descriptor finds it as it was, or waits.
      if file.isOwn { file.giveBack() } else { DescriptorTable.giveBack(file, of: self) }
    }
    let channels = state.giveBack()
    lock.unlock()
    for channel in channels { carryOut(.cleanUp(channel, error: 0)) }
  }
}

extension DescriptorEntry: FileWatchOwner {
  func fileIsReady(_ watch: FileWatch) {
    change { $0.wake(watch.interest == .write ? .write : .read) }
  }
}

// SAFETY: everything is GUARDED BY `lock`.
extension DescriptorEntry: @unchecked Sendable {}

/// The entries of the descriptors that clients have handed to channels, so that channels on one descriptor share an
/// entry.
///
/// Lock order: an entry's lock may be held when the table's is taken (`giveBack`), never the other way round.
enum DescriptorTable {
  private static let lock = Lock(.descriptorTable)
  // SAFETY: GUARDED BY `lock`.
  private nonisolated(unsafe) static var entries: [Int32: DescriptorEntry] = [:]
  /// The same descriptors, by file. A flag such as `O_NONBLOCK` belongs to all descriptors of an open file description.
  // SAFETY: GUARDED BY `lock`.
  private nonisolated(unsafe) static var files: [OpenFile.Identity: [OpenFile]] = [:]

  /// Adds a channel to the entry of a descriptor.
  /// - Returns: the entry. For a bad descriptor it has no file, and the channel has failed.
  static func attach(_ channel: Channel, to descriptor: Int32) -> DescriptorEntry {
    while true {
      let entry = lock.withLock { entries[descriptor] } ?? add(descriptor)
      // An entry that is being given back leaves the table before it unlocks.
      if entry.attach(channel) { return entry }
    }
  }

  /// Makes the entry of a descriptor, unless another thread is faster.
  private static func add(_ descriptor: Int32) -> DescriptorEntry {
    // Without the lock, which all channels need.
    let (kind, error) = OpenFile.kind(of: descriptor)
    guard let kind else { return DescriptorEntry(.failed(error)) }
    return lock.withLock {
      if let known = entries[descriptor] { return known }
      // Under the lock, so that no second thread reads flags that the first has changed.
      let file = OpenFile.adopt(descriptor, kind, isOwn: false)
      let entry = DescriptorEntry(.open(file))
      entries[descriptor] = entry
      files[kind.identity, default: []].append(file)
      return entry
    }
  }

  /// Gives a client's descriptor back as it was. If channels use another descriptor of the same open file, such as a
  /// terminal's 0 and 1, the last of them makes it blocking again.
  static func giveBack(_ file: OpenFile, of entry: DescriptorEntry) {
    lock.withLock {
      guard entries[file.descriptor] === entry else { return }
      entries[file.descriptor] = nil
      var others = files[file.identity] ?? []
      guard let index = others.firstIndex(where: { $0.descriptor == file.descriptor }) else { return }
      let present = others.remove(at: index)
      if present.wasBlocking,
        let heir = others.firstIndex(where: { System.isSameFile($0.descriptor, file.descriptor) })
      {
        others[heir].wasBlocking = true
      } else {
        present.giveBack()
      }
      files[file.identity] = others.isEmpty ? nil : others
    }
  }
}

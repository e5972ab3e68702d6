public import CConcourse

// The uncontended path is inlined into the caller: one compare-exchange to take the queue, the body,
// one compare-exchange to give it back. Nothing is allocated and nothing is counted.

extension DispatchQueue {
  /// Runs a closure in its turn on this queue, and returns when it has run.
  ///
  /// The closure runs on the calling thread, except that items of the main queue and of queues that
  /// end in it run on the main thread. Items keep their order: everything submitted before runs first.
  /// The queue's QoS does not apply. Traps when the calling item already holds the queue: it would
  /// wait for itself for ever. Matching C function: `dispatch_sync`.
  /// - Parameter work: the closure.
  /// - Returns: what the closure returns; what it throws is rethrown.
  @inlinable
  public final func sync<Result, Failure: Error>(
    execute work: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try syncAlone(idle: kind == .serial ? 0 : nil, barrier: false, work)
  }

  /// Runs `work` alone on the queue: at once if the queue's word is `idle`, otherwise by `syncSlowly`.
  @inlinable @inline(__always)
  final func syncAlone<Result, Failure: Error>(
    idle: UInt64?, barrier: Bool, _ work: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let thread = CurrentThread.state
    let id = thread.pointee.id
    // A thread that has not learnt its id has 0, which would look like success.
    guard id != 0, let idle, list.isEmpty, state.takeIdle(id, idle) else {
      return try syncSlowly(barrier: barrier, work)
    }
    let outer = thread.pointee.innermostFrame
    var frame = Frame(
      queue: .passUnretained(self), parent: outer, exclusive: true,
      level: outer?.pointee.level ?? .unspecified)
    return try withUnsafeMutablePointer(to: &frame) { frame throws(Failure) -> Result in
      thread.pointee.innermostFrame = frame
      defer {
        thread.pointee.innermostFrame = outer
        if !state.releaseIdle(id, idle) { handOn() }
      }
      return try work()
    }
  }

  /// As `sync(execute:)`, with flags: `.barrier` runs the closure alone on a private concurrent queue;
  /// the QoS flags change nothing, since the closure runs at the caller's level. Matching C functions:
  /// `dispatch_sync`, `dispatch_barrier_sync`.
  @inlinable
  public final func sync<Result, Failure: Error>(
    flags: DispatchWorkItemFlags, execute work: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    if !flags.contains(.barrier) { return try syncSlowly(barrier: false, work) }
    return try barrierSync(work)
  }

  /// As `sync(flags: .barrier)`, inlined into the caller. Queues of other kinds ignore the barrier.
  @inlinable @inline(__always)
  package final func barrierSync<Result, Failure: Error>(
    _ work: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let isConcurrent = kind == .concurrent
    return try syncAlone(idle: isConcurrent ? QueueState.idleConcurrent : 0, barrier: isConcurrent, work)
  }

  @inlinable
  final func syncSlowly<Result, Failure: Error>(
    barrier: Bool, _ work: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let thread = CurrentThread.state
    let outer = thread.pointee.innermostFrame
    var frame = Frame(
      queue: .passUnretained(self), parent: outer, exclusive: barrier,
      level: outer?.pointee.level ?? .unspecified)
    return try withUnsafeMutablePointer(to: &frame) { frame throws(Failure) -> Result in
      guard beginSync(frame) else {
        var result: Swift.Result<Result, Failure>?
        runWhereServed(frame) { result = Swift.Result(catching: work) }
        endSync(exclusive: barrier)
        return try result!.get()
      }
      thread.pointee.innermostFrame = frame
      defer {
        thread.pointee.innermostFrame = outer
        endSync(exclusive: barrier)
      }
      return try work()
    }
  }
}

// MARK: - Taking and giving back the queues that a synchronous item needs

extension DispatchQueue {
  /// Waits for this queue and every queue its work passes through.
  /// - Returns: false when the body must run on a thread that serves the queue, in `runWhereServed`.
  @usableFromInline
  final func beginSync(_ frame: UnsafeMutablePointer<Frame>) -> Bool {
    if CurrentThread.state.pointee.id == 0 { _ = CurrentThread.id }
    if kind.isLane {
      if kind == .workloop {
        Trap.clientBug(105, "sync on workloop \"\(label)\"; a workloop orders its items, use asyncAndWait")
      }
      acquire(exclusive: kind.isSerial || frame.pointee.exclusive, frame)
    }
    return !state.snapshot.isNested || beginSyncAbove(frame)
  }

  /// As `beginSync`, for the queues above this one only.
  final func beginSyncAbove(_ frame: UnsafeMutablePointer<Frame>) -> Bool {
    var link = kind.isServedByCaller ? Unmanaged.passUnretained(self) : target
    while let reference = link {
      let queue = reference._withUnsafeGuaranteedRef { $0 }
      if queue.kind == .global { return true }
      if queue.kind == .main {
        if CurrentThread.isMain {
          Trap.clientBug(
            103,
            "sync on queue \"\(label)\", whose items run on the main thread, from the main thread: "
              + "it would wait for itself")
        }
        return false
      }
      if queue.kind == .runLoop {
        if Frame.hold(of: queue, from: frame.pointee.parent) != .none {
          Trap.clientBug(
            104,
            "sync on queue \"\(label)\", whose items are performed one by one, from inside one of them: "
              + "it would wait for itself")
        }
        return false
      }
      queue.acquire(exclusive: queue.kind.isSerial, frame)
      link = queue.target
    }
    return true
  }

  /// Gives back what `beginSync` took.
  @usableFromInline
  final func endSync(exclusive: Bool) {
    guard kind.isLane else { return }
    // This queue goes last: while a queue is held, its target does not change.
    if state.snapshot.isNested {
      var link = target
      while let queue = link?.takeUnretainedValue(), queue.kind.isLane {
        link = queue.target
        queue.giveBack(exclusive: queue.kind.isSerial)
      }
    }
    giveBack(exclusive: exclusive || kind.isSerial)
  }

  /// Gives back this one queue.
  @inline(__always)
  private final func giveBack(exclusive: Bool) {
    let id = CurrentThread.id
    if !exclusive {
      endReading()
    } else if !state.releaseExclusively(id) {
      handOn()
    }
  }

  /// Takes this one queue, at once or after waiting for its turn.
  @inline(__always)
  private final func acquire(exclusive: Bool, _ frame: UnsafeMutablePointer<Frame>) {
    if hasNoEntries && (exclusive ? takeAlone() : beginReading()) { return }
    _ = waitForTurn(exclusive: exclusive, frame, body: nil)
  }

  /// Takes this one queue for the calling thread alone, if it is free.
  @inline(__always)
  final func takeAlone() -> Bool {
    state.takeExclusively(CurrentThread.id) || state.snapshot.isFreeApart && takeAloneFromApart()
  }

  @inline(never)
  private final func takeAloneFromApart() -> Bool {
    endApart()
    return state.takeExclusively(CurrentThread.id)
  }

  /// Waits in the list until the queue is handed to this thread.
  /// - Returns: true if the draining thread has run `body`.
  @inline(never)
  final func waitForTurn(
    exclusive: Bool, _ frame: UnsafeMutablePointer<Frame>, body: (() -> Void)?
  ) -> Bool {
    switch Frame.hold(of: self, from: frame.pointee.parent) {
    case .exclusive:
      Trap.clientBug(
        101,
        "sync on queue \"\(label)\", which the calling item already holds: it would wait for itself")
    case .shared where exclusive:
      Trap.clientBug(
        102,
        "barrier sync on queue \"\(label)\" from inside one of its items: the barrier would wait for "
          + "that item, and the item for the barrier")
    case .shared:
      // This thread already reads. Behind a barrier that waits for it, it would hang.
      state.addReaderPlace()
      return false
    case .none:
      break
    }
    Runtime.requireThreads("sync on queue \"\(label)\", which is not idle,")
    if Process.hasLeftThreads { requireHolders() }
    let id = CurrentThread.id
    let level = frame.pointee.level
    var isBoosted = needsBoost
    if isBoosted { beginWaiting() }
    // With `asyncAndWait`, a C program may release the queue in the body, which another thread runs.
    let kept = body == nil ? nil : Unmanaged.passRetained(self)
    defer {
      if isBoosted { endWaiting() }
      kept?.release()
    }
    var waiter = SyncWaiter(
      thread: id, exclusive: exclusive, queue: frame.pointee.queue, frame: frame.pointee.parent,
      level: level, body: body)
    return withUnsafeMutablePointer(to: &waiter) { waiter in
      let node = NodeMagazine.make(
        .waiter(waiter, thread: id, forks: Process.forks), level: level,
        traits: exclusive && kind == .concurrent ? [.waiter, .barrier] : .waiter)
      let isWorkloop = kind == .workloop
      if !isWorkloop { noteLevel(level) }
      let wasEmpty = isWorkloop ? asWorkloop.push(node) : list.push(node)
      if wasEmpty, case .own = state.noteWaiter(id) {
        handOn()
      } else if level > self.level && wasEmpty == isWorkloop {
        // Lifts the entries ahead of this thread, or a workloop for the first entry of a class.
        raise(to: level)
      }
      if Recording.isOn { ItemRecording.waits(for: self) }
      if !waiter.pointee.event.spin() {
        if !isBoosted && needsBoostBeforeSleep {
          isBoosted = true
          beginWaiting()
        }
        sleepUntilTurn(waiter, frame, isBoosted: isBoosted)
      }
      PlainMemory.writes(beside: waiter.pointee.bodyHasRun)
      // ORDERING: relaxed; the event's acquiring load comes before it.
      return waiter.pointee.bodyHasRun.load(ordering: .relaxed)
    }
  }

  /// Traps in a forked child if the queue is held by a thread of the parent. Readers leave no ids: those of the parent are
  /// noticed while the child has one thread.
  private final func requireHolders() {
    let seen = state.snapshot
    let isLost =
      seen.isOwned ? Process.lacks(thread: seen.owner) : seen.hasReaders && Process.isAloneInChild
    // The thread may have given the queue up, and ended, meanwhile.
    let now = state.snapshot
    guard isLost, now.isOwned ? now.owner == seen.owner : now.hasReaders else { return }
    Runtime.refuseWait("sync on queue \"\(label)\", which a thread of the parent holds,")
  }

  private final func sleepUntilTurn(
    _ waiter: UnsafeMutablePointer<SyncWaiter>, _ frame: UnsafeMutablePointer<Frame>, isBoosted: Bool
  ) {
    Recording.beginWait(.sync, selfPointer)
    defer { Recording.endWait(.sync, selfPointer) }
    if isBoosted { boostBeforeSleep() }
    if Runtime.shared.serveWithoutWorkers(until: waiter.pointee.event) { return }
    SyncWaiter.sleep(.init(object: selfPointer, waiter: waiter, frames: frame, kind: .turn))
  }

  /// Runs `body` where the hierarchy ends, in its turn there, while this thread waits: on the main thread, or on
  /// the thread that performs the items of a `RunLoopQueue`.
  @usableFromInline @inline(never)
  final func runWhereServed(_ frame: UnsafeMutablePointer<Frame>, _ body: () -> Void) {
    withoutActuallyEscaping(body) { body in
      let id = CurrentThread.id
      var waiter = SyncWaiter(
        thread: id, exclusive: frame.pointee.exclusive, queue: frame.pointee.queue,
        frame: frame.pointee.parent, level: frame.pointee.level, body: body)
      withUnsafeMutablePointer(to: &waiter) { waiter in
        let last = endOfHierarchy
        last.submit(
          NodeMagazine.make(
            .waiter(waiter, thread: id, forks: Process.forks), level: frame.pointee.level, traits: .waiter))
        if Recording.isOn { ItemRecording.waits(for: last) }
        if !waiter.pointee.event.spin() {
          Recording.beginWait(.mainQueue, last.selfPointer)
          SyncWaiter.sleep(.init(object: last.selfPointer, waiter: waiter, frames: frame, kind: .service))
          Recording.endWait(.mainQueue, last.selfPointer)
        }
        PlainMemory.writes(beside: waiter.pointee.bodyHasRun)
      }
    }
  }

  final var endOfHierarchy: DispatchQueue {
    var last = self
    while let next = last.targetQueue { last = next }
    return last
  }
}

/// A thread that waits in a queue's list for its turn. Lives on that thread's stack.
package struct SyncWaiter: ~Copyable {
  let event = ThreadEvent()
  /// The waiting thread's id, so that ownership can be passed to it.
  let thread: UInt32
  /// Whether it needs the queue exclusively.
  let exclusive: Bool
  /// The queue it was submitted to and the frame it was submitted from, for a body run elsewhere.
  let queue: Unmanaged<DispatchQueue>
  let frame: UnsafeMutablePointer<Frame>?
  let level: QoSLevel
  /// If set, the thread that drains the queue may run the body instead of handing over the queue.
  let body: (() -> Void)?
  /// Whether that thread has run the body. The waiter then only returns.
  let bodyHasRun = Atomic<Bool>(false)

  /// Sleeps until the waiter is signalled, known to the search for deadlocks.
  static func sleep(_ wait: BlockedThread.Wait) {
    if TaskWaits.sleepBriefly(call(of: wait), { wait.waiter!.pointee.event.sleepAsWorker(until: $0) }) {
      return
    }
    BlockedThreads.during(wait) { wait.waiter!.pointee.event.sleepAsWorker(until: $0) }
  }

  /// What the waiting thread has called.
  private static func call(of wait: BlockedThread.Wait) -> String {
    let name = wait.kind == .turn && wait.waiter!.pointee.body != nil ? "asyncAndWait" : "sync"
    return "\(name) on queue \"\(wait.queue.label)\""
  }

  /// Runs a waiter's body on this thread, in a frame whose parent is the waiter's.
  ///
  /// Never inlined: the body's temporary reference must be gone before the waiter is signalled, since the
  /// closure lives on the waiter's stack.
  /// - Returns: whether the waiter still exists. If the body has forked, the waiting thread is left in the parent.
  @inline(never)
  static func runBody(of waiter: UnsafeMutablePointer<SyncWaiter>) -> Bool {
    let forks = Process.forks
    PlainMemory.reads(beside: waiter.pointee.bodyHasRun)
    let frame = Frame(
      queue: waiter.pointee.queue, parent: waiter.pointee.frame,
      exclusive: waiter.pointee.exclusive, level: waiter.pointee.level)
    let wasWorker = CurrentThread.state.pointee.was_worker
    Frame.run(frame) { waiter.pointee.body!() }
    // The body has forked, and returns.
    if wasWorker == 0 { WorkerThread.requirePool() }
    return Process.forks == forks
  }
}

// MARK: - asyncAndWait

extension DispatchQueue {
  /// Submits a closure and waits until it has run, obeying the queue's attributes.
  ///
  /// As `sync`, but if a worker is draining the queue, the closure runs on that worker, so the queue need
  /// not be handed over and back. On an idle queue the closure runs on the calling thread, on a queue that
  /// ends in the main queue on the main thread. Traps when the calling item already holds the queue.
  /// Matching C function: `dispatch_async_and_wait`.
  /// - Returns: what the closure returns; what it throws is rethrown.
  public final func asyncAndWait<Result, Failure: Error>(
    execute work: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try asyncAndWait(flags: [], execute: work)
  }

  /// As `asyncAndWait(execute:)`; with `.barrier` the closure runs alone on a private concurrent queue.
  /// Matching C function: `dispatch_barrier_async_and_wait`.
  public final func asyncAndWait<Result, Failure: Error>(
    flags: DispatchWorkItemFlags, execute work: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    var result: Swift.Result<Result, Failure>?
    wait(barrier: flags.contains(.barrier)) { result = Swift.Result(catching: work) }
    return try result!.get()
  }

  /// As `asyncAndWait`.
  final func wait(barrier: Bool, _ body: () -> Void) {
    if kind == .workloop { requireActive() }
    let outer = Frame.current
    var frame = Frame(
      queue: .passUnretained(self), parent: outer, exclusive: barrier,
      level: outer?.pointee.level ?? level)
    withUnsafeMutablePointer(to: &frame) { frame in
      if kind.isLane {
        let exclusive = kind.isSerial || barrier
        if !(hasNoEntries && (exclusive ? takeAlone() : beginReading())) {
          let hasRun = withoutActuallyEscaping(body) { waitForTurn(exclusive: exclusive, frame, body: $0) }
          if hasRun { return }
        }
      }
      if beginSyncAbove(frame) {
        Frame.run(frame.pointee, body)
      } else {
        runWhereServed(frame, body)
      }
      endSync(exclusive: barrier)
    }
  }
}

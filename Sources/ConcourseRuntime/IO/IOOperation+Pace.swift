// When an operation takes its next step after a delivery, and what timers make it do.
//
// A handler that returns quickly is followed: the next step comes when it has returned, on the same worker,
// which finds its buffer in its processor's cache and wakes nobody. While a handler takes its time, the
// steps go on beside it. Which of the two it is, the last call has shown; and since a handler may wait for
// something that waits for the operation's input, following ends after a few milliseconds in any case.

extension IOOperation {
  struct Pace {
    /// Where the steps run once there is more than one delivery: a queue made runnable by a worker is that
    /// worker's next step, which an item of a global queue is not.
    var queue: DispatchQueue?
    var handlerIsSlow = false
    /// How often the handler has been followed, and at which count the timer was set.
    var follows = 0
    var timedFollow: Int?
  }

  /// A handler that takes longer runs beside the next step.
  private static let quick: UInt64 = 50_000
  private static let patience: UInt64 = 5_000_000

  // MARK: Transitions, called under the entry's lock

  /// There will be another step after a delivery.
  func follow(_ effects: inout Effects) {
    if pace.queue == nil {
      pace.queue = DispatchQueue(label: "DispatchIO", target: Runtime.globalQueue(level))
    }
    if pace.handlerIsSlow { return begin(&effects) }
    phase = .following
    pace.follows += 1
    if pace.timedFollow == nil {
      pace.timedFollow = pace.follows
      effects.followers.append(self)
    }
  }

  /// A call of the handler that was not the last has returned.
  func handlerDidReturn(after duration: UInt64, hasRoom: Bool, _ effects: inout Effects) {
    pace.handlerIsSlow = duration > Self.quick
    switch phase {
    case .following: begin(&effects)
    case .throttled: if hasRoom { begin(&effects) }
    case .waiting, .stepping, .parking, .parked, .finished: break
    }
  }

  /// The handler has been followed for some time.
  private func followsTooLong(_ effects: inout Effects) {
    guard case .following = phase else {
      pace.timedFollow = nil
      return
    }
    if pace.timedFollow == pace.follows {
      pace.timedFollow = nil
      pace.handlerIsSlow = true
      begin(&effects)
    } else {
      pace.timedFollow = pace.follows
      effects.followers.append(self)
    }
  }

  // MARK: Timers

  /// Sets a timer unless the operation has finished: a timer that stood in the loop would keep it.
  func set(_ timer: LoopTimer, after delay: UInt64) {
    timer.set(.uptime(Clock.uptime() &+ delay))
    // It may have finished meanwhile, and found the timer not yet set.
    if entry.lock.withLock({ isFinished }) { timer.cancel() }
  }

  /// Call under the entry's lock.
  private var isFinished: Bool {
    switch phase {
    case .finished: true
    case .waiting, .stepping, .parking, .parked, .following, .throttled: false
    }
  }

  /// Sets the timer that ends the following.
  func limitFollowing() {
    let timer = entry.lock.withLock { () -> LoopTimer? in
      if isFinished { return nil }
      let timer = followTimer ?? LoopTimer(owner: self)
      followTimer = timer
      return timer
    }
    if let timer { set(timer, after: Self.patience) }
  }

  /// Sets the timer of the channel's interval, if it has one and it is the first time.
  func startInterval() {
    guard let pacing else { return }
    let timer = entry.lock.withLock { () -> LoopTimer? in
      guard intervalTimer == nil else { return nil }
      intervalTimer = LoopTimer(owner: self)
      return intervalTimer
    }
    if let timer { set(timer, after: pacing.interval) }
  }

  private func intervalHasPassed(_ timer: LoopTimer, _ pacing: Channel.Pacing) {
    let goesOn = entry.change { effects in
      if isFinished { return false }
      // A handler that is behind is not told that time passes.
      if outbox.isEmpty, let delivery = progress.intervalPassed(strict: pacing.isStrict) {
        deliver(delivery, &effects)
      }
      return true
    }
    if goesOn { set(timer, after: pacing.interval) }
  }
}

extension IOOperation: TimerOwner {
  func timerIsDue(_ timer: LoopTimer) {
    let (isInterval, isFollow) = entry.lock.withLock { (timer === intervalTimer, timer === followTimer) }
    if isInterval, let pacing {
      intervalHasPassed(timer, pacing)
    } else if isFollow {
      entry.change { followsTooLong(&$0) }
    } else {
      wake()
    }
  }
}

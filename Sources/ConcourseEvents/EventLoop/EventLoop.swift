internal import CConcourse

/// Waits for descriptors and timers in the kernel, and delivers their events.
///
/// An idle worker waits here instead of on its own event (`pollAsWorker`), so what an event makes runnable runs on the
/// thread that the kernel woke. The loop's own thread waits here too, for the times when no worker does. The kernel wakes
/// the thread that came last, so the loop's thread comes only while no worker waits, and sleeps on when one comes. While
/// workers are active it naps before it waits again: under load, events wait for a worker that will be here in
/// microseconds.
final class EventLoop: EventDriver {
  private let lock = Lock(.eventLoop)
  /// The kernel's event queue, once made; never released. Written under `lock`.
  private let pollerReference = Atomic<UnsafePointer<Poller>?>(nil)
  /// Whether a thread is making the loop's thread, or has made it.
  private let started = Atomic<Bool>(false)
  /// Whether the loop's thread has been made.
  private let made = Atomic<Bool>(false)
  private let refusalReported = Atomic<Bool>(false)
  /// Whether a worker has the seat: a value of `Seat`.
  let seat = Atomic<UInt32>(Seat.free)
  /// Whether the loop's thread has been nudged and does not wait in the kernel yet. A worker that comes lets it go first.
  // ORDERING: relaxed throughout; it decides only in which order the two wait.
  private let isComing = Atomic<Bool>(false)

  enum Seat {
    static let free: UInt32 = 0
    /// A worker waits here, or is on its way in or out.
    static let taken: UInt32 = 1
    /// The same, and the loop's thread sleeps until the worker leaves.
    static let takenAndAwaited: UInt32 = 2
  }

  /// Incremented to make the loop's thread look again while it sleeps outside the kernel's event queue.
  private let nudges = Atomic<UInt32>(0)

  /// How long the loop's thread leaves events to active workers. If all workers are busy for longer, events are late
  /// by at most this. A worker that has the seat has no such limit: its events wait until the kernel runs it.
  private static let nap: UInt64 = 1_000_000

  /// Makes the event queue and the loop's thread if they do not exist. Call before adding a descriptor or a timer.
  /// - Returns: the event queue, or nil if the system has no descriptors left.
  func begin() -> Poller? {
    let poller = pollerIfAny ?? makePoller()
    // ORDERING: relaxed; decided by the exchange in `start`.
    if !started.load(ordering: .relaxed) { start() }
    return poller
  }

  /// The event queue, if made. Nil in a forked child: the kernel's queue and timers are shared with the parent, which
  /// would lose the events that the child took, and find the timers that the child set.
  var pollerIfAny: Poller? {
    if Process.isForkedChild { return nil }
    // ORDERING: acquiring; pairs with the store in `makePoller`.
    guard let poller = pollerReference.load(ordering: .acquiring) else { return nil }
    PlainMemory.reads(beside: pollerReference)
    return poller.pointee
  }

  /// As `pollerIfAny`, for a thread that has set a timer: either it sees the event queue, or the thread that has made it
  /// sees the timer.
  var pollerInTotalOrder: Poller? {
    // ORDERING: sequentially consistent; closes the race of the store in `TimerTable.insert`, then this load, against the
    // store in `makePoller`, then the look at the tables.
    guard pollerReference.load(ordering: .sequentiallyConsistent) != nil else { return nil }
    return pollerIfAny
  }

  @inline(never)
  private func makePoller() -> Poller? {
    let (poller, isNew) = lock.withLock { () -> (Poller?, Bool) in
      if let poller = pollerIfAny { return (poller, false) }
      guard !Process.isForkedChild, let poller = Poller() else { return (nil, false) }
      let place = UnsafeMutablePointer<Poller>.allocate(capacity: 1)
      place.initialize(to: poller)
      PlainMemory.writes(beside: pollerReference)
      // ORDERING: sequentially consistent; publishes the new poller. See `pollerInTotalOrder`.
      pollerReference.store(UnsafePointer(place), ordering: .sequentiallyConsistent)
      nudge()
      return (poller, true)
    }
    // Timers may have been set while the system refused the event queue, and its thread.
    if isNew { Self.timers.reportDue(poller) }
    return poller
  }

  /// Makes the loop's thread look again if it sleeps outside the kernel's event queue.
  func nudge() {
    // ORDERING: releasing; pairs with the acquiring load in `run`.
    nudges.wrappingAdd(1, ordering: .releasing)
    Futex.wake(nudges, count: 1)
  }

  // MARK: The loop's own thread

  /// Makes the thread, or leaves that to the monitor.
  @inline(never)
  private func start() {
    let monitor = Runtime.shared.monitor
    if monitor.mustCreateThreads() || !startThread() { monitor.startEventLoop() }
  }

  /// - Returns: false if the system refuses the thread and no worker has the seat.
  func startThread() -> Bool {
    // ORDERING: releasing; pairs with the exchange below if the thread is refused.
    guard !started.exchange(true, ordering: .releasing) else { return true }
    let failure = Runtime.startThread(
      { argument in
        SystemThread.setName("concourse-event")
        Runtime.adoptHighestPriority()
        // SAFETY: the shared loop is never destroyed.
        Unmanaged<EventLoop>.fromOpaque(argument!).takeUnretainedValue().run()
      }, Unmanaged.passUnretained(self).toOpaque())
    // ORDERING: relaxed; see `hasThread`.
    made.store(failure == 0, ordering: .relaxed)
    guard failure != 0 else { return true }
    // ORDERING: acquiring; follows the exchange of a monitor that found `started` set, and so the store of the worker
    // that has left the seat and asked it.
    _ = started.exchange(false, ordering: .acquiring)
    // ORDERING: relaxed; as above. A worker that leaves the seat later asks again.
    let isTaken = seat.load(ordering: .relaxed) != Seat.free
    // A worker that sleeps on its own event must wait here instead.
    if !isTaken { Runtime.shared.wakeOneForEvents() }
    // ORDERING: relaxed, both; they only decide which caller prints.
    if !refusalReported.exchange(true, ordering: .relaxed) {
      let isReported = Trap.tryToWarn(
        "the system refused the thread for events (errno \(failure)); it is asked again")
      if !isReported { refusalReported.store(false, ordering: .relaxed) }
    }
    return isTaken
  }

  func askAgain() -> Bool {
    let timersAreSet = pollerIfAny.map(Self.timers.armAgain) ?? true
    return startThread() && timersAreSet
  }

  private func run() -> Never {
    var warned = false
    while true {
      // ORDERING: acquiring; pairs with the addition in `nudge`, and comes before the compare-exchange in `awaitSeat`.
      let seen = nudges.load(ordering: .acquiring)
      guard let poller = pollerIfAny ?? makePoller() else {
        if !warned { Trap.warn("no descriptors left for the event loop; timers go on with coarser sleeping") }
        warned = true
        Self.timers.reportDue(nil)
        _ = Futex.wait(nudges, expected: seen, deadline: Self.timers.nextLook())
        continue
      }
      Self.timers.reportDue(poller)
      guard awaitSeat(unlessNudgedSince: seen) else { continue }
      switch poll(poller, milliseconds: -1, asWorker: false, afterWait: { _ in }) {
      case .timersAreLeft: break
      case .interruptionIsPassedOn: takeNap()
      // Active workers wait here when they run out of work, and then collect events without a wake-up.
      case .nothing: if Runtime.shared.hasActiveWorkers { takeNap() }
      }
    }
  }

  /// Sleeps while a worker has the seat: a thread that came after it would be woken for its events, and would have to wake
  /// the worker.
  /// - Parameter seen: `nudges`, read before.
  /// - Returns: whether to wait in the kernel now.
  private func awaitSeat(unlessNudgedSince seen: UInt32) -> Bool {
    // ORDERING: relaxed; a worker that finds this value when it leaves nudges, and the futex compares with the older
    // `seen`. It must be a strong compare-exchange: one that failed without a reason would leave the seat merely taken.
    let found = seat.compareExchange(
      expected: Seat.taken, desired: Seat.takenAndAwaited, ordering: .relaxed
    ).original
    guard found != Seat.free else { return true }
    _ = Futex.wait(nudges, expected: seen)
    // A worker that is back already and waits for this thread no longer would make it the last again.
    // ORDERING: relaxed; see `isComing`.
    if isComing.exchange(false, ordering: .relaxed) { return true }
    takeNap()
    return false
  }

  private func takeNap() {
    // ORDERING: relaxed; nothing depends on being woken early.
    let seen = nudges.load(ordering: .relaxed)
    _ = Futex.wait(nudges, expected: seen, deadline: .uptime(Clock.uptime() &+ Self.nap))
  }

  // MARK: Workers

  /// Whether the loop has its own thread, so that a worker may retire.
  var hasThread: Bool {
    // ORDERING: relaxed; it never becomes false again, and a worker that stays needlessly asks again.
    made.load(ordering: .relaxed)
  }

  /// Takes the workers' seat.
  /// - Returns: false if there is nothing to wait for, or another worker has the seat.
  func takeSeat() -> Bool {
    guard pollerIfAny != nil else { return false }
    // ORDERING: acquiring; pairs with the releasing exchange in `leaveSeat`; the seat guards nothing but itself.
    return seat.compareExchange(expected: Seat.free, desired: Seat.taken, ordering: .acquiring).exchanged
  }

  /// Gives up the seat. The loop's thread waits in the kernel instead if it does not yet. Without that thread, another
  /// worker must take the seat, even if all are busy for long.
  func leaveSeat() {
    // ORDERING: releasing; pairs with `takeSeat`.
    if seat.exchange(Seat.free, ordering: .releasing) == Seat.takenAndAwaited {
      // ORDERING: relaxed; see `isComing`.
      isComing.store(true, ordering: .relaxed)
      nudge()
    }
    if !hasThread { Runtime.shared.monitor.startEventLoop() }
  }

  /// Waits for events on the calling worker, which has the seat, and delivers them.
  /// - Parameter beforeEvents: called after the wait, with the seat free and no event delivered yet.
  func pollAsWorker(milliseconds: Int32, beforeEvents: (WaitEnd) -> Void) {
    // ORDERING: relaxed; see `isComing`.
    if isComing.load(ordering: .relaxed) { letLoopGoFirst() }
    _ = poll(pollerIfAny!, milliseconds: milliseconds, asWorker: true) { events in
      leaveSeat()
      let isInterruption = events.allSatisfy(Poller.isInterruption)
      beforeEvents(events.isEmpty ? .timeOut : isInterruption ? .interruption : .events)
    }
  }

  @inline(never)
  private func letLoopGoFirst() {
    // ORDERING: relaxed, both; see `isComing`.
    let hasCome = Spin.wait(rounds: Spin.waitRounds) { !isComing.load(ordering: .relaxed) }
    if !hasCome { isComing.store(false, ordering: .relaxed) }
  }

  /// Makes the worker that waits here return.
  func interrupt() { pollerIfAny?.interrupt() }

  // MARK: Waiting and delivering

  /// What a thread leaves to others after it has delivered events.
  private enum Remainder {
    case nothing
    /// Due timers, for which the kernel's timer has been set. Workers may be busy with what earlier timers submitted.
    case timersAreLeft
    /// An interruption, which this thread would collect again if it waited at once.
    case interruptionIsPassedOn
  }

  private func poll(
    _ poller: Poller, milliseconds: Int32, asWorker: Bool,
    afterWait: (Slice<UnsafeMutableBufferPointer<concourse_event>>) -> Void
  ) -> Remainder {
    withUnsafeTemporaryAllocation(of: concourse_event.self, capacity: Poller.batch) { events in
      let count = poller.wait(events.baseAddress!, milliseconds: milliseconds)
      let events = events.prefix(count)
      afterWait(events)
      // First: until the worker has it, the pool counts a searcher that sleeps, and wakes no other.
      let passesOn = !asWorker && events.contains(where: Poller.isInterruption) && passOnInterruption(poller)
      var timersAreDue = false
      for event in events {
        switch Poller.decode(event) {
        case .timersAreDue: timersAreDue = true
        case .interrupted: break
        case .file(let index, let generation, let ready):
          Self.files.deliver(index: index, generation: generation, ready, from: poller)
        }
      }
      let areLeft = timersAreDue && Self.timers.reportDue(poller)
      return passesOn ? .interruptionIsPassedOn : areLeft ? .timersAreLeft : .nothing
    }
  }

  /// The loop's thread has collected an interruption meant for a worker, and sends it again. The thread does not wait
  /// now, so the worker gets it. If the worker has left, the next wait returns once for nothing.
  /// - Returns: false if no worker has the seat.
  private func passOnInterruption(_ poller: Poller) -> Bool {
    // ORDERING: acquiring; as in `takeSeat`.
    guard seat.load(ordering: .acquiring) != Seat.free else { return false }
    poller.interrupt()
    return true
  }
}

// SAFETY: atomics; the tables have their own locks.
extension EventLoop: @unchecked Sendable {}

internal import CConcourse

/// The road by which the outside world reaches a queue: descriptors and timers, and the threads that wait
/// for them in the kernel.
///
/// A worker with nothing to do waits here instead of sleeping elsewhere (`pollAsWorker`), so that what an
/// event makes runnable runs on the very thread that the kernel woke. The loop's own thread waits here
/// always, for the times when no worker does. The kernel wakes the one that came last, so the thread
/// stays asleep while a worker is there; and while workers are active it naps before it comes back, so that
/// under load events wait for the worker that will be here in microseconds.
final class EventLoop {
  static let shared = EventLoop()

  static let timers = TimerTable()
  static let files = WatchTable()

  private let lock = Lock()
  /// The kernel's event queue, once there is one. Never released. Written under `lock`.
  private let pollerReference = Atomic<UnsafePointer<Poller>?>(nil)
  /// Whether the loop's thread has been asked for.
  private let started = Atomic<Bool>(false)
  private let refusalReported = Atomic<Bool>(false)
  /// 1 while a worker waits here, or is on its way in or out.
  private let seat = Atomic<UInt32>(0)
  /// Grows when a thread that sleeps without the kernel's event queue must look again.
  private let nudges = Atomic<UInt32>(0)

  /// How long the thread leaves events to active workers: if all of them take longer than this over what they
  /// do, other events are late by no more.
  private static let nap: UInt64 = 1_000_000

  /// Sees to it that somebody waits for events: to be called before anything is put in.
  /// - Returns: the kernel's event queue, or nil when the system has no descriptors left.
  func begin() -> Poller? {
    let poller = pollerIfAny ?? makePoller()
    // ORDERING: relaxed; decided by the exchange in `start`.
    if !started.load(ordering: .relaxed) { start() }
    return poller
  }

  /// None in a forked child: the kernel's queue and timers are the parent's there, and what the child took
  /// out of them or set would be gone from the parent, or wrong.
  var pollerIfAny: Poller? {
    if Process.isForkedChild { return nil }
    // ORDERING: acquiring; pairs with the releasing store in `makePoller`.
    return pollerReference.load(ordering: .acquiring)?.pointee
  }

  @inline(never)
  private func makePoller() -> Poller? {
    lock.withLock {
      if let poller = pollerIfAny { return poller }
      guard !Process.isForkedChild, let poller = Poller() else { return nil }
      let place = UnsafeMutablePointer<Poller>.allocate(capacity: 1)
      place.initialize(to: poller)
      // ORDERING: releasing; publishes the new poller.
      pollerReference.store(UnsafePointer(place), ordering: .releasing)
      nudge()
      return poller
    }
  }

  /// Makes a thread that sleeps without the kernel's event queue look again.
  func nudge() {
    // ORDERING: releasing; pairs with the acquiring load in `run`.
    nudges.wrappingAdd(1, ordering: .releasing)
    Futex.wake(nudges, count: 1)
  }

  // MARK: The loop's own thread

  /// Makes the thread, unless the calling thread has been lowered: its child would be too, for ever.
  @inline(never)
  private func start() {
    // ORDERING: relaxed; only decides who makes the thread.
    guard !started.exchange(true, ordering: .relaxed) else { return }
    if CurrentThread.state.pointee.nice > 0 {
      Runtime.shared.monitor.startEventLoop()
    } else {
      startThread()
    }
  }

  func startThread() {
    let failure = Runtime.startThread(
      { argument in
        SystemThread.setName("concourse-event")
        Runtime.adoptHighestPriority()
        // SAFETY: the shared loop is never destroyed.
        Unmanaged<EventLoop>.fromOpaque(argument!).takeUnretainedValue().run()
      }, Unmanaged.passUnretained(self).toOpaque())
    guard failure != 0 else { return }
    // ORDERING: relaxed; as in `start`.
    started.store(false, ordering: .relaxed)
    // A worker that sleeps elsewhere must come and wait here instead.
    Runtime.shared.bands[0].wakeOne()
    // ORDERING: relaxed; only decides who prints.
    guard !refusalReported.exchange(true, ordering: .relaxed) else { return }
    Trap.warn(
      "the system refused the thread for events (errno \(failure)); the next source or timer tries again")
  }

  private func run() -> Never {
    var warned = false
    while true {
      // ORDERING: acquiring; pairs with the addition in `nudge`.
      let seen = nudges.load(ordering: .acquiring)
      guard let poller = pollerIfAny ?? makePoller() else {
        if !warned { Trap.warn("no descriptors left for the event loop; timers go on with coarser sleeping") }
        warned = true
        Self.timers.tellDue(nil)
        _ = Futex.wait(nudges, expected: seen, deadline: Self.timers.nextLook())
        continue
      }
      Self.timers.tellDue(poller)
      poll(poller, milliseconds: -1, asWorker: false) { _ in }
      // Active workers come here when they have done what they have: what they find then they need not
      // be woken for.
      if Runtime.shared.hasActiveWorkers { takeNap() }
    }
  }

  private func takeNap() {
    // ORDERING: relaxed; nothing depends on being woken early.
    let seen = nudges.load(ordering: .relaxed)
    _ = Futex.wait(nudges, expected: seen, deadline: .uptime(Clock.uptime() &+ Self.nap))
  }

  // MARK: Workers

  /// Whether the loop's own thread waits here, so that a worker may leave for good.
  var hasThread: Bool {
    // ORDERING: relaxed; a worker that stays in vain comes again.
    started.load(ordering: .relaxed)
  }

  /// Takes the workers' place here.
  /// - Returns: false when there is nothing to wait for, or another worker waits.
  func takeSeat() -> Bool {
    guard pollerIfAny != nil else { return false }
    // ORDERING: acquiring; pairs with the releasing store in `leaveSeat`; the seat guards nothing but itself.
    return seat.compareExchange(expected: 0, desired: 1, ordering: .acquiring).exchanged
  }

  /// Gives the place up.
  func leaveSeat() {
    // ORDERING: releasing; pairs with `takeSeat`.
    seat.store(0, ordering: .releasing)
  }

  /// Waits for events on the calling worker, which has the seat, and deals with them.
  /// - Parameter beforeEvents: called with whether there are any, when the wait is over and the seat is
  ///   free again, before they are dealt with.
  func pollAsWorker(milliseconds: Int32, beforeEvents: (Bool) -> Void) {
    poll(pollerIfAny!, milliseconds: milliseconds, asWorker: true) { count in
      leaveSeat()
      beforeEvents(count > 0)
    }
  }

  /// Calls away the worker that waits here.
  func interrupt() { pollerIfAny?.interrupt() }

  // MARK: Waiting and dealing

  private func poll(_ poller: Poller, milliseconds: Int32, asWorker: Bool, afterWait: (Int) -> Void) {
    withUnsafeTemporaryAllocation(of: concourse_event.self, capacity: Poller.batch) { events in
      let count = poller.wait(events.baseAddress!, milliseconds: milliseconds)
      afterWait(count)
      var timersAreDue = false
      var isInterrupted = false
      for event in events.prefix(count) {
        switch Poller.decode(event) {
        case .timersAreDue: timersAreDue = true
        case .interrupted: isInterrupted = true
        case .file(let index, let generation, let ready):
          Self.files.deliver(index: index, generation: generation, ready, from: poller)
        }
      }
      if timersAreDue { Self.timers.tellDue(poller) }
      // Last, since it may take a nap.
      if isInterrupted && !asWorker { passOnInterruption(poller) }
    }
  }

  /// The loop's thread has got what was meant for a worker. It is not waiting now, so that the worker will
  /// get it; a worker that has left already finds one interruption too many later.
  private func passOnInterruption(_ poller: Poller) {
    // ORDERING: acquiring; as in `takeSeat`.
    if seat.load(ordering: .acquiring) == 1 {
      poller.interrupt()
      // Not back at once, or this thread would get it again.
      takeNap()
    }
  }
}

// SAFETY: atomics; the tables have their own locks.
extension EventLoop: @unchecked Sendable {}

internal import CConcourse
internal import Glibc

/// The kernel's event queue, and the loop's own three descriptors in it: a timer for each clock, and an eventfd that
/// interrupts a waiting thread.
///
/// Tokens, never pointers, pass through the kernel, so a stale event is recognised and dropped. Any thread may call any
/// method. A poller is never closed.
struct Poller {
  private let epoll: Int32
  private let uptimeTimer: Int32
  private let wallTimer: Int32
  private let interrupter: Int32

  enum Event {
    case timersAreDue
    case interrupted
    case file(index: Int, generation: UInt32, Readiness)
  }

  /// The loop's own descriptors; files follow.
  private enum Index {
    static let uptime: UInt64 = 0
    static let wall: UInt64 = 1
    static let interrupter: UInt64 = 2
  }

  /// The first index for files.
  static let firstFile = 3

  /// Events taken from the kernel at once.
  static let batch = 64

  /// Nil if the system has no descriptors left.
  init?() {
    epoll = Int32(System.createPoller())
    uptimeTimer = Int32(System.createTimer(isWall: false))
    wallTimer = Int32(System.createTimer(isWall: true))
    interrupter = Int32(System.createEvent())
    let own = [uptimeTimer, wallTimer, interrupter]
    var ready = epoll >= 0 && own.allSatisfy { $0 >= 0 }
    for (index, descriptor) in own.enumerated() where ready {
      // Edge-triggered: no thread has to read these descriptors.
      ready =
        control(.add, descriptor, [.readable, .edge], index: index, generation: 0) == 0
    }
    if !ready {
      for descriptor in own + [epoll] where descriptor >= 0 { _ = close(descriptor) }
      return nil
    }
  }

  enum Change: Int32 {
    case add = 1
    case remove = 2
    case modify = 3
  }

  /// Changes what is watched.
  /// - Returns: 0, or the errno negated.
  func control(
    _ change: Change, _ descriptor: Int32, _ interest: Readiness, index: Int, generation: UInt32
  ) -> Int {
    System.control(
      epoll, change.rawValue, descriptor, interest.rawValue, token: UInt64(generation) << 32 | UInt64(index))
  }

  /// Waits for events.
  /// - Parameter milliseconds: the limit; none if negative.
  /// - Returns: how many events were stored.
  func wait(_ events: UnsafeMutablePointer<concourse_event>, milliseconds: Int32) -> Int {
    while true {
      let count =
        SystemScript.isActive
        ? SystemScript.run(.epollWait) { waitOnce(events, milliseconds) } : waitOnce(events, milliseconds)
      if count >= 0 { return count }
      switch Int32(-count) {
      // The kernel interrupts the thread that submitted a request to a ring, in order to complete it. A worker must not
      // take that for the end of its idle time: if it exited, the kernel would cancel the request.
      case EINTR: continue
      case EAGAIN, ENOMEM: return 0
      case EBADF, EINVAL:
        Trap.clientBug(
          411,
          "the program closed descriptor \(epoll), on which the runtime waits for events (epoll_wait failed with errno "
            + "\(-count)); a program may close only descriptors that it has opened")
      case let failure: Trap.runtimeBug("epoll_wait failed with errno \(failure)")
      }
    }
  }

  private func waitOnce(_ events: UnsafeMutablePointer<concourse_event>, _ milliseconds: Int32) -> Int {
    Int(concourse_epoll_wait(epoll, events, Int32(Self.batch), milliseconds))
  }

  static func isInterruption(_ event: concourse_event) -> Bool { event.token == Index.interrupter }

  /// Decodes an event from the kernel.
  static func decode(_ event: concourse_event) -> Event {
    switch event.token {
    case Index.uptime, Index.wall: .timersAreDue
    case Index.interrupter: .interrupted
    default:
      .file(
        index: Int(UInt32(truncatingIfNeeded: event.token)),
        generation: UInt32(event.token >> 32), Readiness(rawValue: event.ready))
    }
  }

  /// Makes the waiting thread return, or else the next one that waits.
  func interrupt() { concourse_eventfd_signal(interrupter) }

  /// Sets the kernel's timer of a clock, 0 for never.
  /// - Returns: whether the kernel agreed.
  func arm(isWall: Bool, at nanoseconds: UInt64) -> Bool {
    let timer = isWall ? wallTimer : uptimeTimer
    var failure = 0
    // The earliest timer may be the only one: no later change would set it again. ECANCELED: the wall clock was set.
    for _ in 0..<2 {
      failure = System.set(timer: timer, isWall: isWall, to: nanoseconds)
      if failure == 0 { return true }
    }
    switch Int32(-failure) {
    case EBADF, EINVAL:
      Trap.clientBug(
        412,
        "the program closed descriptor \(timer), the runtime's timer (timerfd_settime failed with errno \(-failure)); "
          + "a program may close only descriptors that it has opened")
    default: return false
    }
  }
}

/// Events that a watch asks for or the kernel reports. The bits are the kernel's.
struct Readiness: OptionSet {
  let rawValue: UInt32
  static let readable = Readiness(rawValue: UInt32(CONCOURSE_READABLE))
  static let writable = Readiness(rawValue: UInt32(CONCOURSE_WRITABLE))
  static let priority = Readiness(rawValue: UInt32(CONCOURSE_PRIORITY))
  static let error = Readiness(rawValue: UInt32(CONCOURSE_ERROR))
  static let hangUp = Readiness(rawValue: UInt32(CONCOURSE_HANG_UP))
  /// Report once, then disarm.
  static let oneShot = Readiness(rawValue: UInt32(bitPattern: Int32(CONCOURSE_ONE_SHOT)))
  /// Report changes only.
  static let edge = Readiness(rawValue: 1 << 31)
}

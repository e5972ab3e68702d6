internal import CConcourse

/// The road by which the outside world reaches a queue: one thread that waits in the kernel for the
/// earliest timer of either clock, and submits what is due.
///
/// The thread is made with the first timer. Without descriptors it falls back to sleeping on a futex,
/// looking at the wall clock once a second, so that timers still fire.
final class EventLoop {
  static let shared = EventLoop()

  private enum Token {
    static let uptime: UInt64 = 0
    static let wall: UInt64 = 1
  }

  private let lock = Lock()
  private var uptime = TimerClock(isWall: false)
  private var wall = TimerClock(isWall: true)
  private var started = false
  /// Grows with every change of the earliest timer: what the fallback sleeps on.
  private let changed = Atomic<UInt32>(0)

  /// Submits `node` to `queue` when `deadline` has come; at once if it has passed, never if it is never.
  func schedule(_ node: NodePointer, on queue: DispatchQueue, at deadline: Deadline) {
    Runtime.requireThreads("a delayed submission")
    switch deadline {
    case .immediate:
      queue.submit(node)
    case .uptime(let time):
      insert { loop in
        loop.uptime.insert(time, node, queue)
      } arm: {
        $0.uptime.arm()
      }
    case .wall(let time):
      insert { loop in
        loop.wall.insert(time, node, queue)
      } arm: {
        $0.wall.arm()
      }
    case .never:
      // It will never run; what it captured need not wait for the end of the process.
      _ = node.takeWork()
      NodeMagazine.recycle(node)
    }
  }

  private func insert(_ insertion: (EventLoop) -> Bool, arm: (EventLoop) -> Void) {
    lock.lock()
    let isEarliest = insertion(self)
    if isEarliest { arm(self) }
    let mustStart = !started
    started = true
    lock.unlock()
    if isEarliest {
      // ORDERING: releasing; pairs with the fallback's acquiring load.
      changed.wrappingAdd(1, ordering: .releasing)
      Futex.wake(changed, count: 1)
    }
    if mustStart { start() }
  }

  /// Makes the thread, unless the calling thread has been lowered: its child would be too, for ever.
  private func start() {
    if CurrentThread.state.pointee.nice > 0 {
      Runtime.shared.monitor.startEventLoop()
    } else {
      startThread()
    }
  }

  func startThread() {
    let failure = SystemThread.spawn(
      { argument in
        SystemThread.setName("concourse-event")
        // SAFETY: the shared loop is never destroyed.
        Unmanaged<EventLoop>.fromOpaque(argument!).takeUnretainedValue().run()
      }, Unmanaged.passUnretained(self).toOpaque())
    guard failure != 0 else { return }
    lock.withLock { started = false }
    Trap.warn(
      "the system refused the thread for timers (errno \(failure)); the next delayed submission tries again")
  }

  // MARK: The loop's thread

  private func run() -> Never {
    if let poller = Poller(), watchClocks(with: poller) {
      while true {
        fireDue()
        poller.wait { token in
          lock.withLock {
            if token == Token.uptime { uptime.acknowledge() } else { wall.acknowledge() }
          }
        }
      }
    }
    Trap.warn("no descriptors left for the event loop; timers go on with coarser sleeping")
    while true {
      // ORDERING: acquiring; pairs with the addition in `insert`.
      let seen = changed.load(ordering: .acquiring)
      fireDue()
      _ = Futex.wait(changed, expected: seen, deadline: nextLook())
    }
  }

  private func watchClocks(with poller: borrowing Poller) -> Bool {
    lock.lock()
    defer { lock.unlock() }
    return uptime.join(poller, token: Token.uptime) && wall.join(poller, token: Token.wall)
  }

  /// Submits what is due, in the order of the deadlines, and arms the clocks for what is next.
  private func fireDue() {
    var due: [TimerHeap.Entry] = []
    lock.withLock {
      uptime.collect(into: &due)
      wall.collect(into: &due)
      uptime.arm()
      wall.arm()
    }
    for entry in due {
      entry.queue._withUnsafeGuaranteedRef { $0.submit(entry.node) }
      entry.queue.release()
    }
  }

  private func nextLook() -> Deadline {
    lock.withLock {
      guard uptime.first != nil || wall.first != nil else { return .never }
      let second = Clock.uptime() &+ 1_000_000_000
      // The wall clock may be set at any time: look at it every second, or sooner if it says so.
      let untilWall = wall.first.map { first -> UInt64 in
        let now = Clock.wall()
        return first <= now ? 0 : min(first - now, 1_000_000_000)
      }
      return .uptime(min(uptime.first ?? .max, untilWall.map { Clock.uptime() &+ $0 } ?? second))
    }
  }
}

// SAFETY: `clocks` and `started` are GUARDED BY `lock`; `changed` is atomic.
extension EventLoop: @unchecked Sendable {}

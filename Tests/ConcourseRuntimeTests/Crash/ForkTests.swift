import CConcourse
import Glibc
import Synchronization
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Crash {
  /// A forked child has one thread and none of the pool's: it may run what needs no other thread.
  @Suite("After fork", .enabled(if: !Sanitizer.isThread))
  struct ForkTests {
    @Test("S148 sync on idle queues works, and so do groups and semaphores")
    func idleQueues() async {
      await #expect(processExitsWith: .success) {
        let serial = DispatchQueue(label: "serial")
        let concurrent = DispatchQueue(label: "concurrent", attributes: .concurrent)
        let above = DispatchQueue(label: "above", target: serial)
        warmUp(serial)
        let status = inForkedChild {
          let sum =
            serial.sync { 1 } + concurrent.sync { 2 } + concurrent.sync(flags: .barrier) { 4 }
            + above.sync { 8 } + DispatchQueue.global().sync { 16 } + serial.asyncAndWait { 32 }
          let group = DispatchGroup()
          group.enter()
          group.leave()
          let semaphore = DispatchSemaphore(value: 1)
          let works = group.wait(timeout: .now()) == .success && semaphore.wait(timeout: .now()) == .success
          semaphore.signal()
          _exit(works ? Int32(sum) : 1)
        }
        #expect(status == 63 << 8)
      }
    }

    @Test("S148, trap 20: async in the child says that there are no threads")
    func async() async {
      let end = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        let queue = DispatchQueue(label: "queue")
        warmUp(queue)
        let status = inForkedChild {
          queue.async {}
          _exit(1)
        }
        #expect(status & 0x7F == SIGILL)
      }
      end.says("in a forked child process, which has no worker threads")
    }

    @Test("S148 async in a child that was forked while another thread held the lock of the node depot")
    func asyncWhileStockIsLocked() async {
      let end = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        let queue = DispatchQueue(label: "queue")
        warmUp(queue)
        let status = NodeMagazine.depot.lock.withLock {
          inForkedChild {
            // More nodes than the thread keeps, made and freed.
            let nodes = (0..<300).map { _ in NodeMagazine.make(.closure {}, level: .default) }
            for node in nodes {
              _ = node.takeWork()
              NodeMagazine.recycle(node)
            }
            queue.async {}
            _exit(1)
          }
        }
        #expect(status & 0x7F == SIGILL)
      }
      end.says("submitting work in a forked child process, which has no worker threads")
    }

    @Test("two threads of the child meet at a lock of Swift's runtime")
    func lazyValueOfTwoThreads() async {
      await #expect(processExitsWith: .success) {
        // The runtime keeps the thread's id from now on.
        #expect(Lazily.process == getpid())
        let status = inForkedChild {
          _exit(Lazily.both && pthread_join(Lazily.thread, nil) == 0 ? 0 : 1)
        }
        #expect(status == 0)
      }
    }

    @Test("a lazy value that forks is ready in both processes")
    func lazyValueThatForks() async {
      await #expect(processExitsWith: .success) {
        #expect(Lazily.process == getpid())
        let status = inForkedChild {
          // The child of this child goes on inside the value.
          if Lazily.child == 0 { _exit(Lazily.child == 0 ? 3 : 1) }
          var status: Int32 = -1
          while waitpid(Lazily.child, &status, 0) < 0 && errno == EINTR {}
          _exit(status == 3 << 8 ? 4 : 1)
        }
        #expect(status == 4 << 8)
      }
    }

    @Test("C404 a thread that has forked is told that it ends inside an item")
    func exitInItemAfterFork() async {
      let end = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        let queue = DispatchQueue(label: "queue")
        startThread {
          let child = forkProcess()
          if child == 0 { _exit(0) }
          while waitpid(child, nil, 0) < 0 && errno == EINTR {}
          queue.sync { pthread_exit(nil) }
        }
        while true { _ = pause() }
      }
      end.says("[C404]")
    }

    @Test("S148 a lock that another thread of the parent held at the fork")
    func lockHeldAtFork() async {
      let end = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        warmUp(DispatchQueue(label: "queue"))
        let lock = Lock(.test)
        let status = lock.withLock {
          inForkedChild {
            lock.lock()
            _exit(1)
          }
        }
        #expect(status & 0x7F == SIGILL)
      }
      end.says(
        "a lock of the runtime is needed in a forked child process, and a thread of the parent held it at the fork"
      )
    }

    @Test("S148 a child that is stopped while one of its threads waits for a lock that another holds goes on")
    func stoppedWhileLockIsHeld() async {
      await #expect(processExitsWith: .success) {
        warmUp(DispatchQueue(label: "queue"))
        let status = inForkedChild {
          var holder = pthread_t()
          guard pthread_create(&holder, nil, { _ in Contended.hold() }, nil) == 0 else { _exit(1) }
          // ORDERING: acquiring; pairs with the store in `hold`.
          while !Contended.isHeld.load(ordering: .acquiring) { Processor.yield() }
          Contended.lock.lock()
          _exit(3)
        }
        #expect(status == 3 << 8)
      }
    }

    @Test("S148 async in the child of a process whose workers are all busy")
    func asyncWhileBusy() async {
      let end = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        let started = DispatchSemaphore(value: 0)
        let goOn = Atomic<Bool>(false)
        let group = DispatchGroup()
        for _ in 0..<PoolSize.width {
          DispatchQueue.global().async(group: group) {
            started.signal()
            // ORDERING: relaxed; only ends the loop.
            while !goOn.load(ordering: .relaxed) { Processor.pause() }
          }
        }
        for _ in 0..<PoolSize.width { #expect(comes(started)) }
        let status = inForkedChild {
          DispatchQueue.global().async {}
          _exit(1)
        }
        // ORDERING: relaxed; as above.
        goOn.store(true, ordering: .relaxed)
        #expect(empties(group))
        #expect(status & 0x7F == SIGILL)
      }
      end.says("in a forked child process, which has no worker threads")
    }

    @Test(
      "S148 asyncAfter in the child says that there are no threads, with and without timers in the parent")
    func asyncAfter() async {
      let fresh = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        let queue = DispatchQueue(label: "queue")
        warmUp(queue)
        #expect(delay(queue) & 0x7F == SIGILL)
      }
      fresh.says("in a forked child process, which has no worker threads")
      let used = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        let queue = DispatchQueue(label: "queue")
        let fired = DispatchSemaphore(value: 0)
        queue.asyncAfter(deadline: .now() + 0.001) { fired.signal() }
        #expect(comes(fired))
        #expect(delay(queue) & 0x7F == SIGILL)
      }
      used.says("in a forked child process, which has no worker threads")
    }

    @Test("trap 20: a child's changes to its copies of sources and timers do not affect the parent")
    func sources() async {
      await #expect(processExitsWith: .success) {
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        let (reader, writer) = (ends[0], ends[1])
        let (read, fired) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let queue = DispatchQueue(label: "events")
        let source = DispatchSource.makeReadSource(fileDescriptor: reader, queue: queue)
        source.setEventHandler {
          var bytes = [UInt8](repeating: 0, count: 16)
          #expect(Glibc.read(reader, &bytes, 16) == 1)
          read.signal()
        }
        source.activate()
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.setEventHandler { fired.signal() }
        timer.schedule(deadline: .now() + .milliseconds(500))
        timer.activate()
        #expect(write(writer, "x", 1) == 1)
        #expect(comes(read))
        // The handler has returned, and the descriptor is watched again.
        for _ in 0..<2 { queue.sync {} }
        // Otherwise the loop's thread could hold it at the fork, and the child would trap.
        let tables = EventLoop.timers.tables.map { $0.takeUnretainedValue() }
        for table in tables { while !table.lock.tryLock() { Processor.yield() } }
        let status = inForkedChild {
          for table in tables { table.lock.unlock() }
          // As when they are released: no cancel handler is called.
          source.core.backend.remove()
          for delay in [3600, 0, 3600] { timer.schedule(deadline: .now() + .seconds(delay)) }
          _exit(3)
        }
        for table in tables { table.lock.unlock() }
        #expect(status == 3 << 8)
        #expect(write(writer, "x", 1) == 1)
        #expect(comes(read))
        #expect(comes(fired))
        source.cancel()
        timer.cancel()
      }
    }

    @Test("S148 sync on a busy queue in the child says that there are no threads")
    func busyQueue() async {
      let end = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        let queue = DispatchQueue(label: "queue")
        let started = DispatchSemaphore(value: 0)
        let goOn = DispatchSemaphore(value: 0)
        queue.async {
          started.signal()
          _ = comes(goOn)
        }
        #expect(comes(started))
        let status = inForkedChild {
          queue.sync {}
          _exit(1)
        }
        goOn.signal()
        queue.sync {}
        #expect(status & 0x7F == SIGILL)
      }
      end.says("sync on queue \"queue\", which is not idle, in a forked child process")
    }
  }
}

/// A lock whose holder stops the process while another thread waits for it.
private enum Contended {
  static let lock = Lock(.test)
  static let isHeld = Atomic<Bool>(false)

  static func hold() -> UnsafeMutableRawPointer? {
    lock.lock()
    // ORDERING: releasing; pairs with the load in the test.
    isHeld.store(true, ordering: .releasing)
    while SystemThread.isAsleep(UInt32(getpid())) != true { Processor.yield() }
    let own = getpid()
    let helper = forkProcess()
    if helper == 0 {
      // Longer than the waiting thread's limit.
      usleep(1_200_000)
      kill(own, SIGCONT)
      _exit(0)
    }
    kill(own, SIGSTOP)
    // The waiting thread continues first, and finds its deadline past.
    usleep(50_000)
    lock.unlock()
    return nil
  }
}

/// Values that the runtime makes under a lock.
private enum Lazily {
  static let process = getpid()
  static let child = forkProcess()
  static let waiter = Atomic<UInt32>(0)
  nonisolated(unsafe) static var thread = pthread_t()

  /// Ready when another thread sleeps until it is.
  static let both: Bool = {
    let failure = pthread_create(
      &thread, nil,
      { _ in
        // ORDERING: relaxed; the other thread uses nothing but the number.
        waiter.store(concourse_gettid(), ordering: .relaxed)
        return both ? nil : UnsafeMutableRawPointer(bitPattern: 1)
      }, nil)
    var id: UInt32 = 0
    // ORDERING: relaxed; as above.
    repeat { id = waiter.load(ordering: .relaxed) } while failure == 0 && SystemThread.isAsleep(id) != true
    return failure == 0
  }()
}

/// Makes the pool and lets it run something on `queue`.
func warmUp(_ queue: DispatchQueue) {
  let done = DispatchSemaphore(value: 0)
  queue.async { done.signal() }
  #expect(comes(done))
  queue.sync {}
}

/// How a forked child that requests a delayed submission ends.
private func delay(_ queue: DispatchQueue) -> Int32 {
  inForkedChild {
    queue.asyncAfter(deadline: .now() + 0.001) {}
    _exit(1)
  }
}

/// Forks, runs `body` in the child, which must end it, and returns how the child ended.
///
/// If another thread holds a lock of the Swift runtime during the fork, the lock stays held in the child, which is not
/// an error: the fork is repeated. A child that hangs each time is killed, and the test fails.
func inForkedChild(_ body: () -> Void) -> Int32 {
  var status: Int32 = -1
  for _ in 0..<5 where status == -1 || status & 0x7F == SIGKILL { status = endOfForkedChild(body) }
  return status
}

/// Swift hides `fork` because it is unsafe in general.
func forkProcess() -> pid_t {
  typealias Fork = @convention(c) () -> pid_t
  // SAFETY: this is the type of the C library's `fork`.
  return unsafeBitCast(dlsym(nil, "fork")!, to: Fork.self)()
}

private func endOfForkedChild(_ body: () -> Void) -> Int32 {
  let child = ForkedChild()
  if child.process == 0 {
    body()
    _exit(2)
  }
  return child.status()
}

/// A child that is forked here, for its parent.
struct ForkedChild {
  /// 0 in the child.
  let process: pid_t
  /// Ends when the child exits, however it exits.
  private let exit: Int32

  init() {
    var ends: [Int32] = [0, 0]
    precondition(pipe(&ends) == 0)
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    exit = ends[0]
    process = forkProcess()
    if process != 0 { close(ends[1]) }
  }

  /// Waits for the child's end, and kills it if it hangs.
  func status() -> Int32 {
    defer { close(exit) }
    var question = pollfd(fd: exit, events: Int16(POLLIN), revents: 0)
    var found: Int32
    repeat { found = poll(&question, 1, 60_000) } while found < 0 && errno == EINTR
    if found == 0 { kill(process, SIGKILL) }
    var status: Int32 = -1
    while waitpid(process, &status, 0) < 0 && errno == EINTR {}
    return status
  }
}

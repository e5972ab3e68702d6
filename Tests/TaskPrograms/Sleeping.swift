import Concourse
import ConcourseRuntime
import Glibc
import Synchronization

/// Programs whose task sleeps in a call that the engine does not see, until the call's place has been named.
enum Sleeping {
  static let all: [Program] = [
    .sleeping("usleep") {
      let isOver = Flag()
      return .init(block: { while !isOver.isSet { usleep(40_000) } }, release: { isOver.set() })
    },
    .sleeping("sleep") {
      let isOver = Flag()
      return .init(block: { while !isOver.isSet { sleep(1) } }, release: { isOver.set() })
    },
    .sleeping("nanosleep") {
      let isOver = Flag()
      return .init(
        block: {
          var time = timespec(tv_sec: 0, tv_nsec: 40_000_000)
          while !isOver.isSet { nanosleep(&time, nil) }
        }, release: { isOver.set() })
    },
    .sleeping("read") {
      let pipe = Pipe()
      return .init(block: { pipe.readByte() }, release: { pipe.writeByte() })
    },
    .sleeping("poll") {
      let pipe = Pipe()
      return .init(
        block: {
          var wait = pollfd(fd: pipe.reader, events: Int16(POLLIN), revents: 0)
          while poll(&wait, 1, -1) != 1 {}
        }, release: { pipe.writeByte() })
    },
    .sleeping("accept") {
      let server = LocalServer()
      return .init(block: { server.acceptOne() }, release: { server.connectOnce() })
    },
    .sleeping("system-mutex") {
      let lock = SystemLock()
      let isOver = DispatchSemaphore(value: 0)
      let isHeld = DispatchSemaphore(value: 0)
      startThread {
        lock.lock()
        isHeld.signal()
        isOver.wait()
        lock.unlock()
      }
      isHeld.wait()
      return .init(
        block: {
          lock.lock()
          lock.unlock()
        }, release: { isOver.signal() })
    },
    // The holder computes.
    .sleeping("swift-mutex") {
      let (lock, isOver, isHeld) = (Locked(), Flag(), DispatchSemaphore(value: 0))
      startThread {
        lock.value.withLock { _ in
          isHeld.signal()
          while !isOver.isSet {}
        }
      }
      isHeld.wait()
      return .init(block: { lock.value.withLock { $0 += 1 } }, release: { isOver.set() })
    },
    // The holder waits for another lock, whose holder reads.
    .sleeping("chain-of-locks") {
      let (outer, inner, pipe) = (SystemLock(), SystemLock(), Pipe())
      let isHeld = DispatchSemaphore(value: 0)
      startThread {
        inner.lock()
        isHeld.signal()
        pipe.readByte()
        inner.unlock()
      }
      isHeld.wait()
      startThread {
        outer.lock()
        isHeld.signal()
        inner.lock()
        inner.unlock()
        outer.unlock()
      }
      isHeld.wait()
      return .init(
        block: {
          pthread_mutex_lock(outer.mutex)
          outer.unlock()
        }, release: { pipe.writeByte() })
    },
    // The main thread has it, and waits for items of the main queue.
    .sleeping("lock-of-main-thread") {
      let (lock, isHeld) = (SystemLock(), DispatchSemaphore(value: 0))
      DispatchQueue.main.async {
        lock.lock()
        isHeld.signal()
      }
      isHeld.wait()
      return .init(
        block: {
          pthread_mutex_lock(lock.mutex)
          lock.unlock()
        }, release: { DispatchQueue.main.async { lock.unlock() } })
    },
    // The holder waits for its turn in a queue.
    .sleeping("lock-of-waiting-thread") {
      let (lock, queue) = (SystemLock(), DispatchQueue(label: "suspended"))
      let isHeld = DispatchSemaphore(value: 0)
      queue.suspend()
      startThread {
        lock.lock()
        isHeld.signal()
        queue.sync {}
        lock.unlock()
      }
      isHeld.wait()
      return .init(
        block: {
          pthread_mutex_lock(lock.mutex)
          lock.unlock()
        }, release: { queue.resume() })
    },
    .sleeping("condition") {
      let lock = SystemLock()
      let isOver = Flag()
      return .init(
        block: { lock.wait { isOver.isSet } },
        release: {
          isOver.set()
          lock.notify()
        })
    },
    .sleeping("in-actor") {
      let (reader, pipe) = (Reader(), Pipe())
      return .init(block: {}, body: { await reader.read(pipe) }, release: { pipe.writeByte() })
    },
  ]
}

extension Program {
  struct Sleep: Sendable {
    /// Sleeps until it is released.
    let block: @Sendable () -> Void
    /// In place of it.
    var body: (@Sendable () async -> Void)?
    let release: @Sendable () -> Void
  }

  static func sleeping(_ name: String, _ make: @escaping @Sendable () -> Sleep) -> Program {
    Program(name: name) {
      let namedBefore = TaskWaits.namedPlaces
      let sleep = make()
      let ended = DispatchSemaphore(value: 0)
      Task.detached(name: "sleeper") {
        if let body = sleep.body { await body() } else { sleep.block() }
        ended.signal()
      }
      // If the name does not come, the program goes on, and the test finds that no place was named.
      let end = DispatchTime.now() + .seconds(40)
      while getenv("CONCOURSE_STRICT") != nil && TaskWaits.namedPlaces == namedBefore,
        DispatchTime.now() < end
      {
        usleep(200)
      }
      sleep.release()
      ended.wait()
      let count = TaskWaits.namedPlaces - namedBefore
      say("\(name) ended\(getenv("CONCOURSE_STRICT") != nil ? ", \(count) named" : "")")
    }
  }
}

private struct Pipe: Sendable {
  let reader: Int32
  private let writer: Int32

  init() {
    var ends: (Int32, Int32) = (0, 0)
    let result = withUnsafeMutableBytes(of: &ends) {
      pipe($0.assumingMemoryBound(to: Int32.self).baseAddress!)
    }
    precondition(result == 0)
    (reader, writer) = ends
  }

  func readByte() {
    var byte: UInt8 = 0
    while read(reader, &byte, 1) != 1 {}
  }

  func writeByte() {
    var byte: UInt8 = 1
    while write(writer, &byte, 1) != 1 {}
  }
}

/// A socket that listens, under a name that the system chooses.
private struct LocalServer: Sendable {
  private let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)

  init() {
    var address = sockaddr_un()
    address.sun_family = UInt16(AF_UNIX)
    let isReady = withAddress(&address) {
      bind(listener, $0, socklen_t(MemoryLayout<sa_family_t>.size)) == 0 && listen(listener, 1) == 0
    }
    precondition(isReady)
  }

  private func withAddress<Result>(
    _ address: inout sockaddr_un, _ body: (UnsafeMutablePointer<sockaddr>) -> Result
  )
    -> Result
  {
    withUnsafeMutablePointer(to: &address) { $0.withMemoryRebound(to: sockaddr.self, capacity: 1, body) }
  }

  func acceptOne() {
    while accept(listener, nil, nil) < 0 {}
  }

  func connectOnce() {
    var address = sockaddr_un()
    let client = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var size = socklen_t(MemoryLayout<sockaddr_un>.size)
    let isConnected = withAddress(&address) {
      getsockname(listener, $0, &size) == 0 && connect(client, $0, size) == 0
    }
    precondition(isConnected)
  }
}

/// A mutex and a condition of the C library.
// SAFETY: both are made for use by any thread.
private final class SystemLock: @unchecked Sendable {
  let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

  init() {
    pthread_mutex_init(mutex, nil)
    pthread_cond_init(condition, nil)
  }

  deinit {
    pthread_mutex_destroy(mutex)
    pthread_cond_destroy(condition)
    mutex.deallocate()
    condition.deallocate()
  }

  func lock() { pthread_mutex_lock(mutex) }
  func unlock() { pthread_mutex_unlock(mutex) }

  func wait(until isOver: () -> Bool) {
    lock()
    while !isOver() { pthread_cond_wait(condition, mutex) }
    unlock()
  }

  func notify() {
    lock()
    pthread_cond_broadcast(condition)
    unlock()
  }
}

private final class Locked: Sendable {
  let value = Mutex(0)
}

private final class Flag: Sendable {
  private let value = Atomic(false)
  // ORDERING: acquiring and releasing; what was done before the flag is seen.
  var isSet: Bool { value.load(ordering: .acquiring) }
  // ORDERING: as above.
  func set() { value.store(true, ordering: .releasing) }
}

private actor Reader {
  func read(_ pipe: Pipe) {
    var byte: UInt8 = 0
    while Glibc.read(pipe.reader, &byte, 1) != 1 {}
  }
}

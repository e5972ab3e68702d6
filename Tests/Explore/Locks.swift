import Dispatch
import Glibc

/// Bugs in the use of the system's locks and conditions.
extension ExplorePrograms {
  static let locks: [(name: String, body: Body)] = [
    ("philosophers", .plain(philosophers)),
    ("retry-starves", .plain(retryStarves)),
    ("condition-if", .plain(conditionIf)),
    ("signal-lost", .plain(signalLost)),
    ("read-upgrade", .plain(readUpgrade)),
    ("once-and-lock", .plain(onceAndLock)),
  ]

  /// Three of them take first the left fork, then the right one.
  @Sendable private static func philosophers(mended: Bool) {
    let forks = (0..<3).map { _ in DispatchSemaphore(value: 1) }
    DispatchQueue.concurrentPerform(iterations: 3) { seat in
      var hands = [seat, (seat + 1) % 3]
      if mended { hands.sort() }
      for hand in hands { forks[hand].wait() }
      for hand in hands { forks[hand].signal() }
    }
  }

  /// Each keeps its own lock while it tries the other's, and gives up after three attempts.
  @Sendable private static func retryStarves(mended: Bool) {
    let left = Lock()
    let right = Lock()
    @Sendable func transfer(_ own: Lock, _ other: Lock) {
      for _ in 1...3 {
        pthread_mutex_lock(own.handle)
        defer { pthread_mutex_unlock(own.handle) }
        if pthread_mutex_trylock(other.handle) == 0 {
          pthread_mutex_unlock(other.handle)
          return
        }
      }
      require(false, "gave up after three attempts")
    }
    threads({ transfer(left, right) }, { if mended { transfer(left, right) } else { transfer(right, left) } })
  }

  /// A consumer that does not look again after it was woken.
  @Sendable private static func conditionIf(mended: Bool) {
    let lock = Lock()
    let condition = Condition()
    let items = Cell<[Int]>([])
    let take = { @Sendable in
      lock.holding {
        if mended {
          while items.value.isEmpty { condition.wait(lock) }
        } else if items.value.isEmpty {
          condition.wait(lock)
        }
        items.update {
          require(!$0.isEmpty, "took from an empty list")
          $0.removeLast()
        }
      }
    }
    let put = { @Sendable in
      lock.holding {
        items.update { $0.append(1) }
        pthread_cond_broadcast(condition.handle)
      }
    }
    threads(
      take, take,
      {
        put()
        put()
      })
  }

  /// The flag is not changed under the lock, so the signal comes between the look and the wait.
  @Sendable private static func signalLost(mended: Bool) {
    let lock = Lock()
    let condition = Condition()
    let isReady = Cell(false)
    threads(
      { lock.holding { while !isReady.value { condition.wait(lock) } } },
      {
        if mended {
          lock.holding { isReady.value = true }
        } else {
          isReady.value = true
        }
        pthread_cond_signal(condition.handle)
      })
  }

  /// Between the read lock and the write lock, another has inserted the same key.
  @Sendable private static func readUpgrade(mended: Bool) {
    let lock = ReadersLock()
    let keys = Cell<[String]>([])
    let insert = { @Sendable in
      pthread_rwlock_rdlock(lock.handle)
      let isAbsent = !keys.value.contains("key")
      pthread_rwlock_unlock(lock.handle)
      guard isAbsent else { return }
      pthread_rwlock_wrlock(lock.handle)
      if !mended || !keys.value.contains("key") { keys.update { $0.append("key") } }
      pthread_rwlock_unlock(lock.handle)
    }
    threads(insert, insert)
    require(keys.value.count == 1, "inserted twice")
  }

  /// A constant whose initializer needs a lock, used under that lock.
  @Sendable private static func onceAndLock(mended: Bool) {
    threads(
      { _ = Registry.size },
      {
        if mended { _ = Registry.size }
        Registry.lock.holding { _ = Registry.size }
      })
  }

  private enum Registry {
    static let lock = Lock(recursive: true)
    static let size = lock.holding { CommandLine.arguments.count }
  }
}

private final class Condition: @unchecked Sendable {
  // SAFETY: the system's condition may be used by all threads; it lies at one address, and is never freed.
  let handle = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

  init() { pthread_cond_init(handle, nil) }

  func wait(_ lock: Lock) { pthread_cond_wait(handle, lock.handle) }
}

private final class ReadersLock: @unchecked Sendable {
  // SAFETY: the system's lock may be used by all threads; it lies at one address, and is never freed.
  let handle = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)

  init() { pthread_rwlock_init(handle, nil) }
}

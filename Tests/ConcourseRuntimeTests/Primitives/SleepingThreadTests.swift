import CConcourse
import Glibc
import Testing

@testable import ConcourseRuntime

/// What CONCOURSE_STRICT reads of a thread that sleeps; the programs of Tests/TaskPrograms show what comes of it.
@Suite("threads that sleep")
struct SleepingThreadTests {
  /// Runs `call` on a thread, and `look` when that thread sleeps in a system call.
  private func observe<Result>(
    _ call: @escaping @Sendable () -> Void, release: () -> Void,
    look: (UInt32, concourse_sleep) -> Result?
  ) throws -> Result {
    let thread = Sleeping(call)
    defer {
      release()
      thread.join()
    }
    let end = Clock.uptime() &+ 120_000_000_000
    while Clock.uptime() < end {
      var sleep = concourse_sleep()
      // ORDERING: acquiring; pairs with the store of the thread.
      let id = thread.id.load(ordering: .acquiring)
      if id != 0, SystemThread.isAsleep(id) == true, concourse_read_sleep(id, &sleep),
        let result = look(id, sleep)
      {
        return result
      }
      usleep(200)
    }
    throw NotSeen()
  }

  private struct NotSeen: Error {}

  @Test("the name of the call, and that the thread has not woken up")
  func call() throws {
    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    let (reader, writer) = (ends[0], ends[1])
    defer { for end in ends { close(end) } }
    let (name, isCall) = try observe(
      {
        var byte: UInt8 = 0
        while read(reader, &byte, 1) != 1 {}
      }, release: { _ = write(writer, "!", 1) },
      look: { id, sleep -> (String, Bool)? in
        var (before, after, sleep, holder): ([UInt64], [UInt64], concourse_sleep, UInt32) =
          ([0, 0], [0, 0], sleep, 0)
        guard let name = concourse_name_of_call(sleep.call), String(cString: name) == "read()",
          // A thread that has just begun its sleep may not have left its processor.
          concourse_read_switches(id, &before), concourse_read_switches(id, &after), before == after
        else { return nil }
        return (String(cString: name), concourse_wait_of(&sleep, &holder) == CONCOURSE_WAIT_CALL)
      })
    #expect(name == "read()" && isCall)
  }

  @Test("the holder of a mutex")
  func mutex() throws {
    let lock = Mutex()
    lock.lock()
    let holder = try observe(
      {
        lock.lock()
        lock.unlock()
      }, release: { lock.unlock() },
      look: { _, sleep -> UInt32? in
        var (sleep, holder) = (sleep, UInt32(0))
        return concourse_wait_of(&sleep, &holder) == CONCOURSE_WAIT_LOCK ? holder : nil
      })
    #expect(holder == CurrentThread.kernelID)
  }

  @Test("a wait of the engine is told from those of the system, wherever both are linked")
  func engine() throws {
    let event = SharedEvent()
    let sleep = try observe(
      { event.wait() }, release: { event.signal() },
      look: { _, sleep -> concourse_sleep? in
        var (sleep, holder) = (sleep, UInt32(0))
        return concourse_wait_of(&sleep, &holder) == CONCOURSE_WAIT_ENGINE && holder == 0 ? sleep : nil
      })
    func kind(_ change: (inout concourse_sleep) -> Void) -> concourse_wait {
      var (sleep, holder) = (sleep, UInt32(0))
      change(&sleep)
      return concourse_wait_of(&sleep, &holder)
    }
    // With a deadline on the wall clock.
    #expect(kind { $0.arguments.1 |= 256 } == CONCOURSE_WAIT_ENGINE)
    // As `std::condition_variable` and `std::timed_mutex` of the C++ library wait: for any wake-up.
    #expect(kind { $0.arguments.5 = UInt64(UInt32.max) } == CONCOURSE_WAIT_CALL)
  }

  @Test("what is not there")
  func nothing() {
    var (sleep, counts, byte) = (concourse_sleep(), [UInt64](repeating: 0, count: 2), UInt8(0))
    #expect(!concourse_read_sleep(UInt32.max, &sleep) && !concourse_read_switches(UInt32.max, &counts))
    #expect(!concourse_read_memory(8, &byte, 1))
    #expect(concourse_name_of_call(-1) == nil)
    #expect(CallPlace.returnAddresses(ofSleeper: 0x1000, below: 0x2000).isEmpty)
    #expect(CallPlace.returnAddresses(ofSleeper: 0x2000, below: 0x1000).isEmpty)
  }
}

/// A thread of the test's own.
private final class Sleeping: Sendable {
  let id = Atomic<UInt32>(0)
  private let body: @Sendable () -> Void
  private let thread = Atomic<UInt>(0)

  init(_ body: @escaping @Sendable () -> Void) {
    self.body = body
    var thread = pthread_t()
    let result = pthread_create(
      &thread, nil,
      { argument in
        let sleeping = Unmanaged<Sleeping>.fromOpaque(argument!).takeRetainedValue()
        // ORDERING: releasing; pairs with the acquiring load of the test.
        sleeping.id.store(CurrentThread.kernelID, ordering: .releasing)
        sleeping.body()
        return nil
      }, Unmanaged.passRetained(self).toOpaque())
    precondition(result == 0)
    // ORDERING: relaxed; read by this thread.
    self.thread.store(UInt(thread), ordering: .relaxed)
  }

  // ORDERING: relaxed; as above.
  func join() { pthread_join(pthread_t(thread.load(ordering: .relaxed)), nil) }
}

/// A mutex of the C library.
// SAFETY: made for use by any thread.
private final class Mutex: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  init() { pthread_mutex_init(mutex, nil) }
  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }
  func lock() { pthread_mutex_lock(mutex) }
  func unlock() { pthread_mutex_unlock(mutex) }
}

/// A word on which the engine sleeps.
private final class SharedEvent: Sendable {
  private let word = Atomic<UInt32>(0)
  // ORDERING: relaxed, both; the word stands for itself.
  func wait() { while word.load(ordering: .relaxed) == 0 { _ = Futex.wait(word, expected: 0) } }
  func signal() {
    word.store(1, ordering: .relaxed)
    Futex.wake(word, count: 1)
  }
}

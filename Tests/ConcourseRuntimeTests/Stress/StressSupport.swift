// Shared by the blocking tests of the engine.

import Glibc
import Synchronization
import Testing

@testable import ConcourseRuntime

/// Tests that block threads or load the machine, one at a time.
@Suite("Engine", .serialized)
enum Engine {}

/// How long an expected event may take before a test fails. Generous: it costs time only in a failing run.
let patience: DispatchTimeInterval = .seconds(120)

/// Whether a signal came in time.
func comes(_ semaphore: DispatchSemaphore) -> Bool { semaphore.wait(timeout: .now() + patience) == .success }

/// Whether the group became empty in time.
func empties(_ group: DispatchGroup) -> Bool { group.wait(timeout: .now() + patience) == .success }

/// A value that items on any thread may change. Guarded by the system's lock, which is not under test and, unlike
/// Swift's, is known to the thread sanitizer.
final class Shared<Value>: @unchecked Sendable {
  // SAFETY (@unchecked Sendable): `current` is GUARDED BY `mutex`; values are plain data.
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private var current: Value

  init(_ value: Value) {
    current = value
    pthread_mutex_init(mutex, nil)
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  var value: Value {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return current
  }

  func change(_ body: (inout Value) -> Void) {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    body(&current)
  }
}

/// A number that many threads add to.
final class Tally: Sendable {
  private let count = Synchronization.Atomic<Int>(0)

  // ORDERING: relaxed; the reader of the result has waited for the adders by other means.
  var value: Int { count.load(ordering: .relaxed) }

  @discardableResult
  func add(_ amount: Int = 1) -> Int {
    // ORDERING: relaxed; as above.
    count.wrappingAdd(amount, ordering: .relaxed).newValue
  }

  /// Makes it `number` if it is less.
  func raise(to number: Int) {
    // ORDERING: relaxed; as above.
    count.max(number, ordering: .relaxed)
  }
}

/// A plain variable that the queue under test must protect. If it does not, values are wrong and the
/// thread sanitizer reports it.
final class Unprotected<Value>: @unchecked Sendable {
  // SAFETY (@unchecked Sendable): none, on purpose; see above.
  var value: Value

  init(_ value: Value) { self.value = value }
}

/// Runs `body` on `count` threads of its own, outside the pool, and returns when all have ended.
/// - Returns: false when they did not end in time.
func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) -> Bool {
  let ended = DispatchSemaphore(value: 0)
  for index in 0..<count {
    startThread {
      body(index)
      ended.signal()
    }
  }
  for _ in 0..<count { guard comes(ended) else { return false } }
  return true
}

/// Starts a thread outside the pool.
func startThread(_ body: @escaping @Sendable () -> Void) {
  final class Start: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }
  var thread = pthread_t()
  let failure = pthread_create(
    &thread, nil,
    { argument in
      // SAFETY: the one reference that was passed below.
      Unmanaged<Start>.fromOpaque(argument!).takeRetainedValue().body()
      return nil
    }, Unmanaged.passRetained(Start(body)).toOpaque())
  #expect(failure == 0)
  pthread_detach(thread)
}

/// Runs `body` on its own thread, and returns when the thread has run its destructors.
func onJoinedThread(_ body: () -> Void) -> Bool {
  withoutActuallyEscaping(body) { body in
    var work = body
    return withUnsafeMutablePointer(to: &work) { work in
      var thread = pthread_t()
      // SAFETY: the thread is joined before `work` is released.
      let failure = pthread_create(
        &thread, nil,
        {
          $0!.assumingMemoryBound(to: (() -> Void).self).pointee()
          return nil
        }, work)
      return failure == 0 && pthread_join(thread, nil) == 0
    }
  }
}

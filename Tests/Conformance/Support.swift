// Shared by all files here: one program for two runtimes. ConformanceOnConcourse compiles this
// folder against Concourse, ConformanceOnIncumbent against the toolchain's Dispatch, and ConformanceOnOverlay
// against the toolchain's Dispatch module in a process whose C interface is ours (`OVERLAY`); a test that
// holds on Concourse only, because the incumbent departs from the contract, stands in
// `#if CONCOURSE`. The S-numbers are those of the behavioural contract.

import Glibc
import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

/// All tests, one at a time: they block threads, and two at once could starve each other.
@Suite("Conformance", .serialized, .enabled(if: runtimeIsSound))
enum Conformance {}

/// The thread sanitizer replaces the C functions of the toolchain's Dispatch with wrappers under which
/// barriers overlap and groups never empty: under a sanitizer only Concourse is worth testing.
private var runtimeIsSound: Bool {
  #if CONCOURSE
    return true
  #else
    return getenv("CONCOURSE_SANITIZER") == nil
  #endif
}

/// The thread sanitizer holds the handler of a signal back until the thread that got it makes a call which it knows: one
/// that sleeps in the engine may never make any, and the next signal of that number is then lost.
var signalHandlersRun: Bool { getenv("CONCOURSE_SANITIZER").map { String(cString: $0) } != "thread" }

/// How long an expected event may take before the test fails. Generous, because it
/// costs time only in a failing run.
let patience: DispatchTimeInterval = .seconds(120)

extension DispatchSemaphore {
  /// Whether a signal came in time.
  func comes() -> Bool { wait(timeout: .now() + patience) == .success }
}

extension DispatchGroup {
  /// Whether the group became empty in time.
  func empties() -> Bool { wait(timeout: .now() + patience) == .success }
}

/// A value with a POSIX lock, which the thread sanitizer knows, unlike the toolchain's `Mutex`.
final class Guarded<Value>: @unchecked Sendable {
  // SAFETY: `value` is only touched with the lock held; the lock lives as long as the object.
  private let lock: UnsafeMutablePointer<pthread_mutex_t>
  private var value: Value

  init(_ value: Value) {
    self.value = value
    lock = .allocate(capacity: 1)
    lock.initialize(to: pthread_mutex_t())
    pthread_mutex_init(lock, nil)
  }

  deinit {
    pthread_mutex_destroy(lock)
    lock.deallocate()
  }

  func withLock<Result>(_ body: (inout Value) -> Result) -> Result {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    return body(&value)
  }
}

/// A value that items on any thread may change.
final class Shared<Value: Sendable>: Sendable {
  private let mutex: Guarded<Value>

  init(_ value: Value) { mutex = Guarded(value) }

  var value: Value { mutex.withLock { $0 } }

  func set(_ value: Value) { mutex.withLock { $0 = value } }

  func change(_ body: (inout Value) -> Void) {
    mutex.withLock { value in body(&value) }
  }
}

extension Shared where Value == Int {
  func increment() { change { $0 += 1 } }
}

/// Counts how many callers are inside at once.
final class Overlap: Sendable {
  private let counts = Guarded((inside: 0, peak: 0, visits: 0))

  var peak: Int { counts.withLock { $0.peak } }
  var visits: Int { counts.withLock { $0.visits } }

  /// Enters, lets other threads have the processor, and leaves.
  func visit() {
    counts.withLock { counts in
      counts.inside += 1
      counts.visits += 1
      counts.peak = max(counts.peak, counts.inside)
    }
    sched_yield()
    counts.withLock { $0.inside -= 1 }
  }
}

/// A place where two items meet: `meet` is true for both only if they run at the same time.
final class Meeting: Sendable {
  private let first = DispatchSemaphore(value: 0)
  private let second = DispatchSemaphore(value: 0)

  func meetAsFirst() -> Bool {
    second.signal()
    return first.comes()
  }

  func meetAsSecond() -> Bool {
    first.signal()
    return second.comes()
  }
}

/// Signals when nothing refers to it any more.
final class Witness: Sendable {
  let gone: DispatchSemaphore

  init(gone: DispatchSemaphore) { self.gone = gone }

  /// Keeps the witness in the closure that calls this.
  func remember() {}

  deinit { gone.signal() }
}

/// Gives items that must NOT run time to run: other queues of all kinds complete many
/// hops meanwhile. Returns false if these hops themselves got lost.
func othersHadTheirTurn() -> Bool {
  let serial = DispatchQueue(label: "sentinel.serial")
  let concurrent = DispatchQueue(label: "sentinel.concurrent", attributes: .concurrent)
  for _ in 0..<50 {
    let done = DispatchGroup()
    serial.async(group: done) {}
    concurrent.async(group: done) {}
    DispatchQueue.global().async(group: done) {}
    guard done.empties() else { return false }
    sched_yield()
  }
  return true
}

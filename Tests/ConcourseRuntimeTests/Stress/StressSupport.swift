// Shared by the blocking tests of the engine.

import Glibc
import Synchronization
import Testing

@testable import ConcourseRuntime

/// Tests that block threads or load the machine, one at a time.
@Suite("Engine", .serialized)
enum Engine {}

/// How long an expected event may take before a test fails. Generous: it costs time only in a failing run.
let patience: DispatchTimeInterval = .seconds(40)

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

/// Pseudo-random numbers from a seed (SplitMix64).
struct Dice: RandomNumberGenerator, Sendable {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }

  /// True once in `sides` calls on average.
  mutating func hits(oneIn sides: Int) -> Bool { Int.random(in: 0..<sides, using: &self) == 0 }
}

/// The seed of this run: from CONCOURSE_SEED to repeat one, else a new one; printed for that purpose.
enum Seed {
  static let ofRun: UInt64 = {
    let given = Processor.environment("CONCOURSE_SEED").flatMap { UInt64($0) }
    let seed = given ?? UInt64.random(in: 1...UInt64(UInt32.max))
    print("CONCOURSE_SEED=\(seed)")
    return seed
  }()

  /// The generator of one test, or of one of its threads.
  static func dice(_ number: Int = 0, of test: String = #function) -> Dice {
    var seed = ofRun &+ UInt64(number) &* 0x1_0001
    for byte in test.utf8 { seed = seed &* 31 &+ UInt64(byte) }
    return Dice(seed: seed)
  }
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

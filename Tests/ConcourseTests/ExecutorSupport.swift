import Concourse
import Glibc

// Shared by the tests of queues as executors.

/// A plain variable that the queue under test must protect. If it does not, values are wrong and the
/// thread sanitizer reports it.
final class Unprotected<Value>: @unchecked Sendable {
  // SAFETY (@unchecked Sendable): none, on purpose; see above.
  var value: Value
  init(_ value: Value) { self.value = value }
}

/// An actor on a queue that records numbers.
actor Scribe {
  nonisolated let queue: DispatchSerialQueue
  nonisolated var unownedExecutor: UnownedSerialExecutor { queue.asUnownedSerialExecutor() }
  private(set) var notes: [Int] = []
  private let counter: Unprotected<Int>

  init(_ queue: DispatchSerialQueue, counter: Unprotected<Int> = Unprotected(0)) {
    self.queue = queue
    self.counter = counter
  }

  /// Records a number, and checks that it runs on the queue.
  func note(_ number: Int) {
    dispatchPrecondition(condition: .onQueueAsBarrier(queue))
    notes.append(number)
  }

  /// Adds one to the counter.
  func count() { counter.value += 1 }

  /// Adds one, from code that claims to exclude this actor's jobs.
  nonisolated func countHere() { assumeIsolated { $0.counter.value += 1 } }

  /// Runs a closure as one of the actor's jobs.
  func perform<Result: Sendable>(_ body: @Sendable () -> Result) -> Result { body() }

  /// `other` and this actor call one another, `rounds` times in all.
  func pass(to other: Scribe, rounds: Int) async {
    counter.value += 1
    if rounds > 1 { await other.pass(to: self, rounds: rounds - 1) }
  }

  /// Leaves the queue and returns, `rounds` times.
  func leaveAndReturn(rounds: Int) async {
    for _ in 0..<rounds {
      await elsewhere()
      dispatchPrecondition(condition: .onQueue(queue))
      counter.value += 1
    }
  }

  @concurrent nonisolated private func elsewhere() async {
    dispatchPrecondition(condition: .notOnQueue(queue))
  }

  /// Sleeps, and returns whether it woke up on the queue and whether it slept to the end.
  func sleep(for duration: Duration) async -> Bool {
    let slept = (try? await Task.sleep(for: duration)) != nil
    dispatchPrecondition(condition: .onQueue(queue))
    return slept
  }
}

/// The name of the calling thread; a pool thread's names its band.
func threadName() -> String {
  let file = open("/proc/thread-self/comm", O_RDONLY)
  defer { close(file) }
  var bytes = [UInt8](repeating: 0, count: 16)
  let length = read(file, &bytes, bytes.count)
  return String(decoding: bytes.prefix(max(0, length - 1)), as: UTF8.self)
}

import Glibc

/// One question about Swift Concurrency.
struct Row: Sendable {
  let name: String
  let question: String
  /// How many operations a pass has; a tenth in a quick run.
  let count: Int
  /// Does the work once, off the main actor, and verifies it.
  let pass: @concurrent @Sendable (Int) async -> Void

  static let all =
    [
      taskGroupFanOut, asyncLet, detachedTask, taskYield, actorPingPong, actorsOnQueuesPingPong,
      contendedActor, mainActorHop, taskSleepStorm, continuationFromQueue,
    ] + sharedActor

  /// Nanoseconds per operation: the quickest of three passes after a shorter one as a warm-up.
  func quickestPass(_ count: Int) async -> Double {
    await pass(max(count / 10, 1))
    var quickest = Int.max
    for _ in 0..<3 {
      let start = now()
      await pass(count)
      quickest = min(quickest, now() - start)
    }
    return Double(quickest) / Double(count)
  }
}

/// The monotonic clock in nanoseconds.
func now() -> Int {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Ends the process, loudly, unless the work was done: a wrong result must never become a number.
func verify(_ observed: Int, equals expected: Int, _ what: String) {
  guard observed != expected else { return }
  fail("\(what): expected \(expected), observed \(observed)")
}

func fail(_ message: String) -> Never {
  var line = "benchmark failed: \(message)\n"
  // SAFETY: the bytes are used within the closure only.
  line.withUTF8 { bytes in _ = write(STDERR_FILENO, bytes.baseAddress, bytes.count) }
  exit(70)
}

/// What 0 + 1 + ... + (count - 1) must come to.
func sumOfIndices(below count: Int) -> Int { count * (count - 1) / 2 }

import Glibc

/// The monotonic clock in nanoseconds.
func now() -> Int {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The nanoseconds that `work` takes.
func elapsed(_ work: () -> Void) -> Int {
  let start = now()
  work()
  return now() - start
}

/// Nanoseconds per operation: the quickest of `passes` after one warm-up pass, which starts the
/// runtime's threads and fills the allocator's caches and is not counted.
///
/// `pass` times its own core, so that it can prepare and verify outside of the timed part.
func nanosecondsPerOperation(_ operations: Int, passes: Int = 3, _ pass: () -> Int) -> Double {
  _ = pass()
  var best = Int.max
  for _ in 0..<passes { best = min(best, pass()) }
  return Double(best) / Double(operations)
}

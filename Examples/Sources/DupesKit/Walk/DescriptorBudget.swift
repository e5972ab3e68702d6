import Glibc

/// A counting semaphore that bounds how many files are open at once, so that a small `ulimit -n` makes
/// `dupes` wait a little rather than fail with "Too many open files".
///
/// A permit is the right to hold ONE open descriptor. A task that holds a permit never waits for another:
/// if tasks took two permits one by one, each could hold the first and wait for ever for the second.
package final class DescriptorBudget: Sendable {
  package let permits: Int
  private let semaphore: DispatchSemaphore

  /// - Parameter jobs: the user's bound, or nil for none beyond that of the system.
  package init(jobs: Int?) {
    var limit = rlimit()
    let known = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
    let soft = known ? Int(clamping: limit.rlim_cur) : 256
    let free = max(1, soft - DescriptorBudget.reserve)
    // More than this never helps: it is far above the number of threads that read at once.
    permits = min(free, jobs ?? .max, 1024)
    semaphore = DispatchSemaphore(value: permits)
  }

  package func acquire() { semaphore.wait() }
  package func release() { semaphore.signal() }

  /// Runs `body` with one permit.
  package func withPermit<Result>(_ body: () -> Result) -> Result {
    acquire()
    defer { release() }
    return body()
  }

  /// Standard input, output and error, and what the runtime opens for itself.
  private static let reserve = 16
}

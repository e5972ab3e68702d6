import Concourse
import Glibc

/// Tasks that sleep, by each of the functions for it.
enum Sleepers {
  /// - Parameter count: How many more sleep.
  static func run(_ count: Int) -> Never {
    Task(name: "nanoseconds") { try await Task.sleep(nanoseconds: 7_000 * 1_000_000_000) }
    Task(name: "duration") { try await Task.sleep(for: .seconds(11_000)) }
    Task(name: "continuous") { try await Task.sleep(until: .now + .seconds(15_000), clock: .continuous) }
    Task(name: "suspending") { try await Task.sleep(until: .now + .seconds(18_500), clock: .suspending) }
    for _ in 0..<count { Task { try await Task.sleep(for: .seconds(22_000)) } }
    // Its sleep has been cancelled, and it sleeps again.
    let cancelled = Task(name: "cancelled") {
      try? await Task.sleep(for: .seconds(3_000))
      await Task.detached(name: "again") { try? await Task.sleep(for: .seconds(26_000)) }.value
    }
    cancelled.cancel()
    print("ready")
    fflush(nil)
    while true { pause() }
  }
}

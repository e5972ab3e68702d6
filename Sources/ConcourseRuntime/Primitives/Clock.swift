internal import Glibc

/// The clocks of Dispatch, in nanoseconds.
package enum Clock {
  /// Time since boot without the time asleep (`CLOCK_MONOTONIC` on Linux).
  // Out of line: hot functions that seldom ask would have a buffer for the answer, and check their stack at each call.
  @inline(never)
  package static func uptime() -> UInt64 { read(CLOCK_MONOTONIC) }

  /// Time since 1970 (`CLOCK_REALTIME`); it may be set forwards and backwards.
  package static func wall() -> UInt64 { read(CLOCK_REALTIME) }

  /// Time since boot, time asleep included (`CLOCK_BOOTTIME`).
  static func sinceStart() -> UInt64 { read(CLOCK_BOOTTIME) }

  /// Whether a time of the uptime clock, or of the wall clock, has passed.
  ///
  /// The answer nearly always comes from the kernel's coarse clock, which advances at each tick and costs a quarter of
  /// the exact one. If ticks are further apart than `longestTick`, the answer may be false although the time has
  /// passed. It is never true before the time has passed.
  package static func hasPassed(_ time: UInt64, isWall: Bool) -> Bool {
    let longestTick: UInt64 = 10_000_000
    let lagging = read(isWall ? CLOCK_REALTIME_COARSE : CLOCK_MONOTONIC_COARSE)
    if time <= lagging { return true }
    return time <= lagging &+ longestTick && time <= (isWall ? wall() : uptime())
  }

  private static func read(_ clock: clockid_t) -> UInt64 {
    var now = timespec()
    // Cannot fail for these clocks and a valid pointer.
    clock_gettime(clock, &now)
    return UInt64(now.tv_sec) &* 1_000_000_000 &+ UInt64(now.tv_nsec)
  }
}

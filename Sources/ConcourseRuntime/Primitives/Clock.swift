internal import Glibc

/// The two clocks of Dispatch, in nanoseconds.
enum Clock {
  /// Time since boot without the time asleep (`CLOCK_MONOTONIC` on Linux).
  static func uptime() -> UInt64 { read(CLOCK_MONOTONIC) }

  /// Time since 1970 (`CLOCK_REALTIME`); it may be set forwards and backwards.
  static func wall() -> UInt64 { read(CLOCK_REALTIME) }

  private static func read(_ clock: clockid_t) -> UInt64 {
    var now = timespec()
    // Cannot fail for these two clocks and a valid pointer.
    clock_gettime(clock, &now)
    return UInt64(now.tv_sec) &* 1_000_000_000 &+ UInt64(now.tv_nsec)
  }
}

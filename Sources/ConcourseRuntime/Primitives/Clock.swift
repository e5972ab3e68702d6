internal import Glibc

/// The clocks of Dispatch, in nanoseconds.
enum Clock {
  /// Time since boot without the time asleep (`CLOCK_MONOTONIC` on Linux).
  static func uptime() -> UInt64 { read(CLOCK_MONOTONIC) }

  /// Time since 1970 (`CLOCK_REALTIME`); it may be set forwards and backwards.
  static func wall() -> UInt64 { read(CLOCK_REALTIME) }

  /// Time since boot, time asleep included (`CLOCK_BOOTTIME`).
  static func sinceStart() -> UInt64 { read(CLOCK_BOOTTIME) }

  private static func read(_ clock: clockid_t) -> UInt64 {
    var now = timespec()
    // Cannot fail for these clocks and a valid pointer.
    clock_gettime(clock, &now)
    return UInt64(now.tv_sec) &* 1_000_000_000 &+ UInt64(now.tv_nsec)
  }
}

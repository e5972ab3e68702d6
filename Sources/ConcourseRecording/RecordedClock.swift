/// Converts the processor's ticks to uptime.
struct RecordedClock {
  private let firstTicks: UInt64
  private let firstUptime: UInt64
  /// The latest reading, or 2^60: a damaged file may have any number.
  private let latest: UInt64
  /// Nanoseconds in a tick; nil if the records have uptimes.
  private let rate: Double?

  init(_ layout: RecordingLayout, _ readings: [(ticks: UInt64, uptime: UInt64)]) {
    firstTicks = layout.firstTicks
    firstUptime = layout.firstUptime
    latest = min(max(firstUptime, readings.map(\.uptime).max() ?? 0), 1 << 60)
    guard layout.hasTicks else {
      rate = nil
      return
    }
    let last = readings.max { $0.ticks < $1.ticks }
    guard let last, last.ticks > firstTicks, last.uptime > firstUptime else {
      rate = 1
      return
    }
    rate = Double(last.uptime - firstUptime) / Double(last.ticks - firstTicks)
  }

  /// Whether an event can have had that uptime: not long before the recording, and not a hundred days after the
  /// latest reading.
  func isPossible(_ uptime: UInt64) -> Bool {
    let (second, longest): (UInt64, UInt64) = (1_000_000_000, 1 << 53)
    return uptime < latest + longest && uptime + second > firstUptime
  }

  func uptime(_ ticks: UInt64) -> UInt64 {
    guard let rate else { return ticks }
    let difference = Double(Int64(bitPattern: ticks &- firstTicks)) * rate
    return firstUptime &+ UInt64(bitPattern: Int64(exactly: difference.rounded()) ?? 0)
  }
}

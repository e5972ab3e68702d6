import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

/// Timers on a simulated clock.
@Suite("TimerSchedule")
struct TimerScheduleTests {
  private func repeating(_ start: UInt64, _ interval: UInt64, leeway: UInt64 = 0) -> TimerSchedule {
    TimerSchedule(start: .uptime(start), now: 0, interval: interval, leeway: leeway)
  }

  @Test("S85 never set, or set to never: no window")
  func never() {
    var disarmed = TimerSchedule.disarmed
    #expect(disarmed.window.clock == .never)
    #expect(disarmed.elapse(now: .max) == 0)
    #expect(TimerSchedule(start: .never, now: 5, interval: 10, leeway: 0).window.clock == .never)
  }

  @Test("S86 a one-shot timer counts one and ends")
  func once() {
    var schedule = TimerSchedule(start: .uptime(100), now: 0, interval: nil, leeway: 7)
    #expect(schedule.window == TimerWindow(clock: .uptime, earliest: 100, latest: 107))
    #expect(schedule.elapse(now: 99) == 0)
    #expect(schedule.elapse(now: 5000) == 1)
    #expect(schedule.window.clock == .never)
    #expect(schedule.elapse(now: .max) == 0)
  }

  @Test("S87 start plus whole multiples, without drift, however late each call is")
  func multiples() {
    var schedule = repeating(100, 50)
    #expect(schedule.elapse(now: 103) == 1)
    #expect(schedule.next == 150)
    #expect(schedule.elapse(now: 199) == 1)
    #expect(schedule.next == 200)
    #expect(schedule.elapse(now: 449) == 5)
    #expect(schedule.next == 450)
    #expect(schedule.elapse(now: 449) == 0)
  }

  @Test("S88 six intervals of 50 have begun after 300")
  func missed() {
    var schedule = repeating(50, 50)
    #expect(schedule.elapse(now: 300) == 6)
  }

  @Test("S90 a start of now is the present")
  func immediate() {
    var schedule = TimerSchedule(start: .immediate, now: 77, interval: nil, leeway: 0)
    #expect(schedule.window.earliest == 77)
    #expect(schedule.elapse(now: 77) == 1)
  }

  @Test("S92 a leeway without a bound is half the interval, or 0", arguments: [UInt64(Int64.max), .max])
  func leewayWithoutBound(leeway: UInt64) {
    let once = TimerSchedule(start: .uptime(1000), now: 0, interval: nil, leeway: leeway)
    #expect(once.window == TimerWindow(clock: .uptime, earliest: 1000, latest: 1000))
    var several = repeating(1000, 100, leeway: leeway)
    #expect(several.window == TimerWindow(clock: .uptime, earliest: 1000, latest: 1050))
    #expect(several.elapse(now: 1000) == 1)
    #expect(several.window == TimerWindow(clock: .uptime, earliest: 1100, latest: 1150))
    let day: UInt64 = 86_400_000_000_000
    #expect(repeating(0, day, leeway: leeway).window.latest == 60_000_000_000)
  }

  @Test("S92 leeway holds for the first time, the smaller of it and half the interval for the others")
  func leeway() {
    var schedule = repeating(1000, 100, leeway: 80)
    #expect(schedule.window == TimerWindow(clock: .uptime, earliest: 1000, latest: 1080))
    #expect(schedule.elapse(now: 1000) == 1)
    #expect(schedule.window == TimerWindow(clock: .uptime, earliest: 1100, latest: 1150))
  }

  @Test("S92 a leeway of more than a minute is a minute")
  func longLeeway() {
    #expect(repeating(1000, 100, leeway: 100_000_000_000).window.latest == 1000 + 60_000_000_000)
  }

  @Test("S93 an interval of 0 is a nanosecond")
  func zero() {
    var schedule = repeating(10, 0)
    #expect(schedule.elapse(now: 1_000_009) == 1_000_000)
  }

  @Test("trap 12: times beyond the clock's end are never, not a trap")
  func overflow() {
    var schedule = repeating(.max - 5, 10, leeway: .max)
    #expect(schedule.window.latest == .max)
    #expect(schedule.elapse(now: .max - 5) == 1)
    #expect(schedule.window.clock == .never)
  }
}

@Suite("TimerWindow")
struct TimerWindowTests {
  @Test("the chosen time is the roundest in the window")
  func roundest() {
    var dice = Seed.dice()
    for _ in 0..<20_000 {
      let earliest = UInt64.random(in: 1..<1 << 40, using: &dice)
      let width = UInt64.random(in: 0..<1 << UInt64.random(in: 1..<40, using: &dice), using: &dice)
      let window = TimerWindow(clock: .uptime, earliest: earliest, latest: earliest + width)
      let chosen = window.chosen
      #expect(chosen >= earliest && chosen <= earliest + width)
      // The window has no multiple of a higher power of two.
      let unit = UInt64(1) << UInt64(chosen.trailingZeroBitCount + 1)
      if width > 0 { #expect((earliest + width) / unit * unit < earliest) }
    }
  }

  @Test(
    "S92, trap 12: a window without width gives exactly the deadline, and the ends of the clock do not trap")
  func exact() {
    #expect(TimerWindow(.uptime(12_345)).chosen == 12_345)
    #expect(TimerWindow(.immediate).chosen == 0)
    #expect(TimerWindow(clock: .uptime, earliest: 0, latest: 5).chosen == 0)
    #expect(TimerWindow(clock: .wall, earliest: .max, latest: .max).chosen == .max)
    #expect(TimerWindow(clock: .wall, earliest: 9, latest: 3).chosen == 9, "a latest before the earliest")
  }

  @Test("S92 windows that overlap mostly share one time: a hundred timers, few wake-ups")
  func coalesced() {
    // 100 timers that begin anywhere within 50 ms, each with 20 ms of leeway.
    var dice = Seed.dice()
    let times = (0..<100).map { _ in
      let earliest = 1_000_000_000 + UInt64.random(in: 0..<50_000_000, using: &dice)
      return TimerWindow(clock: .uptime, earliest: earliest, latest: earliest + 20_000_000).chosen
    }
    #expect(Set(times).count <= 8)
  }
}

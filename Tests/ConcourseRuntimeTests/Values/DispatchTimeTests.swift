import Testing

@testable import ConcourseRuntime

@Suite("DispatchTime")
struct DispatchTimeTests {
  private let start = DispatchTime(uptimeNanoseconds: 1_000)
  private let lastInstant = DispatchTime(uptimeNanoseconds: UInt64(Int64.max))

  @Test("the raw value is the count of nanoseconds")
  func rawValue() {
    #expect(start.rawValue == 1_000)
    #expect(start.uptimeNanoseconds == 1_000)
    #expect(DispatchTime(uptimeNanoseconds: .max) == .distantFuture)
    #expect(DispatchTime.distantFuture.uptimeNanoseconds == .max)
  }

  @Test("now does not run backwards and reads the uptime clock")
  func now() {
    let before = Clock.uptime()
    let first = DispatchTime.now()
    let second = DispatchTime.now()
    let after = Clock.uptime()
    #expect(before <= first.uptimeNanoseconds)
    #expect(first <= second)
    #expect(second.uptimeNanoseconds <= after)
  }

  @Test("S149 the distant future absorbs every addition and subtraction")
  func forever() {
    let forever = DispatchTime.distantFuture
    for interval: DispatchTimeInterval in [
      .seconds(5), .seconds(.max), .seconds(.min), .nanoseconds(-1), .nanoseconds(.min), .never,
    ] {
      #expect(forever + interval == forever)
      #expect(forever - interval == forever)
    }
    for seconds in [0.0, -1, 1e300, -1e300, .infinity, -.infinity, .nan] {
      #expect(forever + seconds == forever)
      #expect(forever - seconds == forever)
    }
  }

  @Test("S149 overflow gives the distant future, underflow the first instant")
  func saturation() {
    let first = DispatchTime(uptimeNanoseconds: 1)
    #expect(start + .seconds(.max) == .distantFuture)
    #expect(start + .milliseconds(.max) == .distantFuture)
    #expect(start + .microseconds(.max) == .distantFuture)
    #expect(start + .nanoseconds(.max) == .distantFuture)
    #expect(first + .nanoseconds(.max) == .distantFuture)
    #expect(start + .seconds(.min) == first)
    #expect(start + .nanoseconds(.min) == first)
    #expect(start - .seconds(.max) == first)
    #expect(start - .nanoseconds(999) == first)
    #expect(start - .nanoseconds(1_000) == first)
    #expect(start - .nanoseconds(1_001) == first)
    #expect(first - .nanoseconds(0) == first)
  }

  @Test("S149 the last instant is reached exactly, the next is the distant future")
  func lastReachable() {
    let nearlyLast = DispatchTime(uptimeNanoseconds: UInt64(Int64.max) - 1)
    #expect(nearlyLast + .nanoseconds(1) == lastInstant)
    #expect(nearlyLast + .nanoseconds(2) == .distantFuture)
    #expect(lastInstant - .nanoseconds(1) == nearlyLast)
    #expect(lastInstant < .distantFuture)
  }

  @Test("an instant beyond 63 bits moves back into range, and never up past the top")
  func beyondRange() {
    let beyond = DispatchTime(uptimeNanoseconds: 1 << 63)
    #expect(beyond - .nanoseconds(1) == lastInstant)
    #expect(beyond + .nanoseconds(0) == .distantFuture)
    #expect(DispatchTime(uptimeNanoseconds: .max - 1) + .seconds(.max) == .distantFuture)
    #expect(DispatchTime(uptimeNanoseconds: .max - 1) - .nanoseconds(.min) == .distantFuture)
  }

  @Test("S151 adding .never gives the distant future, subtracting it the first instant")
  func never() {
    #expect(start + .never == .distantFuture)
    #expect(start - .never == DispatchTime(uptimeNanoseconds: 1))
  }

  @Test("S152 subtracting the least interval saturates instead of trapping")
  func subtractingLeast() {
    #expect(start - .nanoseconds(.min) == .distantFuture)
    #expect(start - .microseconds(.min) == .distantFuture)
    #expect(start - .milliseconds(.min) == .distantFuture)
    #expect(start - .seconds(.min) == .distantFuture)
    #expect(start - .seconds(-9_223_372_037) == .distantFuture)
  }

  @Test("S152 zero nanoseconds means now in every sum")
  func zeroIsNow() {
    let zero = DispatchTime(uptimeNanoseconds: 0)
    let before = Clock.uptime()
    let moved = zero + .seconds(10)
    let after = Clock.uptime()
    #expect(moved.uptimeNanoseconds >= before + 10_000_000_000)
    #expect(moved.uptimeNanoseconds <= after + 10_000_000_000)
    #expect((zero - .nanoseconds(0)).uptimeNanoseconds >= before)
    #expect(zero + .seconds(.min) == DispatchTime(uptimeNanoseconds: 1))
    #expect(zero + .never == .distantFuture)
  }

  @Test("S151 seconds as Double are truncated to nanoseconds and saturate")
  func doubles() {
    #expect(start + 1.5 == DispatchTime(uptimeNanoseconds: 1_500_001_000))
    #expect(start + 0.000_000_001_9 == DispatchTime(uptimeNanoseconds: 1_001))
    #expect(start - 0.000_000_001_9 == DispatchTime(uptimeNanoseconds: 999))
    #expect(start + -0.000_000_5 == DispatchTime(uptimeNanoseconds: 500))
    #expect(start + -0.0 == start)
    #expect(start + Double.leastNonzeroMagnitude == start)
    let first = DispatchTime(uptimeNanoseconds: 1)
    for seconds in [Double.infinity, .greatestFiniteMagnitude, 1e300, 9_223_372_036.854_775_808] {
      #expect(start + seconds == .distantFuture)
      #expect(start - -seconds == .distantFuture)
      #expect(start - seconds == first)
      #expect(start + -seconds == first)
    }
    #expect(start + Double.nan == .distantFuture)
    #expect(start - Double.nan == .distantFuture)
    #expect(start + Double.signalingNaN == .distantFuture)
  }

  @Test("Duration adds as the interval it equals")
  func durations() {
    let second: Duration = .seconds(1)
    #expect(start + second == start + .seconds(1))
    #expect(start + second - second == start)
    #expect(start - Duration.nanoseconds(400) == DispatchTime(uptimeNanoseconds: 600))
    #expect(start + Duration.seconds(Int64.max) == .distantFuture)
    #expect(start - Duration.seconds(Int64.min) == .distantFuture)
    #expect(start + Duration.seconds(Int64.min) == DispatchTime(uptimeNanoseconds: 1))
    #expect(start + .seconds(0.25) == DispatchTime(uptimeNanoseconds: 250_001_000))
  }

  @Test("advanced(by:) is addition")
  func advanced() {
    #expect(start.advanced(by: .microseconds(2)) == DispatchTime(uptimeNanoseconds: 3_000))
    #expect(start.advanced(by: .nanoseconds(-1)) == DispatchTime(uptimeNanoseconds: 999))
    #expect(start.advanced(by: .never) == .distantFuture)
  }

  @Test("distance(to:) is the inverse of advanced(by:), and saturates")
  func distance() {
    let later = DispatchTime(uptimeNanoseconds: 4_500)
    #expect(start.distance(to: later) == .nanoseconds(3_500))
    #expect(later.distance(to: start) == .nanoseconds(-3_500))
    #expect(start.distance(to: start) == .nanoseconds(0))
    #expect(start.advanced(by: start.distance(to: later)) == later)
    #expect(start.distance(to: .distantFuture) == .never)
    #expect(DispatchTime.distantFuture.distance(to: start) == .nanoseconds(.min))
    #expect(DispatchTime.distantFuture.distance(to: .distantFuture) == .nanoseconds(0))
    #expect(DispatchTime(uptimeNanoseconds: 0).distance(to: start) == .nanoseconds(1_000))
    let beyond = DispatchTime(uptimeNanoseconds: .max - 1)
    #expect(DispatchTime(uptimeNanoseconds: 0).distance(to: beyond) == .nanoseconds(.max))
    #expect(beyond.distance(to: DispatchTime(uptimeNanoseconds: 0)) == .nanoseconds(-.max))
  }

  @Test("S150 instants order by time and the distant future is the greatest")
  func order() {
    let instants = [
      DispatchTime(uptimeNanoseconds: 0), DispatchTime(uptimeNanoseconds: 1), start, lastInstant,
      DispatchTime(uptimeNanoseconds: 1 << 63), .distantFuture,
    ]
    for (i, a) in instants.enumerated() {
      for (j, b) in instants.enumerated() {
        #expect((a < b) == (i < j))
        #expect((a == b) == (i == j))
      }
    }
  }
}

import Glibc
import Testing

@testable import ConcourseRuntime

@Suite("DispatchWallTime")
struct DispatchWallTimeTests {
  private func wall(_ seconds: Int, _ nanoseconds: Int = 0) -> DispatchWallTime {
    DispatchWallTime(timespec: timespec(tv_sec: seconds, tv_nsec: nanoseconds))
  }

  private let earliest = DispatchWallTime(rawValue: .max - 1)

  @Test("the raw value is the negated count of nanoseconds since 1970")
  func rawValue() {
    #expect(Int64(bitPattern: wall(5).rawValue) == -5_000_000_000)
    #expect(Int64(bitPattern: wall(1_700_000_000, 5).rawValue) == -1_700_000_000_000_000_005)
    #expect(DispatchWallTime.distantFuture.rawValue == .max)
  }

  @Test("nanoseconds outside a second are carried")
  func carriedNanoseconds() {
    #expect(wall(1, 2_000_000_000) == wall(3))
    #expect(wall(1, -1) == wall(0, 999_999_999))
  }

  @Test("times before the first instant become the first, not the distant future")
  func beforeTheEpoch() {
    for (seconds, nanoseconds) in [
      (0, 0), (0, 1), (0, 2), (-1, 0), (-1, 999_999_999), (Int.min, 0), (Int.min, .min),
    ] {
      #expect(wall(seconds, nanoseconds) == earliest)
    }
    #expect(wall(0, 3) > earliest)
  }

  @Test("times beyond the last instant become the distant future")
  func beyondTheEnd() {
    let last = wall(9_223_372_036, 854_775_807)
    #expect(last != .distantFuture)
    #expect(last < .distantFuture)
    #expect(wall(9_223_372_036, 854_775_808) == .distantFuture)
    #expect(wall(.max) == .distantFuture)
    #expect(wall(.max, .max) == .distantFuture)
    #expect(last + .nanoseconds(1) == .distantFuture)
    #expect(last - .nanoseconds(1) + .nanoseconds(1) == last)
  }

  @Test("now reads the wall clock")
  func now() {
    let before = Clock.wall()
    let now = DispatchWallTime.now()
    let after = Clock.wall()
    // The wall clock may be set back between two readings; it must not be off by a day.
    let day: UInt64 = 86_400 * NSEC_PER_SEC
    #expect(now.nanosecondsSinceEpoch > before - day)
    #expect(now.nanosecondsSinceEpoch < after + day)
  }

  @Test("S150 later instants are greater although stored negated; the distant future is the greatest")
  func order() {
    let instants = [
      earliest, wall(0, 3), wall(1), wall(1_700_000_000), wall(9_223_372_036), .distantFuture,
    ]
    for (i, a) in instants.enumerated() {
      for (j, b) in instants.enumerated() {
        #expect((a < b) == (i < j))
        #expect((a == b) == (i == j))
      }
    }
  }

  @Test("S150 sums stay on the wall clock")
  func sums() {
    let start = wall(1_700_000_000)
    #expect(start + .seconds(1) == wall(1_700_000_001))
    #expect(start - .seconds(1) == wall(1_699_999_999))
    #expect(start + .milliseconds(-1) == wall(1_699_999_999, 999_000_000))
    #expect(start + 0.5 == wall(1_700_000_000, 500_000_000))
    #expect(start - 0.5 == wall(1_699_999_999, 500_000_000))
    let half: Duration = .milliseconds(500)
    #expect(start + half == wall(1_700_000_000, 500_000_000))
    #expect(start - half == wall(1_699_999_999, 500_000_000))
  }

  @Test("S149 sums saturate at both ends")
  func saturation() {
    let start = wall(1_700_000_000)
    #expect(start + .seconds(.max) == .distantFuture)
    #expect(start - .seconds(.max) == earliest)
    #expect(start + .seconds(.min) == earliest)
    #expect(start - .nanoseconds(.min) == .distantFuture)
    #expect(start + .never == .distantFuture)
    #expect(start - .never == earliest)
    #expect(start + Double.nan == .distantFuture)
    #expect(start - Double.nan == .distantFuture)
    #expect(start + Double.infinity == .distantFuture)
    #expect(start - Double.infinity == earliest)
    #expect(start + 1e300 == .distantFuture)
    #expect(start - 1e300 == earliest)
    #expect(start + Duration.seconds(Int64.max) == .distantFuture)
    #expect(start - Duration.seconds(Int64.max) == earliest)
    #expect(wall(0, 10) - .nanoseconds(8) == earliest)
    #expect(wall(0, 10) - .nanoseconds(7) == wall(0, 3))
    #expect(wall(0, 10) - .nanoseconds(10) == earliest)
  }

  @Test("S149 the distant future absorbs every addition and subtraction")
  func forever() {
    let forever = DispatchWallTime.distantFuture
    #expect(forever + .seconds(-5) == forever)
    #expect(forever - .seconds(5) == forever)
    #expect(forever - .never == forever)
    #expect(forever - Double.infinity == forever)
    #expect(forever - Duration.seconds(5) == forever)
  }

  @Test("sums from the earliest instant start now, as they do in C")
  func earliestIsNow() {
    let before = DispatchWallTime.now() - .seconds(86_400)
    #expect(earliest + .seconds(1) > before)
    #expect(earliest - .never == earliest)
  }
}

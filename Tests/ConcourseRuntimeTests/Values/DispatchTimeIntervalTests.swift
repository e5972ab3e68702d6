import Testing

@testable import ConcourseRuntime

@Suite("DispatchTimeInterval")
struct DispatchTimeIntervalTests {
  @Test("S151 intervals are equal when they denote the same number of nanoseconds")
  func equality() {
    #expect(DispatchTimeInterval.seconds(1) == .milliseconds(1_000))
    #expect(DispatchTimeInterval.milliseconds(1) == .microseconds(1_000))
    #expect(DispatchTimeInterval.microseconds(-1) == .nanoseconds(-1_000))
    #expect(DispatchTimeInterval.seconds(0) == .nanoseconds(0))
    #expect(DispatchTimeInterval.seconds(1) != .nanoseconds(1))
    #expect(DispatchTimeInterval.seconds(1) != .seconds(-1))
  }

  @Test("S151 saturated values are compared")
  func saturatedEquality() {
    #expect(DispatchTimeInterval.seconds(.max) == .milliseconds(.max))
    #expect(DispatchTimeInterval.seconds(.max) == .nanoseconds(.max))
    #expect(DispatchTimeInterval.seconds(.min) == .nanoseconds(.min))
    #expect(DispatchTimeInterval.seconds(9_223_372_037) == .seconds(.max))
    #expect(DispatchTimeInterval.seconds(9_223_372_036) != .seconds(.max))
    #expect(DispatchTimeInterval.seconds(-9_223_372_037) == .seconds(.min))
  }

  @Test("S151 never equals only itself")
  func never() {
    #expect(DispatchTimeInterval.never == .never)
    #expect(DispatchTimeInterval.never != .nanoseconds(.max))
    #expect(DispatchTimeInterval.seconds(.max) != .never)
  }

  @Test("a Duration becomes whole nanoseconds, saturated")
  func durations() {
    #expect(DispatchTimeInterval(.seconds(2)) == .seconds(2))
    #expect(DispatchTimeInterval(.milliseconds(1_500)) == .milliseconds(1_500))
    #expect(DispatchTimeInterval(.nanoseconds(-7)) == .nanoseconds(-7))
    #expect(DispatchTimeInterval(.milliseconds(-1_500)) == .milliseconds(-1_500))
    #expect(DispatchTimeInterval(.zero) == .nanoseconds(0))
    #expect(
      DispatchTimeInterval(Duration(secondsComponent: 0, attosecondsComponent: 1_999_999_999))
        == .nanoseconds(1))
    #expect(
      DispatchTimeInterval(Duration(secondsComponent: 0, attosecondsComponent: -1_999_999_999))
        == .nanoseconds(-1))
    #expect(DispatchTimeInterval(.seconds(Int64.max)) == .nanoseconds(.max))
    #expect(DispatchTimeInterval(.seconds(Int64.min)) == .nanoseconds(.min))
    #expect(
      DispatchTimeInterval(.nanoseconds(Int64.max) + .nanoseconds(1)) == .nanoseconds(.max))
    #expect(
      DispatchTimeInterval(.nanoseconds(Int64.min) - .nanoseconds(1)) == .nanoseconds(.min))
    #expect(DispatchTimeInterval(.nanoseconds(Int64.max)) == .nanoseconds(.max))
  }
}

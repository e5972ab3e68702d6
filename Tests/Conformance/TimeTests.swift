// S. Time arithmetic.

import Glibc
import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

extension Conformance {
  @Suite("S. Time arithmetic")
  struct TimeTests {
    private let start = DispatchTime(uptimeNanoseconds: 1_000)

    private func wall(_ seconds: Int, _ nanoseconds: Int = 0) -> DispatchWallTime {
      DispatchWallTime(timespec: timespec(tv_sec: seconds, tv_nsec: nanoseconds))
    }

    @Test("the encoding of instants")
    func encoding() {
      #expect(start.rawValue == 1_000)
      #expect(start.uptimeNanoseconds == 1_000)
      #expect(DispatchTime.distantFuture.rawValue == .max)
      #expect(DispatchWallTime.distantFuture.rawValue == .max)
      #expect(Int64(bitPattern: wall(1_700_000_000, 5).rawValue) == -1_700_000_000_000_000_005)
    }

    @Test("S149 forever absorbs every addition and subtraction")
    func forever() {
      #expect(DispatchTime.distantFuture - .seconds(5) == .distantFuture)
      #expect(DispatchTime.distantFuture + .seconds(-5) == .distantFuture)
      #expect(DispatchTime.distantFuture - 5.0 == .distantFuture)
      #expect(DispatchWallTime.distantFuture - .seconds(5) == .distantFuture)
      #expect(DispatchWallTime.distantFuture + -5.0 == .distantFuture)
    }

    @Test("S149 overflow saturates to forever, underflow to the smallest instant of the clock")
    func saturation() {
      let smallest = DispatchTime(uptimeNanoseconds: 1)
      #expect(start + .seconds(.max) == .distantFuture)
      #expect(start + .nanoseconds(.max) == .distantFuture)
      #expect(start - .seconds(.max) == smallest)
      #expect(start + .seconds(.min) == smallest)
      #expect(start - .nanoseconds(5_000) == smallest)
      #expect(start - .nanoseconds(1_000) == smallest)
      #expect(wall(1_700_000_000) + .seconds(.max) == .distantFuture)
      #expect((wall(1_700_000_000) - .seconds(.max)).rawValue == UInt64.max - 1)
    }

    @Test("S150 sums stay on their clock")
    func sums() {
      #expect(start + .nanoseconds(5) == DispatchTime(uptimeNanoseconds: 1_005))
      #expect(start - .nanoseconds(5) == DispatchTime(uptimeNanoseconds: 995))
      #expect(start + 1.5 == DispatchTime(uptimeNanoseconds: 1_500_001_000))
      #expect(wall(1_700_000_000) + .seconds(1) == wall(1_700_000_001))
      #expect(wall(1_700_000_000) - .milliseconds(1) == wall(1_699_999_999, 999_000_000))
      #expect(wall(1_700_000_000) + 0.5 == wall(1_700_000_000, 500_000_000))
    }

    @Test("S150 wall times order correctly, the distant future is the greatest of both kinds")
    func order() {
      #expect(wall(1) < wall(2))
      #expect(!(wall(2) < wall(1)))
      #expect(wall(2) < .distantFuture)
      #expect(!(DispatchWallTime.distantFuture < wall(2)))
      #expect(DispatchTime(uptimeNanoseconds: 1) < start)
      #expect(start < .distantFuture)
      #expect(DispatchTime.now() <= .now())
    }

    @Test("S151 intervals are equal when they denote the same saturated nanoseconds")
    func intervals() {
      #expect(DispatchTimeInterval.seconds(1) == .milliseconds(1_000))
      #expect(DispatchTimeInterval.microseconds(1) == .nanoseconds(1_000))
      #expect(DispatchTimeInterval.seconds(.max) == .milliseconds(.max))
      #expect(DispatchTimeInterval.seconds(.max) == .nanoseconds(.max))
      #expect(DispatchTimeInterval.seconds(1) != .seconds(2))
    }

    @Test("S151 never equals only itself")
    func never() {
      #expect(DispatchTimeInterval.never == .never)
      #expect(DispatchTimeInterval.seconds(.max) != .never)
      #expect(DispatchTimeInterval.nanoseconds(.max) != .never)
    }

    @Test("S151 adding never, infinity, NaN or an oversized value gives distant future")
    func oddSums() {
      #expect(start + .never == .distantFuture)
      #expect(start + Double.infinity == .distantFuture)
      #expect(start + Double.nan == .distantFuture)
      #expect(start + 1e300 == .distantFuture)
      #expect(wall(1_700_000_000) + .never == .distantFuture)
      #expect(wall(1_700_000_000) + Double.infinity == .distantFuture)
      #expect(wall(1_700_000_000) + Double.nan == .distantFuture)
    }

    @Test("S152 an instant of 0 nanoseconds behaves as now")
    func zero() {
      let before = DispatchTime.now()
      let sum = DispatchTime(uptimeNanoseconds: 0) + .seconds(1)
      let after = DispatchTime.now()
      #expect(sum >= before + .seconds(1))
      #expect(sum <= after + .seconds(1))
    }

    #if CONCOURSE
      // Incumbent: traps.
      @Test("S152 subtracting the least interval saturates")
      func subtractLeast() {
        #expect(start - .nanoseconds(.min) == .distantFuture)
        #expect(start - .seconds(.min) == .distantFuture)
        #expect(wall(1_700_000_000) - .seconds(.min) == .distantFuture)
      }

      // Incumbent: the epoch and everything before it are the distant future.
      @Test("S149 an instant before the epoch is the smallest wall time, not the greatest")
      func beforeTheEpoch() {
        #expect(wall(0) < wall(1))
        #expect(wall(-1) < wall(1))
        #expect(wall(.min) < wall(1))
      }

      // Not in the incumbent.
      @Test("advanced(by:) and distance(to:) undo one another")
      func stride() {
        let later = start.advanced(by: .microseconds(3))
        #expect(start.distance(to: later) == .microseconds(3))
        #expect(later.distance(to: start) == .microseconds(-3))
      }
    #endif
  }
}

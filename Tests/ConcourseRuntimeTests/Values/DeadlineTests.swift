import Glibc
import Testing

@testable import ConcourseRuntime

@Suite("Deadline")
struct DeadlineTests {
  @Test("S72, S82 an uptime instant becomes a deadline on the uptime clock")
  func uptime() {
    #expect(Deadline(DispatchTime(uptimeNanoseconds: 0)) == .immediate)
    #expect(Deadline(DispatchTime(uptimeNanoseconds: 1)) == .uptime(1))
    #expect(Deadline(DispatchTime(uptimeNanoseconds: 5_000)) == .uptime(5_000))
    #expect(Deadline(DispatchTime(uptimeNanoseconds: UInt64(Int64.max))) == .uptime(UInt64(Int64.max)))
    #expect(Deadline(DispatchTime.distantFuture) == .never)
  }

  @Test("an uptime beyond 63 bits is never, not a wall-clock instant")
  func beyondRange() {
    #expect(Deadline(DispatchTime(uptimeNanoseconds: 1 << 63)) == .never)
    #expect(Deadline(DispatchTime(uptimeNanoseconds: .max - 1)) == .never)
  }

  @Test("a wall-clock instant becomes a deadline on the wall clock")
  func wall() {
    let instant = DispatchWallTime(timespec: timespec(tv_sec: 5, tv_nsec: 7))
    #expect(Deadline(instant) == .wall(5_000_000_007))
    #expect(Deadline(DispatchWallTime.distantFuture) == .never)
    let last = DispatchWallTime(timespec: timespec(tv_sec: 9_223_372_036, tv_nsec: 854_775_807))
    #expect(Deadline(last) == .wall(UInt64(Int64.max)))
  }

  @Test("the epoch and everything before it are past, not never")
  func epoch() {
    #expect(Deadline(DispatchWallTime(timespec: timespec(tv_sec: 0, tv_nsec: 0))) == .immediate)
    #expect(Deadline(DispatchWallTime(timespec: timespec(tv_sec: -9, tv_nsec: 0))) == .immediate)
    #expect(Deadline(DispatchWallTime.now() - .seconds(.max)) == .immediate)
  }
}

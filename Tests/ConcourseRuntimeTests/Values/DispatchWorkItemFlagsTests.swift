import Testing

@testable import ConcourseRuntime

@Suite("DispatchWorkItemFlags and constants")
struct DispatchWorkItemFlagsTests {
  @Test("S52 raw values are those of dispatch_block_flags_t")
  func rawValues() {
    let expected: [(DispatchWorkItemFlags, UInt)] = [
      (.barrier, 0x1), (.detached, 0x2), (.assignCurrentContext, 0x4), (.noQoS, 0x8),
      (.inheritQoS, 0x10), (.enforceQoS, 0x20),
    ]
    for (flag, rawValue) in expected {
      #expect(flag.rawValue == rawValue)
    }
    #expect(DispatchWorkItemFlags([.barrier, .enforceQoS]).rawValue == 0x21)
    #expect(DispatchWorkItemFlags().isEmpty)
  }

  @Test("S53 unknown bits are kept, so that a user of the flags can refuse them")
  func unknownBits() {
    #expect(DispatchWorkItemFlags(rawValue: 0x140).rawValue == 0x140)
    #expect(!DispatchWorkItemFlags(rawValue: 0x140).contains(.barrier))
  }

  @Test("C's unit constants")
  func constants() {
    #expect(NSEC_PER_SEC == 1_000_000_000)
    #expect(NSEC_PER_MSEC * MSEC_PER_SEC == NSEC_PER_SEC)
    #expect(NSEC_PER_USEC * USEC_PER_SEC == NSEC_PER_SEC)
    let time: dispatch_time_t = DispatchTime.distantFuture.rawValue
    #expect(time == .max)
  }
}

import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Crash {
  @Suite("Misuse of data")
  struct DataCrashTests {
    @Test("S121 a position outside the data")
    func position() async {
      let behind = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        _ = data("abc")[3]
      }
      behind.says("DispatchData[3]: the data has the positions 0..<3")
      let before = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        _ = data(regions: "abc", "def")[-1]
      }
      before.says("DispatchData[-1]: the data has the positions 0..<6")
    }

    @Test("S121 a slice that reaches outside the data")
    func slice() async {
      let behind = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        _ = data("abc")[2..<4]
      }
      behind.says("DispatchData[2..<4]: the data has the range 0..<3")
      let before = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        _ = data("abc")[-2..<1]
      }
      before.says("DispatchData[-2..<1]: the data has the range 0..<3")
    }

    @Test("S121 copying a range outside the data to a typed buffer")
    func typedCopy() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        var words = [UInt32](repeating: 0, count: 4)
        _ = words.withUnsafeMutableBufferPointer { data("abcdef").copyBytes(to: $0, from: 2..<7) }
      }
      end.says("DispatchData.copyBytes(to:from: 2..<7): the data has the range 0..<6")
    }

    @Test("S121 copying more than the raw buffer holds")
    func rawCopy() async {
      let count = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        var bytes = [UInt8](repeating: 0, count: 4)
        bytes.withUnsafeMutableBytes { data("abcdef").copyBytes(to: $0, count: 5) }
      }
      count.says("DispatchData.copyBytes: 5 bytes asked for, into a buffer of 4")
      let range = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        var bytes = [UInt8](repeating: 0, count: 4)
        bytes.withUnsafeMutableBytes { data("abcdef").copyBytes(to: $0, from: 1..<6) }
      }
      range.says("DispatchData.copyBytes: 5 bytes asked for, into a buffer of 4")
      let negative = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        var bytes = [UInt8](repeating: 0, count: 4)
        bytes.withUnsafeMutableBytes { data("abcdef").copyBytes(to: $0, count: -1) }
      }
      negative.says("DispatchData.copyBytes(to:count: -1): the count must not be negative")
    }

    @Test("Appending a negative number of bytes")
    func negativeAppend() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        (data("abc") as any OldAppend).append(count: -1)
      }
      end.says("DispatchData.append(_:count: -1): the count must not be negative")
    }

    @Test("Data longer than an Int can count")
    func tooLong() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        var doubled = data("a")
        for _ in 0..<63 { doubled.append(doubled) }
      }
      end.says(
        "appending 4611686018427387904 bytes to a DispatchData of 4611686018427387904: "
          + "the length exceeds Int.max")
    }

    @Test("S120 unmapping memory that mmap did not return")
    func unmapInsidePage() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let page = mmap(nil, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)!
        _ = DispatchData(
          bytesNoCopy: UnsafeRawBufferPointer(start: page + 8, count: 16), deallocator: .unmap)
      }
      end.says("does not begin with a page, so mmap did not return it")
    }

    @Test("S118 mapping more than fits in memory", .enabled(if: Sanitizer.allowsHugeRequests))
    func mapTooMuch() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        var doubled = data("a")
        for _ in 0..<60 { doubled.append(doubled) }
        doubled.withUnsafeBytes { (_: UnsafePointer<UInt8>) in }
      }
      let spoken = String(decoding: end?.standardErrorContent ?? [], as: UTF8.self)
      #expect(
        spoken
          == "Concourse: out of memory: DispatchData.withUnsafeBytes: the system has no memory for a copy"
          + " of 1152921504606846976 bytes\n")
    }
  }
}

/// Calls a deprecated function without being deprecated.
private protocol OldAppend {
  func append(count: Int)
}

extension DispatchData: OldAppend {
  @available(*, deprecated)
  fileprivate func append(count: Int) {
    var grown = self
    grown.append([1, 2, 3], count: count)
  }
}

import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

@Suite("How operations progress")
struct OperationProgressTests {
  private func marks(low: Int? = nil, high: Int? = nil) -> WaterMarks {
    var marks = WaterMarks()
    if let low { marks.setLow(low) }
    if let high { marks.setHigh(high) }
    return marks
  }

  private func call(_ delivery: OperationProgress.Delivery) -> Call {
    Call(delivery.isLast, delivery.data.map { Array($0) }, delivery.error)
  }

  @Test("S126 marks start at 1 MiB and no limit, and never cross")
  func waterMarks() {
    #expect(WaterMarks().low == 1 << 20)
    #expect(WaterMarks().high == .max)
    #expect(marks(high: 100) == marks(low: 100, high: 100))
    var crossed = marks(high: 100)
    crossed.setLow(200)
    #expect(crossed.high == 200)
    #expect(marks(low: -1).low == .max)
    #expect(marks(high: -1).high == .max)
    #expect(marks(low: 0).low == 1)
    #expect(marks(high: 0).high == 1)
  }

  @Test("S126 intermediate deliveries are between the marks")
  func pieces() {
    var reading = OperationProgress.read(1000, .pieces, marks(low: 100, high: 150))
    #expect(reading.request == 150)
    #expect(reading.read(bytesData(pattern(99))) == nil)
    #expect(reading.request == 51)
    let first = reading.read(bytesData(pattern(51)))
    #expect(first.map(call) == Call(false, pattern(99) + pattern(51)))
    #expect(reading.request == 150)
    #expect(reading.read(bytesData(pattern(120)))?.data?.count == 120)
    #expect(reading.transferred == 270)
  }

  @Test("bytes that come one by one share memory until they are delivered")
  func dribble() {
    var reading = OperationProgress.read(.max, .pieces, marks(low: .max))
    for byte in pattern(10_000) { #expect(reading.read(bytesData([byte])) == nil) }
    #expect(Array(reading.data) == pattern(10_000))
    var regions = 0
    reading.data.enumerateBytes { _, _, _ in regions += 1 }
    #expect(regions < 20)
    // Longer pieces are not copied.
    let piece = bytesData(pattern(100_000))
    var (address, shown): (UnsafePointer<UInt8>?, UnsafePointer<UInt8>?)
    piece.enumerateBytes { bytes, _, _ in address = bytes.baseAddress }
    #expect(reading.read(piece) == nil)
    reading.data.enumerateBytes { bytes, _, _ in shown = bytes.baseAddress }
    #expect(shown == address)
  }

  @Test("S123 the length ends a read")
  func length() {
    var reading = OperationProgress.read(10, .pieces)
    #expect(reading.read(bytesData([1, 2])) == nil)
    #expect(reading.request == 8)
    #expect(reading.read(bytesData(pattern(8))).map(call) == Call(true, [1, 2] + pattern(8)))
    #expect(OperationProgress.read(-1).request == .max)
    var nothing = OperationProgress.read(0)
    #expect(nothing.request == 0)
    #expect(call(nothing.complete()) == Call(true, []))
  }

  @Test("S125 how reads end", arguments: [OperationProgress.End.endOfFile, .failure(EIO)])
  func ends(_ end: OperationProgress.End) {
    let last = end == .endOfFile ? Call(true, []) : Call(true, nil, EIO)
    var bare = OperationProgress.read(10)
    #expect(bare.end(end).map(call) == [last])
    var partial = OperationProgress.read(10)
    #expect(partial.read(bytesData([5])) == nil)
    #expect(partial.end(end).map(call) == [Call(false, [5]), last])
  }

  @Test("S125 writes report the unwritten rest")
  func writing() {
    var writing = OperationProgress.write(bytesData(pattern(1000)), .pieces, marks(low: 300, high: 400))
    #expect(writing.request == 400)
    #expect(writing.wrote(200) == nil)
    // 400 more would make a delivery of 600.
    #expect(writing.request == 200)
    #expect(writing.wrote(100).map(call) == Call(false, Array(pattern(1000)[300...])))
    #expect(writing.wrote(250) == nil)
    #expect(writing.end(.failure(EPIPE)).map(call) == [Call(true, Array(pattern(1000)[550...]), EPIPE)])
    var whole = OperationProgress.write(bytesData([1, 2]))
    #expect(whole.wrote(2).map(call) == Call(true, nil))
    var nothing = OperationProgress.write(.empty)
    #expect(nothing.request == 0)
    #expect(call(nothing.complete()) == Call(true, nil))
  }

  @Test("S122 a one-shot operation delivers everything in one call")
  func once() {
    var reading = OperationProgress.read(.max, .once)
    #expect(reading.ranDry() == nil)
    #expect(reading.read(bytesData(pattern(3 << 20))) == nil)
    #expect(reading.ranDry().map { $0.isLast && $0.data?.count == 3 << 20 } == true)
    var failing = OperationProgress.read(.max, .once)
    #expect(failing.read(bytesData([1])) == nil)
    #expect(failing.intervalPassed(strict: true) == nil)
    #expect(failing.end(.failure(EIO)).map(call) == [Call(true, [1], EIO)])
    var writing = OperationProgress.write(bytesData(pattern(3 << 20)), .once)
    #expect(writing.wrote(2 << 20) == nil)
    #expect(writing.wrote(1 << 20).map(call) == Call(true, nil))
    #expect(OperationProgress.read(.max).ranDryIsIgnored)
  }

  @Test("S127 intervals")
  func intervals() {
    var reading = OperationProgress.read(100, .pieces, marks(low: 10))
    #expect(reading.intervalPassed(strict: false) == nil)
    #expect(reading.intervalPassed(strict: true).map(call) == Call(false, []))
    #expect(reading.read(bytesData([1, 2])) == nil)
    #expect(reading.intervalPassed(strict: false) == nil)
    #expect(reading.intervalPassed(strict: true).map(call) == Call(false, [1, 2]))
    var writing = OperationProgress.write(bytesData([1, 2, 3]), .pieces, marks(low: 10))
    #expect(writing.wrote(1) == nil)
    #expect(writing.intervalPassed(strict: false) == nil)
    #expect(writing.intervalPassed(strict: true).map(call) == Call(false, [2, 3]))
  }
}

extension OperationProgress {
  fileprivate var ranDryIsIgnored: Bool {
    var copy = self
    _ = copy.read(bytesData([1]))
    return copy.ranDry() == nil
  }
}

extension OperationProgress.Delivery: Equatable {
  public static func == (a: Self, b: Self) -> Bool {
    a.isLast == b.isLast && a.error == b.error && a.data.map { Array($0) } == b.data.map { Array($0) }
  }
}

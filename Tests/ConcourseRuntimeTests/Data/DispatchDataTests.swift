import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

@Suite("DispatchData")
struct DispatchDataTests {
  // MARK: Making

  @Test("A copy is independent of the buffer it was made from")
  func copied() {
    var source = counting(100)
    let data = source.withUnsafeBytes { DispatchData(bytes: $0) }
    source[0] = 99
    #expect(data.count == 100)
    #expect(data.bytes == counting(100))
  }

  @Test("Data made without a copy uses the buffer itself")
  func notCopied() {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 3, alignment: 1)
    buffer.copyBytes(from: "abc".utf8)
    let freed = DispatchSemaphore(value: 0)
    var shown: DispatchData? = DispatchData(
      bytesNoCopy: UnsafeRawBufferPointer(buffer), deallocator: .custom(nil) { freed.signal() })
    #expect(shown?.text == "abc")
    #expect(shown?.addresses == [UnsafePointer(buffer.baseAddress!.assumingMemoryBound(to: UInt8.self))])
    shown = nil
    #expect(comes(freed))
    buffer.deallocate()
  }

  @Test("S115 all empty data is one object")
  func empty() {
    let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
    #expect(DispatchData.empty.object === DataObject.empty)
    #expect(DispatchData(bytes: nothing).object === DataObject.empty)
    #expect(DispatchData(bytesNoCopy: nothing).object === DataObject.empty)
    #expect(DispatchData(bytesNoCopy: nothing, deallocator: .unmap).object === DataObject.empty)
    let unused = UnsafeRawBufferPointer(start: malloc(1), count: 0)  // given back: the leak checker tells
    #expect(DispatchData(bytesNoCopy: unused).object === DataObject.empty)
    #expect(data("abc").subdata(in: 3..<3).object === DataObject.empty)
    #expect(DispatchData.empty.isEmpty && DispatchData.empty.count == 0)
  }

  // MARK: Joining

  @Test("S115 appending leaves earlier copies as they were")
  func valueSemantics() {
    var grown = data("abc")
    let before = grown
    grown.append(data("def"))
    let between = grown
    "ghi".utf8.withContiguousStorageIfAvailable { grown.append(UnsafeRawBufferPointer($0)) }
    #expect(before.text == "abc")
    #expect(between.text == "abcdef")
    #expect(grown.text == "abcdefghi")
  }

  @Test("S115 copies that grow in the same buffer do not see one another")
  func sharedRoom() {
    var first = DispatchData.empty
    first.append("abc")
    var second = first
    let third = first
    first.append("1")  // in the room behind "abc"
    second.append("2")  // where that room is taken
    first.append("3")
    second.append("4")
    #expect(first.text == "abc13")
    #expect(second.text == "abc24")
    #expect(third.text == "abc")
    #expect(first.addresses == third.addresses)
    #expect(first.regions.count == 1)
    var part = first.subdata(in: 1..<5)  // ends where the buffer ends
    part.append("5")
    #expect(part.text == "bc135" && part.regions.count == 1)
    var early = first.subdata(in: 0..<2)
    early.append("6")
    #expect(early.text == "ab6")
    #expect(first.text == "abc13")
  }

  @Test("S115 joining with empty data gives the other object")
  func joinWithEmpty() {
    let some = data("abc")
    var first = some
    first.append(.empty)
    #expect(first.object === some.object)
    var second = DispatchData.empty
    second.append(some)
    #expect(second.object === some.object)
    var third = some
    third.append(UnsafeRawBufferPointer(start: nil, count: 0))
    #expect(third.object === some.object)
  }

  @Test("S115 joining shares memory")
  func joinShares() {
    let (first, second) = (data("abc"), data("def"))
    var both = first
    both.append(second)
    #expect(both.regions == ["0:abc", "3:def"])
    #expect(both.addresses == first.addresses + second.addresses)
  }

  @Test("S115 data may be joined with itself, over and over")
  func doubled() {
    var doubled = data(regions: "ab", "c")
    for _ in 0..<10 { doubled.append(doubled) }
    #expect(doubled.count == 3 << 10)
    #expect(doubled.text == String(repeating: "abc", count: 1 << 10))
    doubled.expectSoundness()
    for _ in 0..<40 { doubled.append(doubled) }
    #expect(doubled.count == 3 << 50)
    #expect(doubled[3 << 49 | 1] == UInt8(ascii: "b"))
    let part = doubled.subdata(in: (3 << 49) - 4..<(3 << 49) + 4)
    #expect(part.text == "cabcabca")
  }

  @Test("Elements of any type are appended as their bytes")
  func elements() {
    var grown = data("x")
    [UInt16(0x4241), 0x4443].withUnsafeBufferPointer { grown.append($0) }
    #expect(grown.text == "xABCD")
  }

  // MARK: Cutting

  @Test("S115 subranges share memory and are clamped")
  func subdata() {
    let whole = data(regions: "abc", "def", "ghi")
    let part = whole.subdata(in: 1..<8)
    #expect(part.regions == ["0:bc", "2:def", "5:gh"])
    #expect(part.addresses == zip(whole.addresses, [1, 0, 0]).map { $0 + $1 })
    #expect(whole.subdata(in: 0..<9).object === whole.object)
    #expect(whole.subdata(in: 0..<100).object === whole.object)
    #expect(whole.subdata(in: 7..<100).text == "hi")
    #expect(whole.subdata(in: 9..<100).object === DataObject.empty)
    #expect(whole.subdata(in: 100..<200).object === DataObject.empty)
    #expect(whole.subdata(in: -2..<4).object === DataObject.empty)
    #expect(whole.subdata(in: 3..<6).regions == ["0:def"])
    #expect(part.subdata(in: 1..<3).subdata(in: 1..<2).text == "d")
  }

  // MARK: Regions

  @Test("S116 regions are visited in order until the visitor stops")
  func enumerate() {
    let whole = data(regions: "abc", "d", "efgh")
    #expect(whole.regions == ["0:abc", "3:d", "4:efgh"])
    var visited = 0
    whole.enumerateBytes { _, position, stop in
      visited += 1
      stop = position == 3
    }
    #expect(visited == 2)
    #expect(whole.object.visitRegions { _, start in start < 4 } == false)
    #expect(whole.object.visitRegions { _, _ in true })
    #expect(DispatchData.empty.object.visitRegions { _, _ in false })
    DispatchData.empty.enumerateBytes { _, _, _ in Issue.record("empty data was visited") }
  }

  @Test("S116 a visit may begin anywhere")
  func visitFrom() {
    let whole = data(regions: "abc", "d", "efgh")
    for position in 0...8 {
      var rest = ""
      whole.object.visitBytes(from: position) {
        #expect(!$0.isEmpty)
        rest += String(decoding: $0, as: UTF8.self)
        return true
      }
      #expect(rest == String("abcdefgh".dropFirst(position)))
    }
  }

  @Test("S117 the region at a position, and empty data past the end")
  func region() {
    let whole = data(regions: "abc", "d", "efgh")
    for (position, text, start) in [
      (0, "abc", 0), (2, "abc", 0), (3, "d", 3), (4, "efgh", 4), (7, "efgh", 4),
    ] {
      let (region, offset) = whole.region(location: position)
      #expect(region.text == text)
      #expect(offset == start)
    }
    for position in [8, 9, Int.max, -1] {
      let (region, offset) = whole.region(location: position)
      #expect(region.object === DataObject.empty)
      #expect(offset == 8)
    }
    let single = data("abc")
    #expect(single.region(location: 1).data.object === single.object)
    #expect(DispatchData.empty.region(location: 0).offset == 0)
  }

  // MARK: Mapping

  @Test("S118 data of one region maps to itself, other data to one copy")
  func map() throws {
    let single = data("abc")
    #expect(single.object.map() === single.object)
    let part = single.subdata(in: 1..<2)
    #expect(part.object.map() === part.object)
    var whole = data(regions: "abc", "def")
    let mapped = try #require(whole.object.map())
    #expect(DispatchData(object: mapped).regions == ["0:abcdef"])
    #expect(whole.object.map() === mapped)
    #expect(whole.regions.count == 2)
    let address = whole.withUnsafeBytes { (bytes: UnsafePointer<UInt8>) in bytes }
    #expect(UnsafeRawPointer(address) == mapped.start)
    whole.append(data("g"))  // in place: the copy is out of date
    #expect(whole.object.map() !== mapped)
    #expect(whole.withUnsafeBytes { (bytes: UnsafePointer<UInt8>) in bytes[6] } == UInt8(ascii: "g"))
    whole.append("h")
    #expect(whole.withUnsafeBytes { (bytes: UnsafePointer<UInt8>) in bytes[7] } == UInt8(ascii: "h"))
    #expect(DispatchData(object: mapped).text == "abcdef")
  }

  @Test("S118 empty data maps to nothing, without a trap")
  func mapEmpty() {
    #expect(DataObject.empty.map() === DataObject.empty)
    #expect(DataObject.empty.start == nil)
    #expect(DispatchData.empty.withUnsafeBytes { (_: UnsafePointer<Int64>) in 5 } == 5)
    #expect(throws: Thrown.self) {
      try DispatchData.empty.withUnsafeBytes { (_: UnsafePointer<UInt8>) in throw Thrown() }
    }
  }

  @Test("S118 mapping more than fits in memory is reported", .enabled(if: Sanitizer.allowsHugeRequests))
  func mapTooMuch() {
    var doubled = data(counting(1 << 20))
    for _ in 0..<40 { doubled.append(doubled) }
    #expect(doubled.object.map() == nil)
    #expect(doubled.count == 1 << 60)
  }

  // MARK: Old names

  @Test("The deprecated methods behave like the others")
  func deprecated() {
    let old = data("abcdef") as any OldForms
    #expect(old.madeFrom(counting(5)).bytes == counting(5))
    #expect(old.appended(counting(5)).bytes == Array("abcdef".utf8) + counting(5))
    #expect(old.copied(count: 4) == Array("abcd....".utf8))
    #expect(old.copied(count: 8) == Array("abcdef..".utf8))
    #expect(old.copied(from: 2..<5) == Array("cde.....".utf8))
    #expect(old.shown("xyz") == "xyz")
  }
}

struct Thrown: Error {}

extension DispatchData {
  mutating func append(_ text: String) {
    Array(text.utf8).withUnsafeBytes { append($0) }
  }
}

/// Calls deprecated functions without being deprecated.
private protocol OldForms {
  func madeFrom(_ bytes: [UInt8]) -> DispatchData
  func appended(_ bytes: [UInt8]) -> DispatchData
  func copied(count: Int) -> [UInt8]
  func copied(from range: Range<Int>) -> [UInt8]
  func shown(_ text: String) -> String
}

extension DispatchData: OldForms {
  @available(*, deprecated)
  func madeFrom(_ bytes: [UInt8]) -> DispatchData {
    bytes.withUnsafeBufferPointer { DispatchData(bytes: $0) }
  }

  @available(*, deprecated)
  func appended(_ bytes: [UInt8]) -> DispatchData {
    var grown = self
    grown.append(bytes, count: bytes.count)
    return grown
  }

  @available(*, deprecated)
  func copied(count: Int) -> [UInt8] {
    var target = [UInt8](repeating: UInt8(ascii: "."), count: 8)
    copyBytes(to: &target, count: count)
    return target
  }

  @available(*, deprecated)
  func copied(from range: Range<Int>) -> [UInt8] {
    var target = [UInt8](repeating: UInt8(ascii: "."), count: 8)
    copyBytes(to: &target, from: range)
    return target
  }

  @available(*, deprecated)
  func shown(_ text: String) -> String {
    let memory = malloc(text.utf8.count)!.assumingMemoryBound(to: UInt8.self)
    let buffer = UnsafeMutableBufferPointer(start: memory, count: text.utf8.count)
    _ = buffer.update(fromContentsOf: text.utf8)
    return DispatchData(bytesNoCopy: UnsafeBufferPointer(buffer)).text
  }
}

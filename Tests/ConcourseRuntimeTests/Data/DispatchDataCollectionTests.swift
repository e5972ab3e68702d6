import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

@Suite("DispatchData as a collection")
struct DispatchDataCollectionTests {
  private let whole = data(regions: "abc", "d", "efgh")

  @Test("S121 subscripts, positions and distances")
  func positions() {
    #expect(whole.startIndex == 0 && whole.endIndex == 8)
    #expect((0..<8).map { whole[$0] } == Array("abcdefgh".utf8))
    #expect(whole.index(after: 3) == 4 && whole.index(before: 3) == 2)
    #expect(whole.index(3, offsetBy: -2) == 1 && whole.distance(from: 6, to: 2) == -4)
    #expect(whole.index(3, offsetBy: 9, limitedBy: 8) == nil)
    #expect(Array(whole.indices) == Array(0..<8))
    #expect(whole.first == UInt8(ascii: "a") && whole.last == UInt8(ascii: "h"))
    #expect(Array(whole.reversed()) == Array("hgfedcba".utf8))
    #expect(whole.firstIndex(of: UInt8(ascii: "e")) == 4)
  }

  @Test("Iterators return each byte once, then always nil")
  func iterator() {
    var iterator = whole.makeIterator()
    var bytes: [UInt8] = []
    while let byte = iterator.next() { bytes.append(byte) }
    #expect(bytes == Array("abcdefgh".utf8))
    #expect(iterator.next() == nil)
    var second = DispatchDataIterator(_data: whole)
    _ = second.next()
    let copy = second
    #expect(Array(second) == Array("bcdefgh".utf8))
    #expect(Array(copy) == Array("bcdefgh".utf8))
    var none = DispatchData.empty.makeIterator()
    #expect(none.next() == nil)
    #expect(Array(whole) == bytes && Array(data("abc")) == Array("abc".utf8))
  }

  @Test("An iterator keeps its data alive and is not affected by appending")
  func iteratorOwns() {
    var grown = data(regions: "abc", "def")
    var iterator = grown.makeIterator()
    _ = iterator.next()
    grown.append("ghi")
    grown = .empty
    #expect(Array(iterator) == Array("bcdef".utf8))
  }

  @Test("S121 slices keep the positions of their base")
  func slices() {
    let slice = whole[2..<6]
    #expect(slice.startIndex == 2 && slice.endIndex == 6 && slice.count == 4)
    #expect(slice[2] == UInt8(ascii: "c") && slice[5] == UInt8(ascii: "f"))
    #expect(Array(slice) == Array("cdef".utf8))
    #expect(Array(slice[3..<5]) == Array("de".utf8))
    #expect(Array(whole[8..<8]) == [])
    #expect(slice.base.object === whole.object)
    #expect(Array(whole.dropFirst(6)) == Array("gh".utf8))
  }

  @Test("Data of one region is contiguous storage, other data is not")
  func contiguousStorage() {
    #expect(data("abc").withContiguousStorageIfAvailable { $0.count } == 3)
    #expect(DispatchData.empty.withContiguousStorageIfAvailable { $0.count } == 0)
    #expect(whole.withContiguousStorageIfAvailable { $0.count } == nil)
  }

  // MARK: Copying out

  @Test("S121 copying to raw buffers is clamped to the data")
  func copyRaw() {
    func target(_ body: (UnsafeMutableRawBufferPointer) -> Void) -> String {
      var bytes = [UInt8](repeating: UInt8(ascii: "."), count: 10)
      bytes.withUnsafeMutableBytes { body($0) }
      return String(decoding: bytes, as: UTF8.self)
    }
    #expect(target { whole.copyBytes(to: $0, count: 0) } == "..........")
    #expect(target { whole.copyBytes(to: $0, count: 5) } == "abcde.....")
    #expect(target { whole.copyBytes(to: $0, count: 10) } == "abcdefgh..")
    #expect(target { whole.copyBytes(to: $0, from: 2..<5) } == "cde.......")
    #expect(target { whole.copyBytes(to: $0, from: 6..<12) } == "gh........")
    #expect(target { whole.copyBytes(to: $0, from: 12..<14) } == "..........")
    #expect(target { whole.copyBytes(to: $0, from: -2..<4) } == "..........")
    whole.copyBytes(to: UnsafeMutableRawBufferPointer(start: nil, count: 0), count: 0)
  }

  @Test("S121 typed buffers take as many whole bytes as fit")
  func copyTyped() {
    func words(_ count: Int, from range: Range<Int>? = nil) -> (Int, [UInt32]) {
      var words = [UInt32](repeating: 0, count: count)
      let copied = words.withUnsafeMutableBufferPointer { whole.copyBytes(to: $0, from: range) }
      return (copied, words.map { UInt32(littleEndian: $0) })
    }
    #expect(words(1) == (4, [0x6463_6261]))
    #expect(words(3) == (8, [0x6463_6261, 0x6867_6665, 0]))
    #expect(words(2, from: 1..<7) == (6, [0x6564_6362, 0x0000_6766]))
    #expect(words(1, from: 2..<8) == (4, [0x6665_6463]))
    #expect(words(0, from: 2..<8) == (0, []))
    #expect(words(1, from: 8..<8) == (0, [0]))
    #expect(DispatchData.empty.copyBytes(to: UnsafeMutableBufferPointer<Int>(start: nil, count: 0)) == 0)
  }
}

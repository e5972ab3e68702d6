// O. Data as Foundation sees it.

import Testing

#if CONCOURSE
  import ConcourseFoundation
  import ConcourseEvents
  import FoundationEssentials
#else
  import Dispatch
  import Foundation
#endif

extension Conformance {
  @Suite("O. Data as Foundation's DataProtocol")
  struct FoundationDataTests {
    /// 0, 1, 2 … in regions of these lengths.
    private func data(_ lengths: [Int]) -> DispatchData {
      lengths.reduce(into: DispatchData.empty) { data, length in
        let bytes = (data.count..<data.count + length).map { UInt8(truncatingIfNeeded: $0) }
        bytes.withUnsafeBytes { data.append(DispatchData(bytes: $0)) }
      }
    }

    /// What every client of the protocol may do.
    private func bytes(of data: some DataProtocol) -> [UInt8] {
      data.regions.flatMap { region in region.withUnsafeBytes { Array($0) } }
    }

    @Test("regions are in order, at their positions, and contiguous")
    func regions() {
      let data = data([1000, 1, 2000])
      let regions = data.regions
      #expect(regions.map(\.startIndex) == [0, 1000, 1001])
      #expect(regions.map(\.endIndex) == [1000, 1001, 3001])
      #expect(regions.map(\.count) == [1000, 1, 2000])
      for region in regions {
        #expect(Array(region) == Array(data[region.startIndex..<region.endIndex]))
        #expect(region[region.endIndex - 1] == data[region.endIndex - 1])
        #expect(region.regions.count == 1 && region.regions.first!.startIndex == region.startIndex)
        let half = region[(region.startIndex + region.count / 2)...]
        #expect(half.withUnsafeBytes { Array($0) } == Array(half))
      }
      #expect(bytes(of: data) == Array(data))
      #expect(DispatchData.empty.regions.isEmpty)
    }

    @Test("a region keeps its bytes after the data has gone")
    func lifetime() {
      var regions = data([300, 400]).regions
      let last = regions.removeLast()
      regions = []
      #expect(last.withUnsafeBytes { $0.count == 400 && $0[0] == UInt8(truncatingIfNeeded: 300) })
    }

    @Test("Foundation's Data from data of many regions, and from parts of it")
    func data() {
      let data = data([1000, 1, 2000])
      #expect(Data(data) == Data(Array(data)))
      var joined = Data([7])
      joined.append(contentsOf: data)
      joined.append(contentsOf: data[999..<1002])
      #expect(joined.count == 3005 && Array(joined.suffix(3)) == Array(data[999..<1002]))
      #expect(bytes(of: data[500..<1500]) == Array(data[500..<1500]))
    }

    @Test("bytes are found and copied across regions")
    func search() {
      let data = data([10, 20])
      let bytes: [UInt8] = [9, 10, 11]
      #expect(data.firstRange(of: Data(bytes)) == 9..<12)
      #expect(data.lastRange(of: Data(bytes)) == 9..<12)
      var copied = [UInt8](repeating: 0, count: 8)
      let count: Int = copied.withUnsafeMutableBytes { data.copyBytes(to: $0, from: 7...) }
      #expect(count == 8 && copied == Array(7..<15))
    }
  }
}

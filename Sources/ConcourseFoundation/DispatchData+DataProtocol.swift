public import ConcourseEvents
public import FoundationEssentials

/// Foundation's view of data. `Data(data)`, `append(contentsOf: data)` and other users of `DataProtocol` copy the bytes
/// region by region, without joining the regions first.
extension DispatchData: DataProtocol {
  /// The regions in order. O(n log n) in the number of regions; copies no bytes.
  public var regions: [Region] {
    var regions: [Region] = []
    var position = 0
    while position < count {
      let region = Region(region(location: position).data, at: position)
      regions.append(region)
      position = region.endIndex
    }
    return regions
  }

  /// A contiguous part of a data object, which it keeps alive.
  ///
  /// Positions are those of the whole data.
  public struct Region: DataProtocol, ContiguousBytes, Sendable {
    /// The region's bytes.
    private let data: DispatchData

    /// The position of the first byte.
    public let startIndex: DispatchData.Index

    init(_ data: DispatchData, at position: Int) {
      self.data = data
      startIndex = position
    }

    /// The position after the last byte.
    public var endIndex: DispatchData.Index { startIndex + data.count }

    /// The byte at a position. O(1). Traps if the position is outside the region.
    public subscript(position: DispatchData.Index) -> UInt8 { data[position - startIndex] }

    /// The region itself.
    public var regions: CollectionOfOne<Region> { CollectionOfOne(self) }

    /// An iterator at the first byte.
    public func makeIterator() -> DispatchDataIterator { data.makeIterator() }

    /// Calls `body` with the bytes. The pointer is valid until `body` returns.
    public func withUnsafeBytes<Result>(
      _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result {
      try withContiguousStorageIfAvailable { try body(UnsafeRawBufferPointer($0)) }!
    }

    /// Calls `body` with the bytes. Never nil, because a region is contiguous.
    public func withContiguousStorageIfAvailable<Result>(
      _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
    ) rethrows -> Result? {
      try data.withContiguousStorageIfAvailable(body)
    }
  }
}

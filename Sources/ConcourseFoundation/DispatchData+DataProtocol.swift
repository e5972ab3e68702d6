public import ConcourseRuntime
public import FoundationEssentials

/// Foundation's view of data: `Data(data)`, `append(contentsOf: data)` and whatever else takes a `DataProtocol` copy its
/// bytes region by region, without joining them first.
extension DispatchData: DataProtocol {
  /// The regions in order. O(n log n) in their number; no bytes are copied.
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

  /// A part of some data whose bytes lie one after the other in memory. It keeps them alive.
  ///
  /// The positions are those that the bytes have in the whole data.
  public struct Region: DataProtocol, ContiguousBytes, Sendable {
    /// The region as data of its own.
    private let data: DispatchData

    /// The position of the first byte in the whole data.
    public let startIndex: DispatchData.Index

    init(_ data: DispatchData, at position: Int) {
      self.data = data
      startIndex = position
    }

    /// The position behind the last byte.
    public var endIndex: DispatchData.Index { startIndex + data.count }

    /// The byte at a position of the whole data. O(1). Traps when the region does not have the position.
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

    /// Calls `body` with the bytes, which are always in one piece.
    public func withContiguousStorageIfAvailable<Result>(
      _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
    ) rethrows -> Result? {
      try data.withContiguousStorageIfAvailable(body)
    }
  }
}

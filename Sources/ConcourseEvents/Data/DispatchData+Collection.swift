extension DispatchData {
  /// 0.
  public var startIndex: DispatchData.Index { 0 }

  /// `count`.
  public var endIndex: DispatchData.Index { count }

  /// The byte at a position. O(log n). Traps when the position is outside the data.
  public subscript(index: DispatchData.Index) -> UInt8 {
    if index < 0 || index >= count {
      Trap.clientBug(606, "DispatchData[\(index)]: the data has the positions 0..<\(count)")
    }
    // SAFETY: the position is within the region found for it.
    if let start = object.start { return start.load(fromByteOffset: index, as: UInt8.self) }
    let (piece, start) = object.region(at: index)
    return piece.start!.load(fromByteOffset: index - start, as: UInt8.self)
  }

  /// The bytes of a range, under the same positions. O(1). Traps when the range is not within the data. `subdata` makes
  /// data with positions of its own.
  public subscript(bounds: Range<Int>) -> Slice<DispatchData> {
    if bounds.lowerBound < 0 || bounds.upperBound > count {
      Trap.clientBug(607, "DispatchData[\(bounds)]: the data has the range 0..<\(count)")
    }
    return Slice(base: self, bounds: bounds)
  }

  /// One less.
  public func index(before i: DispatchData.Index) -> DispatchData.Index { i - 1 }

  /// One more.
  public func index(after i: DispatchData.Index) -> DispatchData.Index { i + 1 }

  /// The sum.
  public func index(_ i: DispatchData.Index, offsetBy distance: Int) -> DispatchData.Index { i + distance }

  /// The difference.
  public func distance(from start: DispatchData.Index, to end: DispatchData.Index) -> Int { end - start }

  /// An iterator at the first byte.
  public func makeIterator() -> DispatchData.Iterator { DispatchDataIterator(_data: self) }

  /// Calls `body` with all bytes if they are one region, else returns nil. O(1).
  /// - Parameter body: runs on the caller; the buffer is valid until it returns.
  public func withContiguousStorageIfAvailable<Result>(
    _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
  ) rethrows -> Result? {
    guard object.level == 0 else { return nil }
    defer { withExtendedLifetime(self) {} }
    // SAFETY: memory is only ever read as bytes here, and lives as long as the object.
    return try body(object.region.assumingMemoryBound(to: UInt8.self))
  }
}

/// Iterates over the bytes of some data from the first to the last.
///
/// It keeps the data alive. A byte costs O(1), and finding the regions costs O(n) in all.
public struct DispatchDataIterator: IteratorProtocol, Sequence {
  /// A byte.
  public typealias Element = UInt8

  private let data: DispatchData
  /// The bytes of the current region that have not been returned.
  @usableFromInline var current: UnsafePointer<UInt8>?
  @usableFromInline var end: UnsafePointer<UInt8>?
  /// The node of the current region, and the region's index there; nil for data of one region.
  private var node: DataTree?
  private var index = 0
  /// The position of the first byte behind the current region.
  private var position = 0

  /// An iterator at the first byte of `_data`.
  public init(_data: DispatchData) { data = _data }

  /// The next byte, or nil after the last.
  @inlinable
  public mutating func next() -> DispatchData.Element? {
    if current == end && !enterNextRegion() { return nil }
    // SAFETY: the pointer is before `end`, in a region that `data` keeps.
    let byte = current!.pointee
    current = current! + 1
    return byte
  }

  @usableFromInline
  mutating func enterNextRegion() -> Bool {
    guard position < data.count else { return false }
    index += 1
    if node == nil || index == node!.pieces.count { (node, index) = data.object.node(at: position) }
    let region = node?.pieces[index].region ?? data.object.region
    // SAFETY: memory is only ever read as bytes here, and lives as long as `data`.
    current = region.baseAddress!.assumingMemoryBound(to: UInt8.self)
    end = current! + region.count
    position += region.count
    return true
  }
}

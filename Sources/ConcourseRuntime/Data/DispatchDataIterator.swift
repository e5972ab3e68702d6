/// Goes through the bytes of some data from the first to the last.
///
/// It keeps the data alive. All bytes cost O(1), and finding their regions costs O(n) in all.
public struct DispatchDataIterator: IteratorProtocol, Sequence {
  /// What it returns.
  public typealias Element = UInt8

  private let data: DispatchData
  /// The bytes of the current region that have not been returned.
  @usableFromInline var current: UnsafePointer<UInt8>?
  @usableFromInline var end: UnsafePointer<UInt8>?
  /// The node of the current region and which of its pieces that is; nil for data of one region.
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

/// The object behind a `DispatchData`, and a data object of the C interface: a run of bytes that never changes, in one
/// region of memory or in many.
///
/// There are three kinds: a `DataBuffer` owns memory, a `DataView` is a part of one buffer, and a `DataTree` is a
/// sequence of regions. Identity matters: joining with empty data gives the other object, the whole range of an
/// object is the object itself, and there is one empty object.
///
/// The holder of the only reference may change an object in place (`append`); no other code can observe that.
// SAFETY: a field is changed only by the holder of the only reference.
package class DataObject: DispatchObject, @unchecked Sendable {
  /// How many levels of tree nodes stand above the regions; 0 for an object of one region.
  final let level: Int
  /// The first byte of an object of one region. Nil for trees and for the empty object.
  final var start: UnsafeRawPointer?
  /// How many bytes there are.
  final var count: Int

  init(level: Int, start: UnsafeRawPointer?, count: Int) {
    self.level = level
    self.start = start
    self.count = count
    super.init(kind: .data)
  }

  /// The object without bytes. There is only this one.
  package static let empty: DataObject = DataBuffer.makeEmpty()

  /// The object as a part of a tree.
  var piece: DataPiece { Trap.runtimeBug("a data object of no kind") }

  /// This object as a tree; `level` must not be 0.
  @inline(__always)
  final var asTree: DataTree {
    // SAFETY: `DataTree`'s initializer alone sets another level than 0.
    unsafeDowncast(self, to: DataTree.self)
  }

  /// The bytes of an object of one region, or of the empty one.
  final var region: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }
}

/// A part of one buffer, such as a subrange.
final class DataView: DataObject, @unchecked Sendable {  // SAFETY: as for `DataObject`.
  let owner: DataBuffer

  init(of owner: DataBuffer, start: UnsafeRawPointer, count: Int) {
    self.owner = owner
    super.init(level: 0, start: start, count: count)
  }

  override var piece: DataPiece { DataPiece(owner: owner, start: start, count: count) }
}

/// An element of a tree node: a region of a buffer in a node of level 1, a node below in all others.
struct DataPiece {
  /// A `DataBuffer` or a `DataTree`, which keeps the bytes.
  var owner: DataObject
  /// The first byte of a region; nil for a node.
  var start: UnsafeRawPointer?
  var count: Int

  /// The bytes of a region.
  var region: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

  /// The piece as an object of its own.
  var object: DataObject {
    guard let start, start != owner.start || count != owner.count else { return owner }
    // SAFETY: a piece with a start is a region, and regions are owned by buffers.
    return DataView(of: unsafeDowncast(owner, to: DataBuffer.self), start: start, count: count)
  }

  /// A part of a region, as an object of its own.
  func part(from offset: Int, count: Int) -> DataObject {
    DataPiece(owner: owner, start: start! + offset, count: count).object
  }
}

// MARK: - Regions, parts and contiguous copies

extension DataObject {
  /// The region that contains a position, which must be in range, and the position of its first byte.
  /// O(log n) in the number of regions.
  final func region(at position: Int) -> (region: DataPiece, start: Int) {
    guard level > 0 else { return (piece, 0) }
    let (node, index, start) = asTree.find(position)
    return (node.pieces[index], start)
  }

  /// The node with the region that contains a position, which must be in range, and the index of that region's piece.
  /// No node for data of one region.
  final func node(at position: Int) -> (node: DataTree?, index: Int) {
    guard level > 0 else { return (nil, 0) }
    let (node, index, _) = asTree.find(position)
    return (node, index)
  }

  /// Visits the regions in order, beginning with the one that contains `position`.
  /// - Parameter body: called with a region and the position of its first byte; returns false to end the visit.
  /// - Returns: false if the visit was ended early.
  @discardableResult
  final func visitRegions(
    from position: Int = 0, _ body: (DataPiece, Int) throws -> Bool
  ) rethrows -> Bool {
    guard position < count else { return true }
    guard level > 0 else { return try body(piece, 0) }
    return try asTree.visitRegions(from: position, start: 0, body)
  }

  /// Visits the bytes from `position` on, region by region and without allocating.
  /// - Parameter body: called with a region, or with the rest of the first one; returns false to end the visit.
  /// - Returns: false if the visit was ended early.
  @discardableResult
  final func visitBytes(
    from position: Int = 0, _ body: (UnsafeRawBufferPointer) throws -> Bool
  ) rethrows -> Bool {
    try visitRegions(from: position) { piece, start in
      // The cut is at the position, in the first region; later ones start behind it.
      try body(UnsafeRawBufferPointer(rebasing: piece.region[max(0, position - start)...]))
    }
  }

  /// Copies `range`, which must be in range, to `target`.
  final func copy(_ range: Range<Int>, to target: UnsafeMutableRawPointer) {
    var copied = 0
    guard !range.isEmpty else { return }
    visitBytes(from: range.lowerBound) { bytes in
      let fitting = min(bytes.count, range.count - copied)
      (target + copied).copyMemory(from: bytes.baseAddress!, byteCount: fitting)
      copied += fitting
      return copied < range.count
    }
  }

  /// The bytes of `range`, clamped to the object. The whole range is this object; an empty range is the empty object.
  /// O(log n) in the number of regions.
  final func subrange(_ range: Range<Int>) -> DataObject {
    guard range.lowerBound >= 0 && range.lowerBound < count && !range.isEmpty else { return .empty }
    let upper = min(range.upperBound, count)
    if range.lowerBound == 0 && upper == count { return self }
    guard level > 0 else { return piece.part(from: range.lowerBound, count: upper - range.lowerBound) }
    return asTree.part(range.lowerBound..<upper)
  }

  /// The same bytes as one region: this object if it has one region, else a copy that is made once and kept with this
  /// object. The bytes keep their address as long as the result lives.
  /// - Returns: nil when the system has no memory for the copy.
  final func map() -> DataObject? {
    level == 0 ? self : asTree.mapTree()
  }
}

extension DataTree {
  fileprivate func find(_ position: Int) -> (node: DataTree, index: Int, start: Int) {
    var node = self
    var start = 0
    while true {
      var index = 0
      while position - start >= node.pieces.slot(index).count {
        start += node.pieces.slot(index).count
        index += 1
      }
      if node.level == 1 { return (node, index, start) }
      node = node.pieces[index].owner.asTree
    }
  }

  fileprivate func visitRegions(
    from position: Int, start: Int, _ body: (DataPiece, Int) throws -> Bool
  ) rethrows -> Bool {
    var start = start
    for index in 0..<pieces.count {
      let count = pieces.slot(index).count
      if position < start + count {
        let piece = pieces[index]
        let goesOn =
          level == 1
          ? try body(piece, start)
          : try piece.owner.asTree.visitRegions(from: position, start: start, body)
        if !goesOn { return false }
      }
      start += count
    }
    return true
  }

  /// A part that is neither empty nor the whole: the parts of the first and the last piece touched, and the whole
  /// pieces between them in a node of their own.
  fileprivate func part(_ range: Range<Int>) -> DataObject {
    var start = 0
    var first = DataObject.empty
    var whole = DataPieces(room: pieces.count)
    var last = DataObject.empty
    for index in 0..<pieces.count where start < range.upperBound {
      let piece = pieces[index]
      let end = start + piece.count
      let touched = range.clamped(to: start..<end)
      if touched.count == piece.count {
        whole.append(piece)
      } else if !touched.isEmpty {
        let inside = touched.lowerBound - start..<touched.upperBound - start
        let cut =
          level == 1
          ? piece.part(from: inside.lowerBound, count: inside.count)
          : piece.owner.asTree.part(inside)
        if touched.lowerBound > start { first = cut } else { last = cut }
      }
      start = end
    }
    let middle: DataObject
    if whole.count == 0 {
      middle = .empty
    } else if whole.count == 1 {
      middle = whole[0].object
    } else {
      middle = DataTree(level: level, pieces: whole)
    }
    return .join(.join(first, isOwned: false, middle), isOwned: false, last)
  }

  fileprivate func mapTree() -> DataObject? {
    // ORDERING: acquiring; pairs with the releasing side of the exchange below; publishes the copy.
    if let raw = mapped.load(ordering: .acquiring) { return buffer(raw) }
    guard let copy = DataBuffer.make(count: count, capacity: count, fill: { self.copy(0..<count, to: $0) })
    else { return nil }
    let raw = Unmanaged.passRetained(copy).toOpaque()
    // ORDERING: releasing; pairs with the acquiring load above and, for the loser of a race, with this
    // operation's own acquiring side.
    let (exchanged, winner) = mapped.compareExchange(
      expected: nil, desired: UnsafeRawPointer(raw), ordering: .acquiringAndReleasing)
    if exchanged { return copy }
    // SAFETY: the reference retained above, which no other thread has seen.
    Unmanaged<DataBuffer>.fromOpaque(raw).release()
    return buffer(winner!)
  }

  private func buffer(_ raw: UnsafeRawPointer) -> DataBuffer {
    // SAFETY: only retained buffers are stored in `mapped`.
    Unmanaged<DataBuffer>.fromOpaque(raw).takeUnretainedValue()
  }
}

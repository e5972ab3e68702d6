/// A sequence of regions as a B-tree: every node but the root has 8 to 16 pieces, all regions hang at the
/// same depth, and each piece carries its length. Trees share nodes.
///
/// Depth grows with the logarithm of the number of regions (7 levels for 2 million of them, 21 for as
/// many as there can be), so functions that recurse over levels need little stack, the release of a tree
/// among them.
final class DataTree: DataObject, @unchecked Sendable {  // SAFETY: as for `DataObject`; atomics.
  /// The most pieces that a node keeps, and the fewest for all but a root.
  static var most: Int { 16 }
  static var least: Int { 8 }

  // Unchecked, since nobody changes a node that somebody else may look at.
  @exclusivity(unchecked) private(set) var pieces: DataPieces
  /// One reference to the same bytes in one buffer, once somebody has asked for that; see `map`.
  let mapped = Atomic<UnsafeRawPointer?>(nil)

  /// - Parameter level: 1 when the pieces are regions, else one more than the level of the pieces.
  init(level: Int, pieces: consuming DataPieces) {
    let size = pieces.size
    self.pieces = pieces
    super.init(level: level, start: nil, count: size)
  }

  private init(copying other: DataTree) {
    pieces = DataPieces(copying: other.pieces, more: 1)
    super.init(level: other.level, start: nil, count: other.count)
  }

  deinit { forgetMapping() }

  override var piece: DataPiece { DataPiece(owner: self, start: nil, count: count) }

  /// Another node with the same pieces, for one who is going to change it.
  func copy() -> DataTree { DataTree(copying: self) }

  /// Drops the one-buffer form.
  private func forgetMapping() {
    // ORDERING: relaxed; the caller holds the only reference to the node.
    guard let raw = mapped.load(ordering: .relaxed) else { return }
    mapped.store(nil, ordering: .relaxed)
    // SAFETY: `map` put a retained buffer there.
    Unmanaged<DataBuffer>.fromOpaque(raw).release()
  }

  /// The first or the last end of a tree.
  enum End { case first, last }

  // MARK: Changing a node that nobody else sees

  /// Adds a piece at one end. The caller holds the only reference to this node.
  /// - Parameters:
  ///   - level: the level of the piece, at most that of this node; 0 for a region.
  ///   - end: where to add it.
  /// - Returns: a second node of this node's level, if one does not suffice, to stand beside it at `end`.
  func add(_ piece: DataPiece, of level: Int, at end: End) -> DataTree? {
    if level == self.level { return absorb(piece.owner.asTree, at: end) }
    forgetMapping()
    count += piece.count
    if level == self.level - 1 && (level == 0 || piece.owner.asTree.pieces.count >= DataTree.least) {
      insert(piece, at: end)
    } else {
      let index = end == .last ? pieces.count - 1 : 0
      let child = pieces.ownNode(at: index)
      let beside = child.add(piece, of: level, at: end)
      pieces.setCount(child.count, at: index)
      if let beside { insert(beside.piece, at: end) }
    }
    return splitOff(at: end)
  }

  /// Shows `count` more bytes of the last region's buffer. The caller holds the only reference to this
  /// node and has claimed the bytes.
  func growLastRegion(by count: Int) {
    forgetMapping()
    self.count += count
    let last = pieces.count - 1
    if level > 1 { pieces.ownNode(at: last).growLastRegion(by: count) }
    pieces.setCount(pieces.slot(last).count + count, at: last)
  }

  /// Takes over the pieces of a node of the same level, or some of them, or lets it stand beside.
  private func absorb(_ other: DataTree, at end: End) -> DataTree? {
    let sum = pieces.count + other.pieces.count
    if sum > DataTree.most && min(pieces.count, other.pieces.count) >= DataTree.least { return other }
    forgetMapping()
    var others = DataPieces(copying: other.pieces, more: 0)
    let fitsAll = sum <= DataTree.most
    switch end {
    case .last: pieces.level(with: &others, first: fitsAll ? sum : sum / 2)
    case .first: others.level(with: &pieces, first: fitsAll ? 0 : sum / 2)
    }
    count = pieces.size
    return fitsAll ? nil : DataTree(level: level, pieces: others)
  }

  private func insert(_ piece: DataPiece, at end: End) {
    switch end {
    case .first: pieces.prepend(piece)
    case .last: pieces.append(piece)
    }
  }

  /// Moves half of the pieces to a new node if there are too many.
  private func splitOff(at end: End) -> DataTree? {
    guard pieces.count > DataTree.most else { return nil }
    let half = pieces.count / 2
    var others = DataPieces(room: pieces.count - half)
    switch end {
    case .last: pieces.level(with: &others, first: half)
    case .first: others.level(with: &pieces, first: half)
    }
    let beside = DataTree(level: level, pieces: others)
    count -= beside.count
    return beside
  }
}

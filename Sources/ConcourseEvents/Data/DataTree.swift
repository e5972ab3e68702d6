internal import CConcourse

/// A sequence of regions as a B-tree: every node but the root has 8 to 16 pieces, all regions are at the same depth,
/// and each piece has its length. Trees share nodes.
///
/// The depth grows with the logarithm of the number of regions: 7 levels for 2 million regions, and never more than 21.
/// So recursion over levels needs little stack, even when a tree is released.
final class DataTree: DataObject, @unchecked Sendable {  // SAFETY: as for `DataObject`; atomics.
  /// The most pieces that a node keeps, and the fewest for all but a root.
  static var most: Int { 16 }
  static var least: Int { 8 }

  // Unchecked: only the holder of a node's only reference changes it.
  @exclusivity(unchecked) private(set) var pieces: DataPieces
  /// A reference to a buffer with the same bytes, once `map` has made it.
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

  /// A node with the same pieces, for the caller to change.
  func copy() -> DataTree { DataTree(copying: self) }

  /// Releases the copy that `map` made.
  private func forgetMapping() {
    // ORDERING: relaxed; the caller holds the only reference to the node.
    guard let raw = mapped.load(ordering: .relaxed) else { return }
    mapped.store(nil, ordering: .relaxed)
    // SAFETY: `map` put a retained buffer there.
    Unmanaged<DataBuffer>.fromOpaque(raw).release()
  }

  /// The first or the last end of a tree.
  enum End { case first, last }

  // MARK: Changes. The caller holds the only reference to the node.

  /// Adds a piece at one end.
  /// - Parameters:
  ///   - level: the level of the piece, at most that of this node; 0 for a region.
  ///   - end: where to add it.
  /// - Returns: if the pieces do not fit into this node, a second node of its level, which belongs beside it at `end`.
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

  /// Shows `count` more bytes of the last region's buffer, which the caller has claimed.
  func growLastRegion(by count: Int) {
    forgetMapping()
    self.count += count
    let last = pieces.count - 1
    if level > 1 { pieces.ownNode(at: last).growLastRegion(by: count) }
    pieces.setCount(pieces.slot(last).count + count, at: last)
  }

  /// Takes over the pieces of a node of the same level, or some of them, or leaves it beside this node.
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

// MARK: - Joining and appending
//
// Nodes are changed in place when one reference is left. Reference counts order the changes after what other threads
// did through their references. The thread sanitizer does not see reference counts, so its checks are off here.

extension DataObject {
  /// The bytes of `first` followed by those of `second`, without copying any. O(log n) in the number of
  /// regions.
  static func join(_ first: DataObject, _ second: DataObject) -> DataObject {
    join(first, isOwned: false, second)
  }

  /// As `join`. O(1) on average when `isOwned` and `second` is small: repeated appending is linear.
  /// - Parameter isOwned: whether the caller holds the only reference to `first`, which may then be changed and
  ///   returned.
  static func join(_ first: DataObject, isOwned: Bool, _ second: DataObject) -> DataObject {
    if second.count == 0 { return first }
    if first.count == 0 { return second }
    checkLength(first, adding: second.count)
    concourse_race_check_off()
    defer { concourse_race_check_on() }
    if first.level == 0 && second.level == 0 {
      return DataTree(level: 1, pieces: DataPieces(first.piece, second.piece))
    }
    if first.level >= second.level {
      let tree = isOwned ? first.asTree : first.asTree.copy()
      guard let beside = tree.add(second.piece, of: second.level, at: .last) else { return tree }
      return DataTree(level: tree.level + 1, pieces: DataPieces(tree.piece, beside.piece))
    }
    let tree = second.asTree.copy()
    guard let beside = tree.add(first.piece, of: first.level, at: .first) else { return tree }
    return DataTree(level: tree.level + 1, pieces: DataPieces(beside.piece, tree.piece))
  }

  /// The bytes of `first` followed by a copy of `bytes`, which must not be empty.
  ///
  /// Small appends share buffers that grow with the data, so many of them cost little more than a copy of each byte.
  /// - Parameter isOwned: as for `join`.
  static func append(
    _ first: DataObject, isOwned: Bool, _ bytes: UnsafeRawBufferPointer
  ) -> DataObject? {
    checkLength(first, adding: bytes.count)
    if first.count > 0 {
      let last = first.lastRegion
      // SAFETY: regions are owned by buffers.
      let buffer = unsafeDowncast(last.owner, to: DataBuffer.self)
      if buffer.extend(from: last.start! + last.count, by: bytes) {
        return first.showing(bytes.count, of: buffer, isOwned: isOwned)
      }
    }
    let room = min(max(first.count, smallestRoom), largestRoom)
    let capacity = bytes.count > room / 4 ? bytes.count : room
    guard
      let buffer = DataBuffer.make(
        count: bytes.count, capacity: capacity,
        fill: { $0.copyMemory(from: bytes.baseAddress!, byteCount: bytes.count) })
    else { return nil }
    return join(first, isOwned: isOwned, buffer)
  }

  /// The least capacity of a buffer for appended bytes…
  private static var smallestRoom: Int { 64 }
  /// …and the most, unless one append needs more.
  private static var largestRoom: Int { DataBuffer.largestShared }

  /// The same with `count` more bytes of the last region's buffer.
  private final func showing(_ count: Int, of buffer: DataBuffer, isOwned: Bool) -> DataObject {
    concourse_race_check_off()
    defer { concourse_race_check_on() }
    if level > 0 {
      let tree = isOwned ? asTree : asTree.copy()
      tree.growLastRegion(by: count)
      return tree
    }
    guard isOwned else { return DataView(of: buffer, start: start!, count: self.count + count) }
    self.count += count
    return self
  }

  /// The last region of data that is not empty.
  private final var lastRegion: DataPiece {
    guard level > 0 else { return piece }
    var node = asTree
    while node.level > 1 { node = node.pieces[node.pieces.count - 1].owner.asTree }
    return node.pieces[node.pieces.count - 1]
  }

  private static func checkLength(_ first: DataObject, adding count: Int) {
    if first.count.addingReportingOverflow(count).overflow {
      Trap.clientBug(
        602,
        "appending \(count) bytes to a DispatchData of \(first.count): the length exceeds Int.max")
    }
  }
}

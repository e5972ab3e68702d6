internal import CConcourse

// Longer data from shorter data.
//
// Nodes are changed in place when one reference is left. What other threads did
// through theirs came before they dropped them, and reference counts keep that order; but the thread
// sanitizer does not see the counts, so it is told to overlook these changes.

extension DataObject {
  /// The bytes of `first` followed by those of `second`, without copying any. O(log n) in the number of
  /// regions.
  static func join(_ first: DataObject, _ second: DataObject) -> DataObject {
    join(first, isOwned: false, second)
  }

  /// As `join`. O(1) on average when `isOwned` and `second` is small: repeated appending is linear.
  /// - Parameter isOwned: whether the caller holds the only reference to `first`, which may then be
  ///   changed and returned.
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
  /// Small appends share buffers that grow with the data, so a long row of them costs a copy of each
  /// byte and little else.
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

  /// Buffers for appended bytes are at least this long, unless one append needs more…
  private static var smallestRoom: Int { 64 }
  /// …and leave no more than this unused.
  private static var largestRoom: Int { 64 << 10 }

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
        "appending \(count) bytes to a DispatchData of \(first.count): the length exceeds Int.max")
    }
  }
}

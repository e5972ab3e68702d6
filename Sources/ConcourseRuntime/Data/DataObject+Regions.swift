// Finding regions by position, and visiting them in order.

extension DataObject {
  /// The region that contains a position, which must be in range, and the position of its first byte.
  /// O(log n) in the number of regions.
  final func region(at position: Int) -> (region: DataPiece, start: Int) {
    guard level > 0 else { return (piece, 0) }
    let (node, index, start) = asTree.find(position)
    return (node.pieces[index], start)
  }

  /// The node that has the region with a position, which must be in range, and which of its pieces the
  /// region is. No node when there is one region only.
  final func node(at position: Int) -> (node: DataTree?, index: Int) {
    guard level > 0 else { return (nil, 0) }
    let (node, index, _) = asTree.find(position)
    return (node, index)
  }

  /// Visits the regions in order, from the one that contains `position` on, each once.
  /// - Parameter body: called with a region and the position of its first byte; returning false ends
  ///   the visit.
  /// - Returns: whether the visit was not ended early.
  @discardableResult
  final func visitRegions(
    from position: Int = 0, _ body: (DataPiece, Int) throws -> Bool
  ) rethrows -> Bool {
    guard position < count else { return true }
    guard level > 0 else { return try body(piece, 0) }
    return try asTree.visitRegions(from: position, start: 0, body)
  }

  /// Visits the bytes from `position` on, region by region, in order and without allocating.
  /// - Parameter body: called with a region, or what is left of the first one; returning false ends
  ///   the visit.
  /// - Returns: whether the visit was not ended early.
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
}

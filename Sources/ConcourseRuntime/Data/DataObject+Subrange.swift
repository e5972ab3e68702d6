// Parts of data, without copying.

extension DataObject {
  /// The bytes of `range`, clamped to what there is. The whole range is this object; a range without
  /// bytes is the empty object. O(log n) in the number of regions.
  final func subrange(_ range: Range<Int>) -> DataObject {
    guard range.lowerBound >= 0 && range.lowerBound < count && !range.isEmpty else { return .empty }
    let upper = min(range.upperBound, count)
    if range.lowerBound == 0 && upper == count { return self }
    guard level > 0 else { return piece.part(from: range.lowerBound, count: upper - range.lowerBound) }
    return asTree.part(range.lowerBound..<upper)
  }
}

extension DataTree {
  /// A proper part that is not empty: what the first and the last piece touched give, with the whole
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
}

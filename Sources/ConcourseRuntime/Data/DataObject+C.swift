// Data for the C interface, which deals in objects. Where Swift's interface ends the process for want of memory,
// these return nil: the C functions have a result that says so.

extension DataObject {
  /// How many bytes there are.
  package final var size: Int { count }

  /// A copy of bytes, at least one.
  /// - Returns: nil when the system has no memory.
  package static func copying(_ bytes: UnsafeRawBufferPointer) -> DataObject? {
    DataBuffer.make(count: bytes.count, capacity: bytes.count) {
      $0.copyMemory(from: bytes.baseAddress!, byteCount: bytes.count)
    }
  }

  /// The bytes themselves; traps for those that `deallocator` could not give back.
  /// - Parameter deallocator: nil if the bytes are nobody's to give back.
  package static func adopting(
    _ bytes: UnsafeRawBufferPointer, _ deallocator: DispatchData.Deallocator?, _ function: StaticString
  ) -> DataObject {
    deallocator?.check(bytes, function)
    if bytes.count > 0 { return DataBuffer(adopting: bytes, deallocator: deallocator) }
    deallocator?.release(bytes)
    return .empty
  }

  /// Bytes that the caller is going to write before anybody reads them, and where.
  /// - Returns: nil when the system has no memory.
  package static func allocating(
    _ count: Int
  ) -> (object: DataObject, bytes: UnsafeMutableRawPointer?)? {
    guard count > 0 else { return (.empty, nil) }
    var bytes: UnsafeMutableRawPointer?
    return DataBuffer.make(count: count, capacity: count, fill: { bytes = $0 }).map { ($0, bytes) }
  }

  /// The same bytes in one place: see `map`.
  package final func contiguous() -> (object: DataObject, bytes: UnsafeRawPointer?)? {
    map().map { ($0, $0.start) }
  }

  /// The bytes of both, one after the other.
  package static func concatenating(_ first: DataObject, _ second: DataObject) -> DataObject {
    join(first, second)
  }

  /// `length` bytes from `offset` on, or as many as there are.
  package final func part(from offset: UInt, length: UInt) -> DataObject {
    guard offset < UInt(count) else { return .empty }
    return subrange(Int(offset)..<Int(offset + min(length, UInt(count) - offset)))
  }

  /// The region that contains a position, and the position of its first byte; nothing, and the end, for a position
  /// behind it.
  package final func regionObject(at position: UInt) -> (object: DataObject, start: Int) {
    guard position < UInt(count) else { return (.empty, count) }
    guard level > 0 else { return (self, 0) }
    let (piece, start) = region(at: Int(position))
    return (piece.object, start)
  }

  /// Visits the regions in order.
  /// - Parameter body: called with a region, the position of its first byte and its bytes; returning false ends
  ///   the visit.
  /// - Returns: whether the visit was not ended early.
  package final func visitRegionObjects(
    _ body: (DataObject, Int, UnsafeRawBufferPointer) -> Bool
  ) -> Bool {
    visitRegions { piece, start in
      let object = level > 0 ? piece.object : self
      return withExtendedLifetime(object) { body(object, start, piece.region) }
    }
  }
}

extension DispatchData {
  /// Data of an object that comes from C.
  package init(showing object: DataObject) { self.init(object: object) }

  /// What C is given.
  package var shown: DataObject { object }
}

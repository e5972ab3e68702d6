// Data for the C interface, which handles objects. Where Swift's interface ends the process for lack of memory, these
// functions return nil, since the C functions can report it.

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
  /// - Parameter deallocator: nil if the bytes are not given back.
  package static func adopting(
    _ bytes: UnsafeRawBufferPointer, _ deallocator: DispatchData.Deallocator?, _ function: StaticString
  ) -> DataObject {
    deallocator?.check(bytes, function)
    if bytes.count > 0 { return DataBuffer(adopting: bytes, deallocator: deallocator) }
    deallocator?.release(bytes)
    return .empty
  }

  /// An object whose bytes the caller writes before it passes the object on, and their address.
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

  /// `length` bytes from `offset` on, or fewer at the end.
  package final func part(from offset: UInt, length: UInt) -> DataObject {
    guard offset < UInt(count) else { return .empty }
    return subrange(Int(offset)..<Int(offset + min(length, UInt(count) - offset)))
  }

  /// The region that contains a position, and the position of its first byte; the empty object and the length for a
  /// position behind the end.
  package final func regionObject(at position: UInt) -> (object: DataObject, start: Int) {
    guard position < UInt(count) else { return (.empty, count) }
    guard level > 0 else { return (self, 0) }
    let (piece, start) = region(at: Int(position))
    return (piece.object, start)
  }

  /// Calls a function with each region in order.
  ///
  /// The region's object is an existing one unless the region is only a part of it.
  /// - Parameter function: returns false to end the visit.
  /// - Returns: false if the visit was ended early.
  package final func visitRegions(
    _ context: UnsafeMutableRawPointer?, _ function: RegionFunction
  ) -> Bool {
    guard level > 0 else {
      return count == 0 || function(context, Unmanaged.passUnretained(self).toOpaque(), 0, start, UInt(count))
    }
    // SAFETY: released below; the function may release C's own reference.
    let kept = Unmanaged.passRetained(self)
    defer { kept.release() }
    return asTree.visitRegions(context, function, start: 0)
  }
}

/// The function called with each region: the context, the region as an object, the position of its first byte, the
/// bytes and their count.
package typealias RegionFunction =
  @convention(c) (
    UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UInt, UnsafeRawPointer?, UInt
  ) -> Bool

extension DataTree {
  // SAFETY: references are passed on uncounted: the root is kept and keeps everything, and a node with two owners is
  // never changed. Sums cannot overflow, since the whole length does not.
  fileprivate func visitRegions(
    _ context: UnsafeMutableRawPointer?, _ function: RegionFunction, start: Int
  ) -> Bool {
    var start = start
    let row = pieces.row
    for index in row.indices {
      let goesOn =
        level > 1
        ? row[index].owner._withUnsafeGuaranteedRef {
          $0.asTree.visitRegions(context, function, start: start)
        } : visitRegion(row[index], context, function, start)
      if !goesOn { return false }
      start &+= row[index].count
    }
    return true
  }

  @inline(__always)
  private func visitRegion(
    _ region: DataPieces.Slot, _ context: UnsafeMutableRawPointer?, _ function: RegionFunction, _ start: Int
  ) -> Bool {
    let isWhole = region.owner._withUnsafeGuaranteedRef {
      $0.count == region.count && UInt(bitPattern: $0.start) == UInt(bitPattern: region.start)
    }
    if isWhole {
      return function(
        context, region.owner.toOpaque(), UInt(bitPattern: start), region.start,
        UInt(bitPattern: region.count))
    }
    return visitPart(region, context, function, start)
  }

  @inline(never)
  private func visitPart(
    _ region: DataPieces.Slot, _ context: UnsafeMutableRawPointer?, _ function: RegionFunction, _ start: Int
  ) -> Bool {
    let part = region.piece.object
    return withExtendedLifetime(part) {
      function(
        context, Unmanaged.passUnretained(part).toOpaque(), UInt(bitPattern: start), region.start,
        UInt(bitPattern: region.count))
    }
  }
}

extension DispatchData {
  /// Data of an object that comes from C.
  package init(showing object: DataObject) { self.init(object: object) }

  /// The object that C gets.
  package var shown: DataObject { object }
}

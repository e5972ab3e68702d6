/// Bytes that never change, in one region of memory or in many.
///
/// Values are copied, cut and joined without copying bytes; appending to one leaves its copies unchanged. Values may be
/// used from any thread. As a collection, the positions are those from 0 to `count`. Lengths are in bytes, and
/// complexities in the number of regions, n, unless said otherwise. Matching C type: `dispatch_data_t`.
public struct DispatchData: RandomAccessCollection, Sendable {
  /// Iterates over the bytes from the first to the last.
  public typealias Iterator = DispatchDataIterator
  /// The number of bytes before a byte.
  public typealias Index = Int
  /// All positions, as a collection.
  public typealias Indices = DefaultIndices<DispatchData>

  /// How to give back the memory of a buffer that was not copied.
  public enum Deallocator {
    /// By `free`: for memory from `malloc`.
    case free
    /// By `munmap`: for memory from `mmap`. The buffer must begin with a page.
    case unmap
    /// By the closure. It runs once, as an item of the queue, or of the default global queue if that is nil, after the
    /// last data that shows any of the buffer has gone.
    case custom(DispatchQueue?, () -> Void)
  }

  var object: DataObject

  /// Data of an object.
  init(object: DataObject) { self.object = object }

  /// Data without bytes. Matching C object: `dispatch_data_empty`.
  public static let empty = DispatchData(object: .empty)

  /// A copy of a buffer's bytes. O(count).
  @available(swift, deprecated: 4, message: "use init(bytes: UnsafeRawBufferPointer) instead")
  public init(bytes buffer: UnsafeBufferPointer<UInt8>) { self.init(bytes: UnsafeRawBufferPointer(buffer)) }

  /// A copy of a buffer's bytes. O(count).
  ///
  /// Ends the process when the system has no memory for the copy. Matching C function:
  /// `dispatch_data_create` with `DISPATCH_DATA_DESTRUCTOR_DEFAULT`.
  /// - Parameter buffer: the bytes, which the caller may free afterwards.
  public init(bytes buffer: UnsafeRawBufferPointer) {
    guard let base = buffer.baseAddress, buffer.count > 0 else {
      self = .empty
      return
    }
    let copy = DataBuffer.make(count: buffer.count, capacity: buffer.count) {
      $0.copyMemory(from: base, byteCount: buffer.count)
    }
    guard let copy else { DispatchData.outOfMemory("DispatchData(bytes:)", buffer.count) }
    object = copy
  }

  /// Data that shows a buffer and owns it from now on. O(1).
  @available(
    swift, deprecated: 4, message: "use init(bytesNoCopy: UnsafeRawBufferPointer, deallocator:) instead"
  )
  public init(
    bytesNoCopy bytes: UnsafeBufferPointer<UInt8>, deallocator: DispatchData.Deallocator = .free
  ) {
    self.init(bytesNoCopy: UnsafeRawBufferPointer(bytes), deallocator: deallocator)
  }

  /// Data that shows a buffer and owns it from now on: the buffer must not be written to any more. O(1).
  ///
  /// An empty buffer is given back at once; a custom deallocator runs asynchronously even then. Traps
  /// when a buffer to be unmapped does not begin with a page. Matching C function:
  /// `dispatch_data_create`.
  ///
  /// - Parameters:
  ///   - bytes: the buffer.
  ///   - deallocator: how it is given back once no data shows any of it.
  public init(bytesNoCopy bytes: UnsafeRawBufferPointer, deallocator: DispatchData.Deallocator = .free) {
    deallocator.check(bytes)
    guard bytes.count > 0 else {
      deallocator.release(bytes)
      self = .empty
      return
    }
    object = DataBuffer(adopting: bytes, deallocator: deallocator)
  }

  /// How many bytes there are. O(1). Matching C function: `dispatch_data_get_size`.
  public var count: Int { object.count }

  /// Calls `body` with the address of all bytes in one piece.
  ///
  /// The first call copies data of several regions to one buffer, which is kept with the data; further calls copy
  /// nothing. The pointer is valid until `body` returns; for empty data it points to memory that must not be read. Ends
  /// the process when the system has no memory for the copy. Matching C function: `dispatch_data_create_map`.
  ///
  /// - Parameter body: called once, on the calling thread.
  /// - Returns: what `body` returned.
  public func withUnsafeBytes<Result, ContentType>(
    body: (UnsafePointer<ContentType>) throws -> Result
  ) rethrows -> Result {
    guard let mapped = object.map() else { DispatchData.outOfMemory("DispatchData.withUnsafeBytes", count) }
    defer { withExtendedLifetime(mapped) {} }
    // SAFETY: the client knows what the bytes are. Empty data gets an aligned address that is not nil.
    let nowhere = UnsafeRawPointer(bitPattern: MemoryLayout<ContentType>.alignment)!
    return try body((mapped.start ?? nowhere).assumingMemoryBound(to: ContentType.self))
  }

  /// Visits the regions in order, each once. O(n).
  ///
  /// Matching C function: `dispatch_data_apply`.
  /// - Parameter block: called on the calling thread with a region, valid until it returns, the position
  ///   of the region's first byte, and a flag that ends the visit when set.
  @available(swift 4.2)
  public func enumerateBytes(
    _ block: (_ buffer: UnsafeBufferPointer<UInt8>, _ byteIndex: Int, _ stop: inout Bool) -> Void
  ) {
    object.visitRegions { piece, start in
      var stop = false
      // SAFETY: memory is only ever read as bytes here, and lives as long as the object.
      block(piece.region.assumingMemoryBound(to: UInt8.self), start, &stop)
      return !stop
    }
  }

  /// The bytes of `range`, clamped to the data and not copied; none for a range that begins outside the data. O(log n).
  ///
  /// Matching C function: `dispatch_data_create_subrange`.
  /// - Parameter range: positions of bytes; its upper bound may lie behind the data.
  public func subdata(in range: Range<DispatchData.Index>) -> DispatchData {
    DispatchData(object: object.subrange(range))
  }

  /// The region that contains a position. O(log n).
  ///
  /// Matching C function: `dispatch_data_copy_region`.
  /// - Parameter location: the position of a byte.
  /// - Returns: the region as data of its own, and the position of its first byte; empty data and `count`
  ///   for a position outside the data.
  public func region(location: Int) -> (data: DispatchData, offset: Int) {
    guard location >= 0 && location < count else { return (.empty, count) }
    let (piece, start) = object.region(at: location)
    if piece.count == count { return (self, 0) }
    return (DispatchData(object: piece.object), start)
  }

  @inline(never)
  static func outOfMemory(_ call: String, _ count: Int) -> Never {
    Trap.outOfMemory("\(call): the system has no memory for a copy of \(count) bytes")
  }
}

extension DispatchData {
  // MARK: Appending

  /// Appends a copy of `count` bytes.
  /// - Parameters:
  ///   - bytes: the first byte.
  ///   - count: how many bytes.
  @available(swift, deprecated: 4, message: "use append(_: UnsafeRawBufferPointer) instead")
  public mutating func append(_ bytes: UnsafePointer<UInt8>, count: Int) {
    if count < 0 {
      Trap.clientBug(601, "DispatchData.append(_:count: \(count)): the count must not be negative")
    }
    append(UnsafeRawBufferPointer(start: bytes, count: count))
  }

  /// Appends a copy of a buffer's bytes. O(count), on average over many appends.
  ///
  /// Ends the process when the system has no memory for the copy. Matching C functions:
  /// `dispatch_data_create`, `dispatch_data_create_concat`.
  /// - Parameter bytes: the bytes, which the caller may free afterwards.
  public mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count > 0 else { return }
    let isOwned = isKnownUniquelyReferenced(&object)
    guard let longer = DataObject.append(object, isOwned: isOwned, bytes) else {
      DispatchData.outOfMemory("DispatchData.append", bytes.count)
    }
    if longer !== object { object = longer }
  }

  /// Appends other data without copying its bytes. O(log n), and O(1) on average when short data is
  /// appended many times.
  ///
  /// Matching C function: `dispatch_data_create_concat`.
  /// - Parameter other: the data to append, whose regions both share afterwards.
  public mutating func append(_ other: DispatchData) {
    guard other.count > 0 else { return }
    let isOwned = isKnownUniquelyReferenced(&object)
    let longer = DataObject.join(object, isOwned: isOwned, other.object)
    if longer !== object { object = longer }
  }

  /// Appends a copy of the bytes of a buffer's elements. O(bytes), on average over many appends.
  /// - Parameter buffer: the elements.
  public mutating func append<SourceType>(_ buffer: UnsafeBufferPointer<SourceType>) {
    append(UnsafeRawBufferPointer(buffer))
  }

  // MARK: Copying

  /// Copies the first `count` bytes, or all if there are fewer.
  @available(
    swift, deprecated: 4, message: "use copyBytes(to: UnsafeMutableRawBufferPointer, count:) instead"
  )
  public func copyBytes(to pointer: UnsafeMutablePointer<UInt8>, count: Int) {
    copy(0..<checked(count), to: UnsafeMutableRawPointer(pointer))
  }

  /// Copies the first `count` bytes, or all if there are fewer. O(n + count).
  ///
  /// Traps when `count` is negative or greater than that of `pointer`. Matching C function:
  /// `dispatch_data_apply`.
  /// - Parameters:
  ///   - pointer: the memory to copy to, with room for them.
  ///   - count: how many bytes.
  public func copyBytes(to pointer: UnsafeMutableRawBufferPointer, count: Int) {
    copy(0..<checked(count), to: pointer)
  }

  /// Copies the bytes of `range`, clamped to the data.
  @available(
    swift, deprecated: 4, message: "use copyBytes(to: UnsafeMutableRawBufferPointer, from:) instead"
  )
  public func copyBytes(to pointer: UnsafeMutablePointer<UInt8>, from range: Range<DispatchData.Index>) {
    copy(range, to: UnsafeMutableRawPointer(pointer))
  }

  /// Copies the bytes of `range`, clamped to the data as for `subdata`. O(log n + count).
  ///
  /// Traps when the range is longer than `pointer`. Matching C function: `dispatch_data_apply`.
  /// - Parameters:
  ///   - pointer: the memory to copy to, with room for them.
  ///   - range: positions of bytes.
  public func copyBytes(to pointer: UnsafeMutableRawBufferPointer, from range: Range<DispatchData.Index>) {
    copy(range, to: pointer)
  }

  /// Copies as many bytes as fit into a buffer of elements; the last element may be filled in part. O(log n + count).
  ///
  /// Traps when the range is not within the data. Matching C function: `dispatch_data_apply`.
  /// - Parameters:
  ///   - buffer: the destination.
  ///   - range: the bytes to copy; nil for all.
  /// - Returns: how many bytes were copied.
  public func copyBytes<DestinationType>(
    to buffer: UnsafeMutableBufferPointer<DestinationType>, from range: Range<DispatchData.Index>? = nil
  ) -> Int {
    let range = range ?? 0..<count
    if range.lowerBound < 0 || range.upperBound > count {
      Trap.clientBug(603, "DispatchData.copyBytes(to:from: \(range)): the data has the range 0..<\(count)")
    }
    let target = UnsafeMutableRawBufferPointer(buffer)
    let fitting = Swift.min(range.count, target.count)
    guard fitting > 0 else { return 0 }
    object.copy(range.lowerBound..<range.lowerBound + fitting, to: target.baseAddress!)
    return fitting
  }

  private func checked(_ count: Int) -> Int {
    if count < 0 {
      Trap.clientBug(604, "DispatchData.copyBytes(to:count: \(count)): the count must not be negative")
    }
    return count
  }

  private func copy(_ range: Range<Int>, to target: UnsafeMutableRawBufferPointer) {
    if range.count > target.count {
      Trap.clientBug(
        605,
        "DispatchData.copyBytes: \(range.count) bytes asked for, into a buffer of \(target.count)")
    }
    guard let base = target.baseAddress else { return }
    copy(range, to: base)
  }

  private func copy(_ range: Range<Int>, to target: UnsafeMutableRawPointer) {
    guard range.lowerBound >= 0 && range.lowerBound < count else { return }
    object.copy(range.clamped(to: 0..<count), to: target)
  }
}

// The name that programs in older Swift use. They do not see the other one, nor we this one.
extension DispatchData {
  /// Visits the regions in order, each once.
  /// - Parameter block: runs on the caller with the bytes of a region, the position of the first, and a flag that ends
  ///   the visit when it is set.
  @available(swift, obsoleted: 4.2, renamed: "enumerateBytes(_:)")
  public func enumerateBytes(
    block: (_ buffer: UnsafeBufferPointer<UInt8>, _ byteIndex: Int, _ stop: inout Bool) -> Void
  ) {
    enumerateBytes(block)
  }
}

// SAFETY: the closure is called once, after everything that happened to the buffer; the client answers
// for what it captures, as for the items of `asyncUnsafe`.
extension DispatchData.Deallocator: @unchecked Sendable {}

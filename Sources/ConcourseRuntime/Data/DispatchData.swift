/// Bytes that never change, in one region of memory or in many.
///
/// A value may be copied, cut and joined without copying bytes; appending to one leaves its copies as they
/// were. Values may be used from any thread. As a collection, the positions are those from 0 to `count`.
/// Lengths are in bytes, and complexities in the number of regions, n, unless said otherwise. Matching C
/// type: `dispatch_data_t`.
public struct DispatchData: RandomAccessCollection, Sendable {
  /// Goes through the bytes from the first to the last.
  public typealias Iterator = DispatchDataIterator
  /// The number of bytes before the one meant.
  public typealias Index = Int
  /// All positions, as a collection.
  public typealias Indices = DefaultIndices<DispatchData>

  /// How the memory of a buffer that was not copied is given back.
  public enum Deallocator {
    /// By `free`: for memory from `malloc`.
    case free
    /// By `munmap`: for memory from `mmap`. The buffer must begin with a page.
    case unmap
    /// By the closure. It runs once, asynchronously, as an item of the queue, or of the default global
    /// queue if that is nil, after the last data that shows any of the buffer is gone.
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

  /// Data that shows a buffer and owns it from now on: nobody may write to the buffer any more. O(1).
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

  /// Calls `body` with the address of the first byte of all, in one piece.
  ///
  /// Data of several regions is copied to one buffer the first time; that buffer is kept with the data,
  /// and further calls cost nothing. The pointer is valid until `body` returns; for empty data it points
  /// to memory that must not be read. Ends the process when the system has no memory for the copy.
  /// Matching C function: `dispatch_data_create_map`.
  ///
  /// - Parameter body: called once, on the calling thread.
  /// - Returns: what `body` returned.
  public func withUnsafeBytes<Result, ContentType>(
    body: (UnsafePointer<ContentType>) throws -> Result
  ) rethrows -> Result {
    guard let mapped = object.map() else { DispatchData.outOfMemory("DispatchData.withUnsafeBytes", count) }
    defer { withExtendedLifetime(mapped) {} }
    // SAFETY: the client says what the bytes are. For no bytes, an address that is aligned and not nil.
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

  /// The bytes of `range`, without copying them, clamped to what there is; a range that begins outside
  /// the data has none. O(log n).
  ///
  /// Matching C function: `dispatch_data_create_subrange`.
  public func subdata(in range: Range<DispatchData.Index>) -> DispatchData {
    DispatchData(object: object.subrange(range))
  }

  /// The region that contains a position. O(log n).
  ///
  /// Matching C function: `dispatch_data_copy_region`.
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

// The name that programs in older Swift use: they cannot see the other one, and we cannot see this.
extension DispatchData {
  /// Visits the regions in order, each once.
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

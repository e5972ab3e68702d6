extension DispatchData {
  /// Appends a copy of `count` bytes.
  @available(swift, deprecated: 4, message: "use append(_: UnsafeRawBufferPointer) instead")
  public mutating func append(_ bytes: UnsafePointer<UInt8>, count: Int) {
    if count < 0 { Trap.clientBug("DispatchData.append(_:count: \(count)): the count must not be negative") }
    append(UnsafeRawBufferPointer(start: bytes, count: count))
  }

  /// Appends a copy of a buffer's bytes. O(count), on average over many appends.
  ///
  /// Ends the process when the system has no memory for the copy. Matching C functions:
  /// `dispatch_data_create`, `dispatch_data_create_concat`.
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
  public mutating func append(_ other: DispatchData) {
    guard other.count > 0 else { return }
    let isOwned = isKnownUniquelyReferenced(&object)
    let longer = DataObject.join(object, isOwned: isOwned, other.object)
    if longer !== object { object = longer }
  }

  /// Appends a copy of the bytes of a buffer's elements. O(bytes), on average over many appends.
  public mutating func append<SourceType>(_ buffer: UnsafeBufferPointer<SourceType>) {
    append(UnsafeRawBufferPointer(buffer))
  }
}

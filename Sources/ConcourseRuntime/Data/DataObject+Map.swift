// All bytes in one place.

extension DataObject {
  /// The same bytes as one region: this object if it is one already, else a copy that is made once and
  /// kept with this object. The bytes stay where they are as long as the result lives.
  /// - Returns: nil when the system has no memory for the copy.
  final func map() -> DataObject? {
    level == 0 ? self : asTree.mapTree()
  }
}

extension DataTree {
  fileprivate func mapTree() -> DataObject? {
    // ORDERING: acquiring; pairs with the releasing side of the exchange below; publishes the copy.
    if let raw = mapped.load(ordering: .acquiring) { return buffer(raw) }
    guard let copy = DataBuffer.make(count: count, capacity: count, fill: { self.copy(0..<count, to: $0) })
    else { return nil }
    let raw = Unmanaged.passRetained(copy).toOpaque()
    // ORDERING: releasing; pairs with the acquiring load above and, for the loser of a race, with this
    // operation's own acquiring side.
    let (exchanged, winner) = mapped.compareExchange(
      expected: nil, desired: UnsafeRawPointer(raw), ordering: .acquiringAndReleasing)
    if exchanged { return copy }
    // SAFETY: the reference retained above, which nobody has seen.
    Unmanaged<DataBuffer>.fromOpaque(raw).release()
    return buffer(winner!)
  }

  private func buffer(_ raw: UnsafeRawPointer) -> DataBuffer {
    // SAFETY: only retained buffers are stored in `mapped`.
    Unmanaged<DataBuffer>.fromOpaque(raw).takeUnretainedValue()
  }
}

extension DispatchData {
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
  public func copyBytes(to pointer: UnsafeMutableRawBufferPointer, count: Int) {
    copy(0..<checked(count), to: pointer)
  }

  /// Copies the bytes of `range`, clamped to what there is.
  @available(
    swift, deprecated: 4, message: "use copyBytes(to: UnsafeMutableRawBufferPointer, from:) instead"
  )
  public func copyBytes(to pointer: UnsafeMutablePointer<UInt8>, from range: Range<DispatchData.Index>) {
    copy(range, to: UnsafeMutableRawPointer(pointer))
  }

  /// Copies the bytes of `range`, clamped to what there is, as `subdata` does. O(log n + count).
  ///
  /// Traps when the range is longer than `pointer`. Matching C function: `dispatch_data_apply`.
  public func copyBytes(to pointer: UnsafeMutableRawBufferPointer, from range: Range<DispatchData.Index>) {
    copy(range, to: pointer)
  }

  /// Copies bytes to a buffer of elements: as many whole bytes as fit, so that the last element touched
  /// may be filled in part. O(log n + count).
  ///
  /// Traps when the range is not within the data. Matching C function: `dispatch_data_apply`.
  /// - Parameters:
  ///   - buffer: where to.
  ///   - range: the bytes to copy; nil for all.
  /// - Returns: how many bytes were copied.
  public func copyBytes<DestinationType>(
    to buffer: UnsafeMutableBufferPointer<DestinationType>, from range: Range<DispatchData.Index>? = nil
  ) -> Int {
    let range = range ?? 0..<count
    if range.lowerBound < 0 || range.upperBound > count {
      Trap.clientBug("DispatchData.copyBytes(to:from: \(range)): the data has the range 0..<\(count)")
    }
    let target = UnsafeMutableRawBufferPointer(buffer)
    let fitting = Swift.min(range.count, target.count)
    guard fitting > 0 else { return 0 }
    object.copy(range.lowerBound..<range.lowerBound + fitting, to: target.baseAddress!)
    return fitting
  }

  private func checked(_ count: Int) -> Int {
    if count < 0 {
      Trap.clientBug("DispatchData.copyBytes(to:count: \(count)): the count must not be negative")
    }
    return count
  }

  private func copy(_ range: Range<Int>, to target: UnsafeMutableRawBufferPointer) {
    if range.count > target.count {
      Trap.clientBug(
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

/// Finds where the last lines of a file begin, reading blocks from its end. Pure: it says what it wants to
/// see, and is shown it.
///
/// A last line without a newline counts as a line.
package struct BackwardScan {
  package enum Step: Equatable {
    case read(offset: Int64, length: Int)
    /// The lines begin here.
    case found(Int64)
  }

  private let block: Int
  /// How many newlines lie before the place looked for and at or after `seen`, less those found.
  private var wanted: Int
  private var seen: Int64
  private var isAtEnd = true
  package private(set) var next: Step

  /// - Parameters:
  ///   - size: of the file.
  ///   - lines: how many are looked for; nil for all.
  ///   - block: how much is read at once.
  package init(size: Int64, lines: Int?, block: Int = 1 << 16) {
    self.block = block
    seen = size
    wanted = lines ?? 0
    next = .found(0)
    switch lines {
    case nil: break
    case 0?: next = .found(size)
    default: next = step()
    }
  }

  /// Shows the block that `next` asked for. Fewer bytes mean that the file has become shorter meanwhile.
  package mutating func show(_ data: DispatchData) {
    guard case .read(let offset, let length) = next else { return }
    guard data.count == length else {
      next = .found(offset)
      return
    }
    var found: Int64?
    data.visitReversed { place, byte in
      defer { isAtEnd = false }
      // The newline that ends the last line begins no other one.
      guard byte == UInt8(ascii: "\n"), !isAtEnd else { return true }
      wanted -= 1
      if wanted == 0 { found = offset + Int64(place) + 1 }
      return found == nil
    }
    seen = offset
    next = found.map(Step.found) ?? step()
  }

  private func step() -> Step {
    if seen == 0 { return .found(0) }
    let length = min(Int64(block), seen)
    return .read(offset: seen - length, length: Int(length))
  }
}

extension DispatchData {
  /// Visits the bytes from the last to the first until `body` returns false.
  fileprivate func visitReversed(_ body: (Int, UInt8) -> Bool) {
    var end = count
    while end > 0 {
      let (region, start) = region(location: end - 1)
      let goesOn = region.withUnsafeBytes { (bytes: UnsafePointer<UInt8>) -> Bool in
        // SAFETY: the indices lie within the region, whose memory is valid until the closure returns.
        for place in (0..<region.count).reversed() where !body(start + place, bytes[place]) { return false }
        return true
      }
      if !goesOn { return }
      end = start
    }
  }
}

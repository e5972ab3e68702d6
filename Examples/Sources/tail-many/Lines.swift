import ExampleSupport

/// Makes whole lines of the pieces in which a file is read, so that lines of several files do not mix. The bytes
/// after the last newline are kept until their own comes.
///
/// Lines stay `DispatchData`: they are cut out of the pieces without copying.
struct LineAssembler {
  /// A longer line is broken: otherwise a file without newlines would fill the memory.
  private let limit: Int
  private var rest = DispatchData.empty

  init(limit: Int = 1 << 18) {
    precondition(limit > 0, "a line has room for a byte")
    self.limit = limit
  }

  /// Whether no unfinished line is kept.
  var isEmpty: Bool { rest.count == 0 }

  /// Takes the next piece of the file.
  ///
  /// - Returns: the lines that are complete now, each with its newline.
  mutating func append(_ piece: DispatchData) -> DispatchData {
    var lines = DispatchData.empty
    var tail = piece
    if let end = piece.lastNewline {
      lines = rest
      lines.append(piece.subdata(in: 0..<end + 1))
      tail = piece.subdata(in: end + 1..<piece.count)
      rest = .empty
    }
    // Copied: a few bytes would otherwise keep the whole buffer that was read.
    tail.enumerateBytes { region, _, _ in rest.append(UnsafeRawBufferPointer(region)) }
    while rest.count >= limit {
      lines.append(rest.subdata(in: 0..<limit))
      lines.append(.newline)
      rest = rest.subdata(in: limit..<rest.count)
    }
    return lines
  }

  /// The unfinished line with a newline; empty if there is none.
  mutating func finish() -> DispatchData {
    if isEmpty { return .empty }
    defer { rest = .empty }
    var line = rest
    line.append(.newline)
    return line
  }
}

extension DispatchData {
  fileprivate static let newline = Bytes("\n".utf8).withUnsafeBytes { DispatchData(bytes: $0) }

  /// Where the last newline is. Regions before it are not read.
  fileprivate var lastNewline: Int? {
    var end = count
    while end > 0 {
      let (region, start) = region(location: end - 1)
      let found = region.withUnsafeBytes { (bytes: UnsafePointer<UInt8>) -> Int? in
        // SAFETY: the region is one piece of memory, valid until the closure returns.
        UnsafeBufferPointer(start: bytes, count: region.count).lastIndex(of: UInt8(ascii: "\n"))
      }
      if let found { return start + found }
      end = start
    }
    return nil
  }

  /// Where the last lines start. A last line without a newline is a line too.
  ///
  /// - Parameter isWhole: whether the data starts at the start of a line.
  func startOfLastLines(_ lines: Int, isWhole: Bool) -> Int {
    if lines == 0 { return count }
    return withUnsafeBytes { (bytes: UnsafePointer<UInt8>) in
      // SAFETY: the data's own bytes, valid until the closure returns.
      let bytes = UnsafeBufferPointer(start: bytes, count: count)
      var wanted = lines
      // The newline at the end ends the last line and starts no other.
      for place in bytes.indices.dropLast().reversed() where bytes[place] == UInt8(ascii: "\n") {
        wanted -= 1
        if wanted == 0 { return place + 1 }
      }
      return isWhole ? 0 : bytes.firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
    }
  }
}

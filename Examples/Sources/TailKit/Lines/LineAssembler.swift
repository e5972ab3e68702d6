/// Makes whole lines of the pieces in which a file is read, so that no line is ever torn by one of another
/// file. What follows the last newline is kept until its own comes.
///
/// Lines stay `DispatchData`: they are cut out of what was read, and not copied.
package struct LineAssembler {
  /// A line longer than this is broken: otherwise a file without newlines would fill the memory.
  private let limit: Int
  private var rest = DispatchData.empty

  package init(limit: Int = 1 << 18) {
    precondition(limit > 0, "a line has room for a byte")
    self.limit = limit
  }

  /// How much of an unfinished line is kept.
  package var pendingCount: Int { rest.count }

  /// Takes the next piece of the file.
  /// - Returns: the lines that are complete now, each with its newline; empty data for none.
  package mutating func append(_ piece: DispatchData) -> DispatchData {
    var lines = DispatchData.empty
    var tail = piece
    if let end = piece.lastNewline {
      lines = rest
      lines.append(piece.subdata(in: 0..<end + 1))
      tail = piece.subdata(in: end + 1..<piece.count)
      rest = .empty
    }
    // A copy: a few bytes would otherwise keep the whole buffer that was read.
    tail.enumerateBytes { region, _, _ in rest.append(UnsafeRawBufferPointer(region)) }
    while rest.count >= limit {
      lines.append(rest.subdata(in: 0..<limit))
      lines.append(.newline)
      rest = rest.subdata(in: limit..<rest.count)
    }
    return lines
  }

  /// The unfinished line, with the newline that it lacks: nothing more will come.
  package mutating func finish() -> DispatchData {
    guard rest.count > 0 else { return .empty }
    defer { rest = .empty }
    var line = rest
    line.append(.newline)
    return line
  }
}

extension DispatchData {
  static let newline = Bytes("\n".utf8).data

  /// Where the last newline is. Only the regions from the last one to that are looked at.
  var lastNewline: Int? {
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

  /// How many newlines there are.
  package var newlineCount: Int {
    var newlines = 0
    enumerateBytes { region, _, _ in
      for byte in region where byte == 10 { newlines += 1 }
    }
    return newlines
  }
}

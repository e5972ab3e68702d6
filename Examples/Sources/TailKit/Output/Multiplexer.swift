/// Puts the lines of many files into one stream. Pure: it is told whose lines come next.
package struct Multiplexer {
  package enum Style: Sendable {
    /// `==> name <==` above the lines of another file than the last, as `tail` does.
    case header
    /// The name and a colon before each line.
    case prefix
    /// One JSON object a line.
    case json
    /// Nothing but the lines.
    case plain
  }

  private let style: Style
  private var last: Bytes?

  package init(_ style: Style) { self.style = style }

  /// What to write for these lines.
  /// - Parameter lines: whole lines, each with its newline.
  package mutating func format(_ lines: DispatchData, from name: Bytes) -> DispatchData {
    guard lines.count > 0 else { return .empty }
    switch style {
    case .plain:
      return lines
    case .header:
      if last == name { return lines }
      defer { last = name }
      var output = (Bytes((last == nil ? "==> " : "\n==> ").utf8) + name + Bytes(" <==\n".utf8)).data
      output.append(lines)
      return output
    case .prefix:
      let start = name + Bytes(": ".utf8)
      return rewritten(lines, reserving: start.count) { output, line in
        output += start
        output += line
        output.append(UInt8(ascii: "\n"))
      }
    case .json:
      var start = Bytes("{\"file\": ".utf8)
      JSONText.append(name, to: &start)
      start += Bytes(", \"line\": ".utf8)
      return rewritten(lines, reserving: start.count) { output, line in
        output += start
        JSONText.append(line, to: &output)
        output += Bytes("}\n".utf8)
      }
    }
  }

  private func rewritten(
    _ lines: DispatchData, reserving extra: Int,
    _ write: (inout Bytes, Slice<UnsafeBufferPointer<UInt8>>) -> Void
  ) -> DispatchData {
    var output: Bytes = []
    output.reserveCapacity(lines.count + 8 * extra)
    // Lines may span regions; one mapping makes them contiguous.
    lines.withUnsafeBytes { (bytes: UnsafePointer<UInt8>) in
      // SAFETY: the data's own bytes, valid until the closure returns.
      var rest = UnsafeBufferPointer(start: bytes, count: lines.count)[...]
      while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
        write(&output, rest[..<end])
        rest = rest[(end + 1)...]
      }
    }
    return output.data
  }
}

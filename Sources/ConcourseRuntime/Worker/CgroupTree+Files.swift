internal import Glibc

/// Reading the kernel's text files in small pieces. They have no size in advance, and they can be
/// shorter or longer than expected; a file that cannot be read is as good as an empty one here.
extension CgroupTree {
  /// Calls `body` with each line, without its newline, until it returns false.
  static func forEachLine(of path: [UInt8], _ body: (_ line: [UInt8]) -> Bool) {
    guard let file = open(path) else { return }
    defer { close(file) }
    // SAFETY: the buffer stays inside of the closure; `line` copies what it keeps.
    withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
      var line: [UInt8] = []
      while true {
        var rest = read(file, into: buffer)
        if rest.isEmpty { break }
        while let newline = rest.firstIndex(of: UInt8(ascii: "\n")) {
          line += rest[..<newline]
          guard body(line) else { return }
          line.removeAll(keepingCapacity: true)
          rest = rest[(newline + 1)...]
        }
        line += rest
      }
      if !line.isEmpty { _ = body(line) }
    }
  }

  /// The text of a file of one short line, without its newline; nil if it cannot be read.
  static func contents(of path: [UInt8]) -> [UInt8]? {
    guard let file = open(path) else { return nil }
    defer { close(file) }
    // SAFETY: the buffer stays inside of the closure, which returns a copy.
    return withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { buffer in
      let text = read(file, into: buffer)
      // Nothing, or more than two numbers can be.
      if text.isEmpty || text.count == buffer.count { return nil }
      return Array(text.last == UInt8(ascii: "\n") ? text.dropLast() : text)
    }
  }

  private static func open(_ path: [UInt8]) -> Int32? {
    // SAFETY: a byte string that ends with zero, as `open` wants it, alive until the closure returns.
    (path + [0]).withUnsafeBytes { bytes in
      let name = bytes.assumingMemoryBound(to: CChar.self).baseAddress!
      while true {
        let file = Glibc.open(name, O_RDONLY | O_CLOEXEC)
        if file >= 0 { return file }
        if errno != EINTR { return nil }
      }
    }
  }

  /// The next piece of the file, empty at its end or if it cannot be read.
  private static func read(
    _ file: Int32, into buffer: UnsafeMutableRawBufferPointer
  ) -> Slice<UnsafeRawBufferPointer> {
    while true {
      // SAFETY: the kernel writes at most `buffer.count` bytes, and only those it wrote are returned.
      let count = Glibc.read(file, buffer.baseAddress, buffer.count)
      if count >= 0 { return UnsafeRawBufferPointer(buffer)[..<count] }
      if errno != EINTR { return UnsafeRawBufferPointer(buffer)[..<0] }
    }
  }
}

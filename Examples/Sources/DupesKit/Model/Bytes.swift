import Glibc

/// A path or a name exactly as the kernel has it. A file name on Linux is any run of bytes without NUL and
/// `/`, so a `String`, which repairs what is not UTF-8, could name another file than the one found.
package typealias Bytes = [UInt8]

extension Bytes {
  /// Calls `body` with these bytes as a NUL-terminated C string.
  func withCPath<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    (self + [0]).withTerminatedCPath(body)
  }

  /// The same for bytes that end with NUL already: the hot paths keep one buffer and avoid the copy.
  func withTerminatedCPath<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    precondition(last == 0)
    // SAFETY: UInt8 and CChar have the same layout; the NUL checked above ends the string in the buffer.
    return withUnsafeBufferPointer { buffer in
      buffer.withMemoryRebound(to: CChar.self) { body($0.baseAddress!) }
    }
  }

  /// Orders by byte value: the same on every machine, whatever the locale.
  func precedes(_ other: Bytes) -> Bool {
    let order = withUnsafeBytes { mine in
      other.withUnsafeBytes { theirs in
        let common = Swift.min(mine.count, theirs.count)
        return common == 0 ? 0 : memcmp(mine.baseAddress!, theirs.baseAddress!, common)
      }
    }
    return order == 0 ? count < other.count : order < 0
  }
}

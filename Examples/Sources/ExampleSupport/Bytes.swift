import Glibc

/// A path or a name exactly as the kernel has it: any bytes except NUL. A `String` repairs what is not UTF-8, and
/// could thus name another file.
package typealias Bytes = [UInt8]

extension Bytes {
  /// For messages: what is not UTF-8 is repaired.
  package var text: String { String(decoding: self, as: UTF8.self) }

  /// Calls `body` with these bytes as a C string.
  package func withCString<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    // SAFETY: `string` has room for all bytes and the NUL, and initializes both.
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: count + 1) { string in
      withUnsafeBytes { UnsafeMutableRawBufferPointer(string).copyMemory(from: $0) }
      string[count] = 0
      return body(string.baseAddress!)
    }
  }

  /// The order of the bytes' values, the same on every machine in every locale.
  package func precedes(_ other: Bytes) -> Bool {
    let order = withUnsafeBytes { mine in
      other.withUnsafeBytes { theirs in
        let common = Swift.min(mine.count, theirs.count)
        // SAFETY: both buffers have `common` bytes.
        return common == 0 ? 0 : memcmp(mine.baseAddress!, theirs.baseAddress!, common)
      }
    }
    return order == 0 ? count < other.count : order < 0
  }
}

/// Writes all bytes to a descriptor, with as many calls as that takes.
///
/// - Returns: 0, or the errno of the call that failed.
package func writeAll(_ bytes: Bytes, to descriptor: Int32) -> Int32 {
  bytes.withUnsafeBytes { buffer in
    var written = 0
    while written < buffer.count {
      // SAFETY: stays within the buffer, as `written` is below its count.
      let count = write(descriptor, buffer.baseAddress! + written, buffer.count - written)
      if count >= 0 { written += count } else if errno != EINTR { return errno }
    }
    return 0
  }
}

/// The system's message for an error number.
package func describe(errno number: Int32) -> String {
  withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
    // SAFETY: the call writes a terminated string of at most `count` bytes.
    strerror_r(number, buffer.baseAddress!, buffer.count) == 0
      ? String(cString: buffer.baseAddress!) : "error \(number)"
  }
}

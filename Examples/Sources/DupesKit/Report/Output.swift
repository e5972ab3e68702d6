import Glibc

/// Writes all bytes to a descriptor, however many calls that takes.
///
/// - Returns: 0, or the error number that stopped it.
func writeAll(_ bytes: Bytes, to descriptor: Int32) -> Int32 {
  bytes.withUnsafeBytes { buffer in
    var written = 0
    while written < buffer.count {
      let count = write(descriptor, buffer.baseAddress! + written, buffer.count - written)
      if count >= 0 {
        written += count
      } else if errno != EINTR {
        return errno
      }
    }
    return 0
  }
}

/// Writes to standard error. If even that fails there is nobody left to tell.
func writeToStandardError(_ text: String) {
  _ = writeAll(Bytes(text.utf8), to: STDERR_FILENO)
}

import Glibc

/// Writes all bytes, and waits for as long as that takes.
///
/// - Returns: 0, or the error number that stopped it.
func writeAll(_ bytes: Bytes, to descriptor: Int32) -> Int32 {
  bytes.withUnsafeBytes { buffer in
    var written = 0
    while written < buffer.count {
      let count = write(descriptor, buffer.baseAddress! + written, buffer.count - written)
      if count >= 0 { written += count } else if errno != EINTR { return errno }
    }
    return 0
  }
}

/// Writes to standard error. If even that fails there is nobody left to tell.
@Sendable func writeToStandardError(_ text: Bytes) {
  _ = writeAll(text, to: STDERR_FILENO)
}

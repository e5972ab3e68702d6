import Glibc

/// Writes all of the text to a descriptor, however many calls that takes.
///
/// - Returns: 0, or the error number that stopped it.
@discardableResult
func write(_ text: String, to descriptor: Int32) -> Int32 {
  let bytes = Array(text.utf8)
  var written = 0
  while written < bytes.count {
    // SAFETY: stays within the buffer, as `written` is below its count.
    let count = bytes.withUnsafeBytes {
      Glibc.write(descriptor, $0.baseAddress! + written, $0.count - written)
    }
    if count >= 0 {
      written += count
    } else if errno != EINTR {
      return errno
    }
  }
  return 0
}

/// A line on standard error. If even that fails there is nobody left to tell.
func complain(_ message: String) {
  write("echo-server: \(message)\n", to: STDERR_FILENO)
}

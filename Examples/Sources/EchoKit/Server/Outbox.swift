/// Bytes that the kernel had no room for yet.
struct Outbox {
  private var bytes: [UInt8] = []
  /// How many of `bytes` have left.
  private var sent = 0

  var count: Int { bytes.count - sent }
  var isEmpty: Bool { sent == bytes.count }

  mutating func append(_ more: UnsafeRawBufferPointer) {
    bytes.append(contentsOf: more)
  }

  /// Hands the bytes to the kernel as far as it takes them.
  ///
  /// - Returns: how many it took, or the error.
  mutating func flush(to descriptor: Int32) -> Socket.Sent {
    let result = bytes.withUnsafeBytes { buffer in
      Socket.send(UnsafeRawBufferPointer(rebasing: buffer[sent...]), to: descriptor)
    }
    guard case .bytes(let count) = result else { return result }
    sent += count
    if sent == bytes.count {
      // A connection without pending output keeps no memory for it: there may be thousands of them.
      bytes = []
      sent = 0
    } else if sent > bytes.count / 2 {
      bytes.removeFirst(sent)
      sent = 0
    }
    return result
  }
}

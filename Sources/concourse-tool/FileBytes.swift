import Glibc

/// Read access to a file that nobody vouches for: every read is checked against the file's size, and one that
/// fails is nil. The file is read rather than mapped, since a mapped file that shrinks kills its reader.
final class FileBytes {
  /// More than this is not read at once; no table that is looked at comes near it.
  static let mostAtOnce = 1 << 28

  private let descriptor: Int32
  let size: UInt64

  /// Nil, with `errno` telling why, if the path cannot be opened for reading or is no regular file.
  init?(path: String) {
    // O_NONBLOCK: a FIFO of that name must not keep us waiting for its writer.
    descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return nil }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      close(descriptor)
      errno = EINVAL
      return nil
    }
    size = UInt64(status.st_size)
  }

  deinit { close(descriptor) }

  /// Exactly `count` bytes from `offset` on, or nil.
  func read(at offset: UInt64, count: Int) -> [UInt8]? {
    guard count >= 0, count <= Self.mostAtOnce, offset <= size, UInt64(count) <= size - offset else {
      return nil
    }
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      while filled < count {
        let room = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[filled...])
        let got = pread(descriptor, room.baseAddress, room.count, off_t(offset) + off_t(filled))
        if got < 0 && errno == EINTR { continue }
        guard got > 0 else { return }
        filled += got
      }
    }
    return bytes.count == count ? bytes : nil
  }

  /// The text from `offset` to the next zero byte, or nil if there is none within `limit` bytes.
  func text(at offset: UInt64, limit: Int = 4096) -> String? {
    guard offset < size else { return nil }
    let available = Int(min(UInt64(limit), size - offset))
    guard let bytes = read(at: offset, count: available), let end = bytes.firstIndex(of: 0) else {
      return nil
    }
    return String(decoding: bytes[..<end], as: UTF8.self)
  }
}

extension [UInt8] {
  /// The little-endian number at `offset`, or nil if it is not all there.
  func number<Value: FixedWidthInteger>(at offset: Int, as type: Value.Type = Value.self) -> Value? {
    let width = Value.bitWidth / 8
    guard offset >= 0, offset <= count - width else { return nil }
    var value: Value = 0
    for place in 0..<width { value |= Value(truncatingIfNeeded: self[offset + place]) << (8 * place) }
    return value
  }
}

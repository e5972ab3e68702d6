import ConcourseRecording
import Glibc

/// Read access to an untrusted file. Every read is checked against the file's size; a failed read is nil. The file is
/// not mapped, since shrinking a mapped file kills its reader.
final class FileBytes {
  /// The largest single read. The tables that are read are far smaller.
  static let maximumRead = 1 << 28

  /// O_PATH, which the C library declares for GNU programs only.
  private static let pathOnly: Int32 = 0x20_0000

  private let descriptor: Int32
  let size: UInt64

  /// nil, with `errno` set, if the path cannot be opened for reading or is not a regular file.
  init?(path: String) {
    // Opening a FIFO would wake a writer, opening a device may have any effect. So the file is opened for reading only
    // once it is known to be regular.
    let place = open(path, Self.pathOnly | O_CLOEXEC)
    guard place >= 0 else { return nil }
    defer { close(place) }
    var status = stat()
    guard fstat(place, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      errno = EINVAL
      return nil
    }
    descriptor = open("/proc/self/fd/\(place)", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    size = UInt64(status.st_size)
  }

  deinit { close(descriptor) }

  /// Exactly `count` bytes from `offset`, or nil.
  func read(at offset: UInt64, count: Int) -> [UInt8]? {
    guard count >= 0, count <= Self.maximumRead, offset <= size, UInt64(count) <= size - offset else {
      return nil
    }
    // For none the standard library would write to the empty array that all threads share.
    if count == 0 { return [] }
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

  /// The text from `offset` to the next zero byte; nil if there is none within `limit` bytes.
  func text(at offset: UInt64, limit: Int = 4096) -> String? {
    guard offset < size else { return nil }
    let available = Int(min(UInt64(limit), size - offset))
    guard let bytes = read(at: offset, count: available), let end = bytes.firstIndex(of: 0) else {
      return nil
    }
    return String(decoding: bytes[..<end], as: UTF8.self)
  }
}

extension FileBytes: RecordingBytes {}

import DupesKit
import Glibc
import Testing

/// A directory of its own for one test, removed with all that is in it when the test is over.
final class TemporaryTree: Sendable {
  let root: String

  init() {
    let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(base)/dupes-test-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { fatalError("mkdtemp: errno \(errno)") }
    root = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    chmod(root, 0o755)
  }

  deinit { TemporaryTree.remove(root) }

  /// Removes a directory and all below it, without following links.
  private static func remove(_ directory: String) {
    guard let stream = opendir(directory) else { return }
    while let entry = readdir(stream) {
      // SAFETY: the name is copied from the stream's own buffer before the next readdir.
      let bytes = UnsafeRawPointer(entry).advanced(by: MemoryLayout<dirent>.offset(of: \.d_name)!)
        .assumingMemoryBound(to: CChar.self)
      let name = Array(UnsafeBufferPointer(start: bytes, count: strlen(bytes) + 1))
      if name == [46, 0] || name == [46, 46, 0] { continue }
      // Only a directory refuses to be unlinked, and only a directory has more below it.
      if unlinkat(dirfd(stream), name, 0) == 0 { continue }
      remove(directory + "/" + String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
    }
    closedir(stream)
    rmdir(directory)
  }

  func path(_ name: String) -> String { "\(root)/\(name)" }
  func bytes(_ name: String) -> Bytes { Bytes(path(name).utf8) }

  func directory(_ name: String) {
    #expect(mkdir(path(name), 0o755) == 0)
  }

  func file(_ name: String, _ content: Bytes) {
    file(named: Bytes(name.utf8), content)
  }

  /// Writes a file whose name need not be UTF-8.
  func file(named name: Bytes, _ content: Bytes) {
    let terminated = (Bytes(root.utf8) + Bytes("/".utf8) + name).map { CChar(bitPattern: $0) } + [0]
    let descriptor = open(terminated, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    #expect(descriptor >= 0)
    var written = 0
    while written < content.count {
      let count = content.withUnsafeBytes {
        write(descriptor, $0.baseAddress! + written, content.count - written)
      }
      guard count > 0 else {
        Issue.record("write: errno \(errno)")
        break
      }
      written += count
    }
    close(descriptor)
  }

  /// A file of `size` bytes that takes no room on the disk.
  func sparseFile(_ name: String, size: Int) {
    file(name, [])
    #expect(truncate(path(name), off_t(size)) == 0)
  }

  func hardLink(_ name: String, to target: String) {
    #expect(link(path(target), path(name)) == 0)
  }

  func symbolicLink(_ name: String, to target: String) {
    #expect(symlink(target, path(name)) == 0)
  }

  /// The time of the last change, in nanoseconds.
  func changeTime(_ name: String) -> Int {
    var status = stat()
    #expect(stat(path(name), &status) == 0)
    return status.st_ctim.tv_sec * 1_000_000_000 + status.st_ctim.tv_nsec
  }
}

extension String {
  var bytes: Bytes { Bytes(utf8) }
}

import Glibc

/// A directory for one test. It is removed, with everything in it, at the end of the test.
package final class TemporaryTree: Sendable {
  package let root: String

  package init() {
    let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(base)/example-test-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { fatalError("mkdtemp: errno \(errno)") }
    root = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    chmod(root, 0o755)
  }

  deinit { TemporaryTree.remove(Array(root.utf8)) }

  /// Removes a directory and all below it, without following links.
  private static func remove(_ directory: [UInt8]) {
    guard let stream = opendir(directory.map { CChar(bitPattern: $0) } + [0]) else { return }
    while let entry = readdir(stream) {
      // SAFETY: the name is copied from the stream's own buffer before the next readdir.
      let start = UnsafeRawPointer(entry).advanced(by: MemoryLayout<dirent>.offset(of: \.d_name)!)
      let name = [UInt8](
        UnsafeRawBufferPointer(start: start, count: strlen(start.assumingMemoryBound(to: CChar.self))))
      if name == [46] || name == [46, 46] { continue }
      // Only a directory refuses to be unlinked.
      if unlinkat(dirfd(stream), name.map { CChar(bitPattern: $0) } + [0], 0) != 0 {
        remove(directory + [UInt8(ascii: "/")] + name)
      }
    }
    closedir(stream)
    rmdir(directory.map { CChar(bitPattern: $0) } + [0])
  }

  package func path(_ name: String) -> String { "\(root)/\(name)" }

  package func directory(_ name: String) { check(mkdir(path(name), 0o755), "mkdir", name) }
  package func remove(_ name: String) { check(Glibc.remove(path(name)), "remove", name) }
  package func rename(_ name: String, to other: String) {
    check(Glibc.rename(path(name), path(other)), "rename", name)
  }
  package func hardLink(_ name: String, to target: String) {
    check(link(path(target), path(name)), "link", name)
  }
  package func symbolicLink(_ name: String, to target: String) {
    check(symlink(target, path(name)), "symlink", name)
  }

  /// Writes a file anew.
  package func file(_ name: String, _ content: [UInt8]) { file(named: Array(name.utf8), content) }

  /// Writes a file whose name need not be UTF-8.
  package func file(named name: [UInt8], _ content: [UInt8]) { write(content, to: name, O_TRUNC) }

  package func append(_ text: String, to name: String) {
    write(Array(text.utf8), to: Array(name.utf8), O_APPEND)
  }

  /// A file of `size` bytes that needs no space on the disk.
  package func sparseFile(_ name: String, size: Int) {
    file(name, [])
    check(truncate(path(name), off_t(size)), "truncate", name)
  }

  private func write(_ content: [UInt8], to name: [UInt8], _ flags: Int32) {
    let path = (Array("\(root)/".utf8) + name).map { CChar(bitPattern: $0) } + [0]
    let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0o644)
    var written = 0
    while descriptor >= 0 && written < content.count {
      // SAFETY: stays within the buffer, as `written` is below its count.
      let count = content.withUnsafeBytes {
        Glibc.write(descriptor, $0.baseAddress! + written, content.count - written)
      }
      if count < 0 { break }
      written += count
    }
    check(written == content.count ? close(descriptor) : -1, "write", String(decoding: name, as: UTF8.self))
  }

  private func check(_ result: Int32, _ call: String, _ name: String) {
    if result != 0 { fatalError("\(call) \(name): \(String(cString: strerror(errno)))") }
  }
}

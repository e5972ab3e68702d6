import Glibc
import TailKit
import Testing

/// A directory of its own for one test, removed with all that is in it when the test is over.
final class LogDirectory: Sendable {
  let root: String

  init() {
    let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(base)/tail-many-test-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { fatalError("mkdtemp: errno \(errno)") }
    root = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    chmod(root, 0o755)
  }

  deinit { LogDirectory.removeAll(root) }

  /// Removes a directory and all below it, without following links.
  private static func removeAll(_ directory: String) {
    guard let stream = opendir(directory) else { return }
    while let entry = readdir(stream) {
      // SAFETY: the name is copied from the stream's own buffer before the next readdir.
      let start = UnsafeRawPointer(entry).advanced(by: MemoryLayout<dirent>.offset(of: \.d_name)!)
      let name = String(cString: start.assumingMemoryBound(to: CChar.self))
      if name == "." || name == ".." { continue }
      // Only a directory refuses to be unlinked, and only a directory has more below it.
      if unlinkat(dirfd(stream), name, 0) != 0 { removeAll(directory + "/" + name) }
    }
    closedir(stream)
    rmdir(directory)
  }

  func path(_ name: String) -> String { "\(root)/\(name)" }

  /// Appends in one call of `write`, as programs that keep logs do. Makes the file if there is none.
  func append(_ text: String, to name: String) {
    let writer = LogWriter(path(name))
    writer.write(text)
  }

  func makeDirectory(_ name: String) { #expect(mkdir(path(name), 0o755) == 0) }
  func truncate(_ name: String) { #expect(Glibc.truncate(path(name), 0) == 0) }
  func remove(_ name: String) { #expect(Glibc.remove(path(name)) == 0) }
  func rename(_ name: String, to other: String) { #expect(Glibc.rename(path(name), path(other)) == 0) }
}

/// A program's open log.
final class LogWriter: Sendable {
  private let descriptor: Int32

  init(_ path: String) {
    descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
    #expect(descriptor >= 0)
  }

  deinit { close(descriptor) }

  func write(_ text: String) {
    var rest = Bytes(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress!, $0.count) }
      guard count > 0 else {
        Issue.record("write: errno \(errno)")
        return
      }
      rest = rest.dropFirst(count)
    }
  }
}

import Glibc

/// The folder for temporary files of a run. Runs get the same random numbers, so files with unique names would be the same
/// ones if two runs at the same time shared a folder.
///
/// All names have the same length, so that a program's memory has the same addresses with each. A run that is alone has
/// the same name as others that were alone, so that text made of it is the same.
package final class RunFolder {
  package static let variable = "TMPDIR"
  private static let most = 10_000

  package let path: String

  /// nil if none can be made. Then the program has the usual folder.
  /// - Parameter parent: The folder that the program would have without.
  package init?(in parent: String?) {
    var folder = parent ?? "/tmp"
    while folder.count > 1 && folder.hasSuffix("/") { folder.removeLast() }
    if !folder.hasPrefix("/") { folder = "/tmp" }
    for number in 0..<Self.most {
      let path = folder + "/concourse-" + String(Self.most + number).dropFirst()
      if mkdir(path, 0o700) == 0 {
        self.path = path
        return
      }
      guard errno == EEXIST else { return nil }
    }
    return nil
  }

  deinit {
    clear()
    rmdir(path)
  }

  /// Removes what is in it.
  package func clear() { Self.clear(path) }

  private static func clear(_ path: String) {
    guard let folder = opendir(path) else { return }
    defer { closedir(folder) }
    while let entry = readdir(folder) {
      // SAFETY: the name ends with a zero.
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      guard name != "." && name != ".." else { continue }
      let inside = "\(path)/\(name)"
      // A link is no folder here.
      guard unlink(inside) != 0, errno == EISDIR else { continue }
      // The program may have protected it.
      chmod(inside, 0o700)
      clear(inside)
      rmdir(inside)
    }
  }
}

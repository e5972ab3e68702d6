import Glibc

/// A libdispatch.so that finished programs can be started on.
struct Library: Sendable {
  /// Its canonical path, as the kernel tells it in a process's map.
  let path: String
  /// What makes the loader take it.
  let environment: [String]

  /// The loader looks for `libdispatch.so` in folders, and the file may have another name, or neighbours
  /// that are not meant. Hence a folder with nothing but a link of that name.
  ///
  /// - Parameter toolchain: where the library finds what it needs itself (the Blocks and Swift runtimes),
  ///   since it cannot look beside the link.
  init(
    named name: String, _ file: String, linkedIn folder: TemporaryFolder, toolchain: String
  ) throws(Failure) {
    guard let canonical = realpath(file, nil) else { throw Failure("\(file): \(errorText())") }
    // SAFETY: realpath allocated it, and it is freed once.
    defer { free(canonical) }
    path = String(cString: canonical)
    let own = try folder.makeFolder(name, linking: "libdispatch.so", to: path)
    let others = ownEnvironment().filter {
      !$0.hasPrefix("LD_LIBRARY_PATH=") && !$0.hasPrefix("LD_PRELOAD=")
    }
    environment = others + ["LD_LIBRARY_PATH=\(own):\(toolchain)"]
  }

  /// Starts `program` once to see that this library, and no other, is what answers its calls.
  func verifyMapped(by program: String) throws(Failure) {
    let mapped = try output(of: program, ["--library"], on: self).split(separator: "\n").map(String.init)
    guard mapped == [path] else {
      throw Failure("\(program) should run on \(path), but has mapped \(mapped.joined(separator: ", "))")
    }
  }
}

/// A folder under TMPDIR.
final class TemporaryFolder {
  private let path: String
  private var files: [String] = []
  private var folders: [String] = []

  init() throws(Failure) {
    let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(parent)/concourse-bench-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw Failure("\(parent): \(errorText())") }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Removes it and all that was put into it.
  func remove() {
    for file in files { unlink(file) }
    for folder in folders + [path] { rmdir(folder) }
  }

  /// A new folder that holds one symbolic link; returns its path.
  func makeFolder(_ name: String, linking link: String, to target: String) throws(Failure) -> String {
    let folder = "\(path)/\(name)"
    guard mkdir(folder, 0o755) == 0 else { throw Failure("\(folder): \(errorText())") }
    folders.append(folder)
    guard symlink(target, "\(folder)/\(link)") == 0 else { throw Failure("\(folder): \(errorText())") }
    files.append("\(folder)/\(link)")
    return folder
  }
}

import Glibc
import Testing

/// The built command, a library to switch programs to, and programs made with the toolchain's clang.
///
/// The library is a stand-in, so that this suite is about the command alone: CConcoursePreload and the engine's notes
/// under the name libdispatch.so, and behind it the toolchain's library under another name.
final class ToolFixture: Sendable {
  /// Made once for all tests, and removed when the process ends.
  static let shared: Swift.Result<ToolFixture, any Error> = {
    let made = Swift.Result { try ToolFixture() }
    atexit {
      if let folder = try? ToolFixture.shared.get().folder { TemporaryFolder.remove(folder.path) }
    }
    return made
  }()

  let folder: TemporaryFolder
  let command: String
  /// The toolchain's directory of libraries for programs.
  let toolchainLibraries: String
  private let clang: String

  /// The stand-in for Concourse's library.
  var library: String { folder.path + "/lib/libdispatch.so" }
  /// The library behind the stand-in.
  var libraryBehind: String { folder.path + "/lib/libincumbnt.so" }
  /// A copy of the toolchain's library, without anything of ours.
  var foreignLibrary: String { folder.path + "/foreign/libdispatch.so" }
  /// Uses libdispatch.so itself; see Probe/probe.c.
  var probe: String { folder.path + "/bin/probe" }
  /// The same without any dispatch.
  var plain: String { folder.path + "/bin/plain" }

  private init() throws {
    folder = try TemporaryFolder()
    let executable = try #require(Self.resolved("/proc/self/exe"))
    command = executable.dropLastPart + "/concourse"
    try #require(access(command, X_OK) == 0, "\(command) was not built")
    toolchainLibraries = try Self.folderOfSwiftLibraries()
    clang = toolchainLibraries + "/../../../bin/clang"
    try #require(access(clang, X_OK) == 0, "\(clang): these tests need the toolchain's clang")
    try makeLibraries()
    try compile("probe", flags: Self.dispatchFlags(toolchainLibraries))
    try compile("plain", flags: ["-DWITHOUT_DISPATCH"])
  }

  /// This process uses Swift's libraries; the toolchain is where they were loaded from.
  private static func folderOfSwiftLibraries() throws -> String {
    let maps = String(decoding: try #require(FileContents.read("/proc/self/maps")), as: UTF8.self)
    for line in maps.split(separator: "\n") where line.hasSuffix("/libswiftCore.so") {
      if let start = line.firstIndex(of: "/") { return String(line[start...]).dropLastPart }
    }
    throw Absence(what: "libswiftCore.so among what this process has mapped")
  }

  struct Absence: Error { var what: String }

  static func dispatchFlags(_ libraries: String) -> [String] {
    ["-I\(libraries)/..", "-L\(libraries)", "-ldispatch", "-Wl,-rpath,\(libraries)"]
  }

  private func makeLibraries() throws {
    let original = toolchainLibraries + "/libdispatch.so"
    try folder.copy(original, to: "foreign/libdispatch.so")
    try folder.copy(toolchainLibraries + "/libBlocksRuntime.so", to: "foreign/libBlocksRuntime.so")
    try folder.copy(toolchainLibraries + "/libBlocksRuntime.so", to: "lib/libBlocksRuntime.so")
    var bytes = try #require(FileContents.read(original))
    let name = Array("libdispatch.so\0".utf8)
    let place = try #require(bytes.firstRange(of: name))
    bytes.replaceSubrange(place, with: Array("libincumbnt.so\0".utf8))
    try folder.write(bytes, to: "lib/libincumbnt.so", mode: 0o755)
    let sources = #filePath.dropLastPart.dropLastPart.dropLastPart + "/Sources"
    try run(
      clang,
      [
        "-shared", "-fPIC", "-Wl,-soname,libdispatch.so", sources + "/CConcoursePreload/preload.c",
        sources + "/CConcourse/inspection.c", "-Wl,--no-as-needed", libraryBehind, "-Wl,-rpath,$ORIGIN", "-o",
        library,
      ])
  }

  /// Compiles Probe/probe.c, or another file of that folder.
  /// - Returns: the path of the program.
  @discardableResult
  func compile(_ name: String, from source: String = "probe.c", flags: [String]) throws -> String {
    let result = try folder.place("bin/" + name)
    try run(clang, ["-O1", #filePath.dropLastPart + "/Probe/" + source] + flags + ["-o", result])
    return result
  }

  private func run(_ path: String, _ arguments: [String]) throws {
    let result = try spawn(path, arguments).wait()
    try #require(result.ending == .exit(0), "\(path) \(arguments): \(result.complaint)")
  }

  func spawn(
    _ path: String, _ arguments: [String], environment: [String] = [], input: Int32? = nil
  ) throws -> SpawnedProgram {
    let nothing = open("/dev/null", O_RDONLY | O_CLOEXEC)
    defer { close(nothing) }
    return try SpawnedProgram(
      path, arguments.map { Array($0.utf8) }, environment: Self.environment + environment,
      input: input ?? nothing)
  }

  static let environment = ["PATH=/usr/bin:/bin", "LANG=C"]

  /// `concourse run --library LIBRARY OPTIONS WORDS`, to its end.
  func run(
    _ words: [String], options: [String] = [], library: String? = nil, environment: [String] = []
  ) throws -> SpawnedProgram.Result {
    try spawnRun(words, options: options, library: library, environment: environment).wait()
  }

  func spawnRun(
    _ words: [String], options: [String] = [], library: String? = nil, environment: [String] = [],
    input: Int32? = nil
  ) throws -> SpawnedProgram {
    try spawn(
      command, ["run", "--library", library ?? self.library] + options + ["--"] + words,
      environment: environment,
      input: input)
  }

  private static func resolved(_ path: String) -> String? {
    guard let buffer = realpath(path, nil) else { return nil }
    defer { free(buffer) }
    return String(cString: buffer)
  }
}

enum FileContents {
  static func read(_ path: String) -> [UInt8]? {
    guard let file = fopen(path, "re") else { return nil }
    defer { fclose(file) }
    var contents: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 65536)
    while case let count = fread(&part, 1, part.count, file), count > 0 { contents += part[..<count] }
    return contents
  }
}

extension String {
  /// The path before the last slash.
  var dropLastPart: String {
    String(self[..<(lastIndex(of: "/") ?? startIndex)])
  }
}

import Foundation
import Glibc
import Testing

/// The built command, and programs for it to examine.
struct ReportFixture {
  let command: String
  /// The programs of Examples/Sources/broken, which link Concourse.
  let broken: String
  /// Tests/ReportProbe.
  let waits: String

  init() throws {
    let runner = try #require(ProcessLink.executable)
    let folder = runner.split(separator: "/").dropLast().reduce("") { $0 + "/" + $1 }
    (command, broken, waits) = (folder + "/concourse", folder + "/broken-programs", folder + "/report-probe")
    for path in [command, broken, waits] { try #require(access(path, X_OK) == 0, "\(path) was not built") }
  }

  func spawn(_ path: String, _ arguments: [String], environment: [String] = []) throws -> SpawnedProgram {
    let nothing = open("/dev/null", O_RDONLY | O_CLOEXEC)
    defer { close(nothing) }
    // With its own search for deadlocks, the runtime would end the program that is to hang; and Swift's reporter of
    // crashes would examine it, too.
    return try SpawnedProgram(
      path, arguments.map { Array($0.utf8) },
      environment: ToolFixture.environment + ["CONCOURSE_DEADLOCK=off", "SWIFT_BACKTRACE=enable=no"]
        + environment, input: nothing)
  }

  func report(_ arguments: [String]) throws -> SpawnedProgram.Result {
    try spawn(command, ["report"] + arguments).wait()
  }

  /// Reports until the program has reached the state that the report is about.
  func report(
    on program: SpawnedProgram, options: [String] = [], until isReached: (String) -> Bool
  ) throws -> String {
    var text = ""
    // A guard against a hang: each report takes some time itself.
    for _ in 0..<600 {
      let result = try report(options + ["\(program.identifier)"])
      text = result.text + result.complaint
      if result.ending == .exit(0), isReached(result.text) { return result.text }
      usleep(50_000)
    }
    Issue.record("not reached:\n\(text)")
    return text
  }

  /// Whether the kernel writes a file `core` into the directory of the process.
  static var writesCores: Bool {
    guard let pattern = FileContents.read("/proc/sys/kernel/core_pattern"), let first = pattern.first else {
      return false
    }
    return first != UInt8(ascii: "|") && first != UInt8(ascii: "/")
  }

  /// `concourse_inspection`: layout 1, 376 bytes, and nothing else in the file.
  private static let emptyRecord = [1, 0, 0, 0, 0x78, 1, 0, 0] + [UInt8](repeating: 0, count: 368)

  /// Tests/ReportProbe, once it is ready, from a file in which one byte of that record is another.
  func probe(_ arguments: [String] = [], changing place: Int, to byte: UInt8) throws -> Examined {
    let folder = try TemporaryFolder()
    let copy = try folder.copy(waits, to: "probe")
    var bytes = try #require(FileContents.read(copy))
    let start = try #require(bytes.firstRange(of: Self.emptyRecord))
    bytes[start.lowerBound + place] = byte
    try folder.write(bytes, to: "probe", mode: 0o755)
    let program = Examined(try spawn(copy, arguments), from: folder)
    program.program.waitForOutput("ready")
    return program
  }

  /// Whether a process may be started in a namespace of its own.
  static var canMakeNamespaces: Bool {
    guard access("/usr/bin/unshare", X_OK) == 0,
      let probe = try? ReportFixture().spawn(
        "/usr/bin/unshare", ["--pid", "--fork", "--kill-child", "true"]),
      let result = try? probe.wait()
    else { return false }
    return result.ending == .exit(0)
  }

  static var canBecomeOther: Bool { geteuid() == 0 && access("/usr/bin/setpriv", X_OK) == 0 }

  /// Runs the command as another user, who may not examine our processes.
  func runAsOther(_ arguments: [String]) throws -> SpawnedProgram.Result {
    // Where that user can read it.
    let folder = try TemporaryFolder()
    try #require(chmod(folder.path, 0o755) == 0)
    let copy = try folder.copy(command, to: "concourse")
    return try spawn(
      "/usr/bin/setpriv", ["--reuid", "65534", "--regid", "65534", "--clear-groups", copy] + arguments
    ).wait()
  }

  func json(_ text: String) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }
}

/// A program that ends with the test.
final class Examined {
  let program: SpawnedProgram

  /// Kept as long as the program may read its file.
  private let folder: TemporaryFolder?

  init(_ program: SpawnedProgram, from folder: TemporaryFolder? = nil) {
    self.program = program
    self.folder = folder
  }

  var id: String { "\(program.identifier)" }

  deinit {
    kill(program.identifier, SIGKILL)
    _ = try? program.wait()
  }
}

enum ProcessLink {
  static var executable: String? {
    guard let path = realpath("/proc/self/exe", nil) else { return nil }
    defer { free(path) }
    return String(cString: path)
  }
}

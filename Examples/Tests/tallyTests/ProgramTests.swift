import Foundation
import Testing

/// The built program.
@Suite("tally", .timeLimit(.minutes(10)))
struct ProgramTests {
  @Test("the words of many files are counted together")
  func manyFiles() throws {
    let directory = try Directory()
    var paths: [String] = []
    for number in 0..<200 {
      paths.append(try directory.write("\(number)", String(repeating: "The quick fox, the ", count: number)))
    }
    let run = try run(paths)
    let total = (0..<200).reduce(0, +)
    #expect(
      run.output == """
        {"files":200,"frequent":[{"count":\(2 * total),"word":"the"},{"count":\(total),"word":"fox"},\
        {"count":\(total),"word":"quick"}],"words":\(4 * total)}

        """)
    #expect(run.status == 0 && run.errors.isEmpty)
  }

  @Test("a file that cannot be read is named, and the others are counted")
  func missing() throws {
    let directory = try Directory()
    let run = try run([directory.path("absent"), try directory.write("present", "one")])
    #expect(run.output == #"{"files":1,"frequent":[{"count":1,"word":"one"}],"words":1}"# + "\n")
    #expect(run.errors.hasPrefix("tally: \(directory.path("absent")): "))
    #expect(run.status == 1)
  }

  private func run(_ arguments: [String]) throws -> (output: String, errors: String, status: Int32) {
    let process = Process()
    let me = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    process.executableURL = URL(filePath: me).deletingLastPathComponent().appending(path: "tally")
    process.arguments = arguments
    let (output, errors) = (Pipe(), Pipe())
    process.standardOutput = output
    process.standardError = errors
    try process.run()
    // Both are shorter than what a pipe holds, so one may be read after the other.
    let (said, complained) = (output.fileHandleForReading, errors.fileHandleForReading)
    let texts = (try said.readToEnd() ?? Data(), try complained.readToEnd() ?? Data())
    process.waitUntilExit()
    return (
      String(decoding: texts.0, as: UTF8.self), String(decoding: texts.1, as: UTF8.self),
      process.terminationStatus
    )
  }
}

/// A directory that goes with the test.
private final class Directory {
  private let url = FileManager.default.temporaryDirectory.appending(path: "tally-\(UUID().uuidString)")

  init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }
  deinit { try? FileManager.default.removeItem(at: url) }

  func path(_ name: String) -> String { url.appending(path: name).path }

  func write(_ name: String, _ text: String) throws -> String {
    try Data(text.utf8).write(to: url.appending(path: name))
    return path(name)
  }
}

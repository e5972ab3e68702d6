import Foundation
import Glibc
import Testing

@testable import ConcourseTool

/// Where the command writes, and what it says if it cannot.
@Suite(
  "the command's output", .enabled(if: getenv("CONCOURSE_SANITIZER") == nil), .timeLimit(.minutes(10)))
struct OutputTests {
  let fixture: ReportFixture

  init() throws { fixture = try ReportFixture() }

  private func probe() throws -> Examined {
    let program = Examined(try fixture.spawn(fixture.waits, ["busy"]))
    program.program.waitForOutput("ready")
    return program
  }

  /// - Parameter line: for the shell; `$0` is the command.
  private func shell(_ line: String, _ arguments: String...) throws -> SpawnedProgram.Result {
    try fixture.spawn("/bin/sh", ["-c", line, fixture.command] + arguments).wait()
  }

  @Test(
    "a result that cannot be printed is a failure",
    arguments: [
      "report $1", "report --json $1", "top --once --interval 0.1 $1", "top --json --interval 0.1 $1", "help",
      "help run", "report --help", "--version", "run --check /nowhere",
    ])
  func lostResult(_ command: String) throws {
    let program = try probe()
    for (output, reason) in [(">/dev/full", ENOSPC), (">&-", EBADF)] {
      let result = try shell("exec \"$0\" \(command) \(output)", program.id)
      let isCheck = command.hasPrefix("run")
      #expect(result.ending == .exit(isCheck ? 1 : 125))
      #expect(
        result.complaint == "concourse: the output cannot be written: \(String(cString: strerror(reason)))\n")
    }
  }

  @Test("messages do not get into the file if the command is started without standard descriptors")
  func closedDescriptors() throws {
    let program = try probe()
    let folder = try TemporaryFolder()
    for closed in [">&-", "2>&-", "<&- >&- 2>&-"] {
      let path = folder.path + "/trace.json"
      let result = try shell("exec \"$0\" trace --seconds 0.2 -o \"$2\" $1 \(closed)", program.id, path)
      #expect(result.ending == .exit(0))
      let trace = try #require(FileContents.read(path))
      #expect((try? JSONSerialization.jsonObject(with: Data(trace))) != nil, "\(closed)")
      unlink(path)
    }
  }
}

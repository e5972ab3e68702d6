import Foundation
import Glibc
import Testing

@testable import ConcourseTool

/// Where the command writes, and what becomes of a program that it has started, if its output ends.
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

  @Test("a reader of the output that has gone ends the view as it ends other programs")
  func goneReader() throws {
    let program = try probe()
    let result = try shell(
      "{ \"$0\" top --json --interval 0.1 $1; echo $? >&2; } | head -n 1 | wc -l", program.id)
    #expect(result.text.contains("1"))
    #expect(result.complaint == "\(128 + SIGPIPE)\n")
  }

  @Test("messages do not get into the file if the command is started without standard descriptors")
  func closedDescriptors() throws {
    let program = try probe()
    let folder = try TemporaryFolder()
    for closed in [">&-", "2>&-", "<&- >&- 2>&-"] {
      let path = folder.path + "/trace.json"
      let result = try shell("exec \"$0\" trace --seconds 1 -o \"$2\" $1 \(closed)", program.id, path)
      #expect(result.ending == .exit(0))
      let trace = try #require(FileContents.read(path))
      #expect((try? JSONSerialization.jsonObject(with: Data(trace))) != nil, "\(closed)")
      unlink(path)
    }
  }

  /// The processes whose command line has the text.
  private static func processes(with text: String) -> [pid_t] {
    ProcFile.numbers(in: "/proc").filter { process in
      ProcFile.read("/proc/\(process)/cmdline")?.contains(text) ?? false
    }
  }

  @Test(
    "a program that the view has started ends with it",
    arguments: [SIGPIPE, SIGHUP, SIGQUIT, SIGTERM, SIGINT])
  func programEnds(_ number: Int32) throws {
    // Among the arguments of the program.
    let mark = "ends-with-the-view-\(getpid())-\(number)."
    defer { for process in Self.processes(with: mark) { kill(process, SIGKILL) } }
    let view = "top --text --interval 0.1 -- \"$1\" busy"
    if number == SIGPIPE {
      _ = try shell("\"$0\" \(view) \"$2\" 2>/dev/null | head -n 1", fixture.waits, mark)
    } else {
      let folder = try TemporaryFolder()
      let shell = try fixture.spawn(
        "/bin/sh",
        ["-c", "ulimit -c 0; exec \"$0\" \(view) \"$2\" 2>/dev/null", fixture.command, fixture.waits, mark],
        environment: ["TMPDIR=\(folder.path)"])
      shell.waitForOutput("POOL")
      kill(shell.identifier, number)
      #expect(try shell.wait().ending == .signal(number))
    }
    #expect(Self.processes(with: mark).isEmpty)
  }

  /// Until no process has the mark: the kernel ends a program after the command. A guard against a hang.
  private static func waitForEnd(of mark: String) -> Bool {
    for _ in 0..<600 {
      if processes(with: mark).isEmpty { return true }
      usleep(50_000)
    }
    return false
  }

  @Test(
    "a command that is killed takes the program along that it has started",
    arguments: ["top --text", "trace"])
  func killed(_ command: String) throws {
    let mark = "killed-with-the-command-\(getpid())-\(command.count)."
    defer { for process in Self.processes(with: mark) { kill(process, SIGKILL) } }
    let folder = try TemporaryFolder()
    let started = try fixture.spawn(
      "/bin/sh",
      ["-c", "exec \"$0\" \(command) -- \"$1\" busy \"$2\" 2>&1", fixture.command, fixture.waits, mark],
      environment: ["TMPDIR=\(folder.path)"])
    started.waitForOutput("ready")
    kill(started.identifier, SIGKILL)
    #expect(Self.waitForEnd(of: mark))
    #expect(try started.wait().ending == .signal(SIGKILL))
  }

  @Test(
    "a signal while the view waits for its program to use Concourse ends the program",
    arguments: [SIGTERM, SIGINT])
  func endedBeforeTheView(_ number: Int32) throws {
    let mark = "ended-before-the-view-\(getpid())-\(number)."
    defer { for process in Self.processes(with: mark) { kill(process, SIGKILL) } }
    // The view does not understand it, and tries again.
    let program = try fixture.probe(["busy"], changing: 0, to: 77)
    let path = try #require(ProcFile.link("/proc/\(program.id)/exe"))
    let view = try fixture.spawn(
      "/bin/sh",
      ["-c", "exec \"$0\" top --text -- \"$1\" busy \"$2\" 2>&1", fixture.command, path, mark])
    view.waitForOutput("ready")
    kill(view.identifier, number)
    #expect(Self.waitForEnd(of: mark))
    #expect(try view.wait().ending == .signal(number))
  }

  @Test(
    "the first signal ends a view whose reader leaves the pipe full", arguments: [SIGHUP, SIGQUIT, SIGTERM])
  func fullPipe(_ number: Int32) throws {
    let program = try probe()
    let folder = try TemporaryFolder()
    let pipe = folder.path + "/pipe"
    try #require(mkfifo(pipe, 0o600) == 0)
    let reader = open(pipe, O_RDWR | O_NONBLOCK | O_CLOEXEC)
    defer { close(reader) }
    let bytes = [UInt8](repeating: 10, count: 4096)
    while write(reader, bytes, bytes.count) > 0 {}
    let view = try fixture.spawn(
      "/bin/sh",
      [
        "-c", "ulimit -c 0; exec \"$0\" top --text --interval 0.1 $1 >\"$2\"", fixture.command, program.id,
        pipe,
      ])
    // It waits for room: in `write` to standard output, or in `poll`.
    while true {
      let words = (ProcFile.read("/proc/\(view.identifier)/syscall") ?? "").split(separator: " ")
      let name = words.first.flatMap { Int($0) }.map { Processor.here.name(ofSystemCall: $0) }
      if name == "write" && words[1] == "0x1" || name == "poll" || name == "ppoll" { break }
      try #require(TargetProcess.isAlive(view.identifier))
      usleep(1000)
    }
    kill(view.identifier, number)
    #expect(try view.wait(patience: 60_000).ending == .signal(number))
  }

  @Test("what cannot be written is refused before anything is recorded")
  func refusedEarly() throws {
    let folder = try TemporaryFolder()
    let (link, directory) = (folder.path + "/link.json", folder.path + "/folder.json")
    try #require(symlink("elsewhere.json", link) == 0 && mkdir(directory, 0o700) == 0)
    let program = try probe()
    for (path, reason) in [
      (link, "it is a symbolic link"), (directory, "Is a directory"),
      (folder.path + "/none/a.json", "No such file or directory"),
      (folder.path + "/" + String(repeating: "n", count: 300) + ".json", "File name too long"),
      (fixture.waits + "/a.json", "Not a directory"),
    ] {
      // It would record for a day.
      let result = try fixture.spawn(
        fixture.command, ["trace", "--seconds", "86400", "-o", path, program.id]
      ).wait()
      result.expectRefusal(saying: "\(path) cannot be written: \(reason)")
    }
    #expect(throws: Never.self) { try OutputFile.check(folder.path + "/new.json") }
    #expect(throws: Never.self) { try OutputFile.check("/dev/null") }
    #expect(access(folder.path + "/new.json", F_OK) != 0)
  }

  @Test(
    "a folder that may be written and not searched is refused",
    .enabled(if: ReportFixture.canBecomeOther, "needs root and setpriv"))
  func unsearchable() throws {
    let folder = try TemporaryFolder()
    let program = try probe()
    let closed = folder.path + "/closed"
    try #require(mkdir(closed, 0o700) == 0 && chmod(closed, 0o702) == 0 && chmod(folder.path, 0o755) == 0)
    let result = try fixture.runAsOther(["trace", "-o", closed + "/a.json", program.id])
    result.expectRefusal(saying: "\(closed)/a.json cannot be written: Permission denied")
  }

  @Test("a view whose parent ignores the ends of children ends with its program")
  func ignoredChildren() throws {
    let view = try fixture.spawn(
      "/usr/bin/env",
      ["--ignore-signal=CHLD", fixture.command, "top", "--once", "--text", "--", fixture.waits, "busy"])
    #expect(try view.wait(patience: 60_000).ending == .exit(0))
  }

  @Test("the number of a thread is said to be one")
  func thread() throws {
    let program = try probe()
    // One that stays.
    let thread = try #require(
      ProcFile.numbers(in: "/proc/\(program.id)/task").first { number in
        ProcFile.read("/proc/\(program.id)/task/\(number)/comm")?.contains("in-semaphore") ?? false
      })
    for command in ["report", "top", "trace"] {
      try fixture.spawn(fixture.command, [command, "\(thread)"]).wait()
        .expectRefusal(saying: "\(thread) is a thread of process \(program.id)")
    }
  }
}

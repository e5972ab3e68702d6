import Glibc
import Testing

/// The programs of Tests/TaskPrograms, which run on Concourse: tasks that block their threads, and tasks that do not.
/// A sanitizer would search each of them for leaks at its end, also the setuid program, which it may not look at.
@Suite("tasks that block", .enabled(if: getenv("CONCOURSE_SANITIZER") == nil), .timeLimit(.minutes(10)))
struct TaskProgramsTests {
  let fixture: ReportFixture
  let programs: String

  init() throws {
    fixture = try ReportFixture()
    programs = fixture.broken.dropLastPart + "/task-programs"
    try #require(access(programs, X_OK) == 0, "\(programs) was not built")
  }

  private func spawn(_ names: [String], _ environment: [String] = []) throws -> SpawnedProgram {
    let nothing = open("/dev/null", O_RDONLY | O_CLOEXEC)
    defer { close(nothing) }
    return try SpawnedProgram(
      programs, names.map { Array($0.utf8) },
      environment: ToolFixture.environment + ["SWIFT_BACKTRACE=enable=no"] + environment, input: nothing)
  }

  private func run(_ names: [String], _ environment: [String] = []) throws -> SpawnedProgram.Result {
    try spawn(names, environment).wait()
  }

  /// The lines of the output that say that a program has ended.
  private func ends(_ result: SpawnedProgram.Result) -> [Substring] {
    result.text.split(separator: "\n").filter { $0.contains(" ended") }
  }

  private func lines(_ result: SpawnedProgram.Result) -> [Substring] {
    result.complaint.split(separator: "\n")
  }

  @Test("all programs end, without a word")
  func normal() throws {
    let result = try run(["hanging", "healthy", "sleeping"])
    #expect(result.ending == .exit(0))
    #expect(result.complaint == "")
    #expect(ends(result).count >= 20 + 10 + 10)
  }

  @Test("CONCOURSE_STRICT=report names each place at which a task blocks its thread, once")
  func report() throws {
    let result = try run(["hanging"], ["CONCOURSE_STRICT=report"])
    #expect(result.ending == .exit(0))
    let ends = ends(result)
    #expect(ends.count >= 20)
    for end in ends { #expect(end.hasSuffix(", 1 named"), "\(end)") }
    let lines = lines(result)
    #expect(lines.count == ends.count, "\(result.complaint)")
    for line in lines {
      #expect(line.hasPrefix("Concourse: task ") && line.contains(" blocks its thread in "), "\(line)")
      #expect(line.contains("Hanging"), "\(line)")
    }
    for part in [
      "in DispatchSemaphore.wait(), in ", "in DispatchGroup.wait(), in ", "in DispatchWorkItem.wait(), in ",
      "in DispatchOnce.perform(), in ", "in sync on queue \"ledger\", in ",
      "in sync on queue \"catalogue\", in ", "in sync on queue \"prices\", in ",
      "in asyncAndWait on queue \"index\", in ", "in sync on queue \"com.apple.main-thread\", in ",
      "Hanging.(runBlocking in ",
      ", on queue \"Swift global concurrent queue\"; on Apple's platforms no other thread would take its place",
    ] {
      #expect(lines.contains { $0.contains(part) }, "\(part): \(result.complaint)")
    }
    // The name of the task, of which the first to block is named.
    #expect(
      lines.contains { $0.contains(" \"loader 0\" blocks ") || $0.contains(" \"loader 1\" blocks ") },
      "\(result.complaint)")
  }

  @Test("CONCOURSE_STRICT=report names calls that the engine does not see, once for each place")
  func sleeps() throws {
    let result = try run(["sleeping"], ["CONCOURSE_STRICT=report"])
    #expect(result.ending == .exit(0))
    let ends = ends(result)
    #expect(ends.count >= 10)
    for end in ends { #expect(end.hasSuffix(", 1 named"), "\(end)") }
    let lines = lines(result)
    #expect(lines.count == ends.count, "\(result.complaint)")
    for line in lines {
      #expect(
        line.hasPrefix("Concourse: task ") && line.contains(" \"sleeper\" blocks its thread in "), "\(line)")
      #expect(line.contains(" at Sleeping.swift:"), "\(line)")
    }
    for part in [
      "in a sleep, in ", "in read(), in task_programs.(Pipe in ", "in read(), in task_programs.(Reader in ",
      "in poll(), in ", "in accept(), in task_programs.(LocalServer in ",
      ", in task_programs.(SystemLock in ", "in a condition, a semaphore or a lock of the system, in ",
    ] {
      #expect(lines.contains { $0.contains(part) }, "\(part): \(result.complaint)")
    }
    #expect(lines.count { $0.contains("in a lock that thread ") && $0.contains(" holds, in ") } == 5)
  }

  @Test(
    "CONCOURSE_STRICT=trap ends a process whose task sleeps", arguments: ["usleep", "read", "system-mutex"])
  func trapOfSleeper(name: String) throws {
    let result = try run([name], ["CONCOURSE_STRICT=trap"])
    #expect(result.ending == .signal(SIGILL))
    let lines = lines(result)
    #expect(lines.count == 1 && lines[0].hasSuffix(" [C116]"), "\(result.complaint)")
    #expect(ends(result).isEmpty)
  }

  @Test("CONCOURSE_STRICT=trap ends the process with that line")
  func trap() throws {
    let result = try run(["group"], ["CONCOURSE_STRICT=trap"])
    #expect(result.ending == .signal(SIGILL))
    let lines = lines(result)
    #expect(lines.count == 1, "\(result.complaint)")
    #expect(
      lines.first?.hasPrefix("Concourse: BUG IN CLIENT OF DISPATCH: task ") == true
        && lines.first?.contains(" blocks its thread in DispatchGroup.wait(), in ") == true
        && lines.first?.hasSuffix(" [C116]") == true, "\(result.complaint)")
    #expect(ends(result).isEmpty)
  }

  /// A virtual machine may stop one of its processors for longer than the patience of the strict mode: its thread then
  /// seems to sleep while others look. So one of three runs must be without a word.
  private func expectNoWord(_ environment: [String], _ location: SourceLocation = #_sourceLocation) throws {
    var result = try run(["healthy"], environment)
    for _ in 0..<2 where result.complaint != "" { result = try run(["healthy"], environment) }
    #expect(result.ending == .exit(0), sourceLocation: location)
    #expect(result.complaint == "", sourceLocation: location)
    #expect(ends(result).count >= 10, sourceLocation: location)
  }

  @Test("programs that block no thread in a task get no word", arguments: ["report", "trap"])
  func healthy(reaction: String) throws {
    try expectNoWord(["CONCOURSE_STRICT=\(reaction)"])
  }

  @Test("a bad value is named when the program begins, and ignored")
  func badValue() throws {
    let result = try run(["semaphore"], ["CONCOURSE_STRICT=yes"])
    #expect(result.ending == .exit(0))
    #expect(result.complaint == "Concourse: CONCOURSE_STRICT=yes is neither report nor trap; ignored\n")
    #expect(try run(["semaphore"], ["CONCOURSE_STRICT="]).complaint == "")
  }

  @Test("a child that has forked before the first thread names its tasks, too")
  func fork() throws {
    let result = try run(["--fork", "semaphore"], ["CONCOURSE_STRICT=report"])
    #expect(result.ending == .exit(0))
    #expect(lines(result).count == 1, "\(result.complaint)")
    #expect(ends(result) == ["semaphore ended, 1 named"])
  }

  // MARK: CONCOURSE_TASK_THREADS

  /// The names of the programs that hang.
  private func hanging() throws -> [String] {
    let usage = try run([])
    #expect(usage.ending == .exit(2))
    let words = usage.text.split { "|\n".contains($0) }.map(String.init)
    let names = words.drop { $0 != "sleeping" }.dropFirst(1).prefix { $0 != "children" }
    return Array(names)
  }

  @Test("CONCOURSE_TASK_THREADS=2: programs that block two threads in tasks hang")
  func narrow() throws {
    let names = try hanging()
    #expect(names.count >= 20)
    let programs = try names.map { Examined(try spawn([$0], ["CONCOURSE_TASK_THREADS=2"])) }
    for (name, program) in zip(names, programs) {
      #expect(program.program.waitForOutput("\(name) waits\n") == "\(name) waits\n")
    }
    // A program that does not hang ends within some milliseconds. On a slow machine the test may miss that.
    usleep(300_000)
    for (name, program) in zip(names, programs) {
      var status: Int32 = 0
      #expect(waitpid(program.program.identifier, &status, WNOHANG) == 0, "\(name) has ended")
    }
  }

  @Test("with four threads the same programs end")
  func wider() throws {
    let result = try run(["hanging", "healthy"], ["CONCOURSE_TASK_THREADS=4"])
    #expect(result.ending == .exit(0))
    #expect(result.complaint == "")
    #expect(ends(result).count >= 20 + 10)
  }

  @Test("programs that block no thread end with two threads, and with one", arguments: [1, 2])
  func healthyWithFewThreads(count: Int) throws {
    try expectNoWord(["CONCOURSE_TASK_THREADS=\(count)", "CONCOURSE_STRICT=report"])
  }

  @Test("the report names the setting")
  func verdict() throws {
    let program = Examined(try spawn(["semaphore"], ["CONCOURSE_TASK_THREADS=2"]))
    program.program.waitForOutput("waits")
    let text = try fixture.report(on: program.program) {
      $0.hasPrefix("Tasks have no more threads than CONCOURSE_TASK_THREADS=2 gives them: ")
    }
    #expect(text.contains("Hanging.swift:"), "\(text)")
  }

  @Test(
    "a bad number of threads is named when the program begins, and ignored",
    arguments: ["0", "4097", "many", "-1", "99999999999999999999"])
  func badCount(text: String) throws {
    let result = try run(["semaphore"], ["CONCOURSE_TASK_THREADS=\(text)"])
    #expect(result.ending == .exit(0))
    #expect(
      result.complaint
        == "Concourse: CONCOURSE_TASK_THREADS=\(text) is not a number from 1 to 4096; ignored\n")
  }

  // MARK: Privileges

  /// Runs a copy of the programs that has root's privileges, as another user.
  private func runPrivileged(_ name: String, _ environment: String) throws -> SpawnedProgram.Result {
    let folder = try TemporaryFolder()
    try #require(chmod(folder.path, 0o755) == 0)
    let copy = try folder.copy(programs, to: "task-programs")
    try #require(chmod(copy, 0o4755) == 0)
    return try fixture.spawn(
      "/usr/bin/setpriv", ["--reuid", "65534", "--regid", "65534", "--clear-groups", copy, name],
      environment: [environment]
    ).wait()
  }

  @Test(
    "a setuid program ignores both settings", .enabled(if: ReportFixture.canBecomeOther),
    arguments: ["CONCOURSE_STRICT=trap", "CONCOURSE_TASK_THREADS=1"])
  func privileged(setting: String) throws {
    let result = try runPrivileged("semaphore", setting)
    #expect(result.ending == .exit(0), "\(result.complaint)")
    #expect(result.complaint == "")
    #expect(result.text.hasPrefix("semaphore waits\nsemaphore ended"))
  }
}

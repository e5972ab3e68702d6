import Glibc
import Testing

@testable import ConcourseTool

/// The command, run as a program: programs that can be switched.
@Suite("concourse run", .timeLimit(.minutes(10)))
struct ConcourseRunTests {
  let fixture: ToolFixture

  init() throws { fixture = try ToolFixture.shared.get() }

  private func lines(_ result: SpawnedProgram.Result) -> [String] {
    #expect(result.ending == .exit(0), "\(result.complaint)")
    return result.text.split(separator: "\n").map(String.init)
  }

  @Test("the program has the library mapped, and not the one it was built for")
  func mapped() throws {
    let toolchain = fixture.toolchainLibraries + "/libdispatch.so"
    #expect(try lines(fixture.spawn(fixture.probe, ["maps", "dispatch.so"]).wait()) == [toolchain])
    let result = try fixture.run([fixture.probe, "maps", "dispatch.so"])
    #expect(lines(result) == [fixture.library])
    #expect(result.complaint == "")
    #expect(try lines(fixture.run([fixture.probe, "maps", "libincumbnt"])) == [fixture.libraryBehind])
  }

  @Test("a program that uses dispatch through a library of its own is switched as well")
  func indirect() throws {
    let library = try fixture.compile(
      "libindirect.so", from: "indirect.c",
      flags: ["-shared", "-fPIC"] + ToolFixture.dispatchFlags(fixture.toolchainLibraries))
    let program = try fixture.compile("indirect", flags: ["-DINDIRECT", library, "-Wl,-rpath,$ORIGIN"])
    #expect(try lines(fixture.run([program, "maps", "dispatch.so"])) == [fixture.library])
    let check = try fixture.run([program], options: ["--check"])
    #expect(
      lines(check) == ["\(program) can be switched: it needs libdispatch.so by way of \(library)"])
  }

  @Test("children are switched only with --children")
  func children() throws {
    let words = [fixture.probe, "child", fixture.probe, "maps", "dispatch.so"]
    #expect(try lines(fixture.run(words)) == [fixture.toolchainLibraries + "/libdispatch.so"])
    #expect(try lines(fixture.run(words, options: ["--children"])) == [fixture.library])
    let nested = [fixture.command, "run", "--library", fixture.library] + words
    #expect(
      try lines(fixture.run(nested, options: ["--children", "--force"])) == [fixture.library])
  }

  @Test(
    "the program gets the command's environment, entry by entry and in order",
    arguments: [
      [], ["LD_PRELOAD="], ["LD_PRELOAD=libm.so.6"],
      ["A=1", "LD_PRELOAD=libm.so.6:libc.so.6 libm.so.6", "B=2"],
      ["EMPTY=", "no assignment", "=odd"],
    ])
  func environment(_ entries: [String]) throws {
    let direct = try lines(fixture.spawn(fixture.probe, ["environment"], environment: entries).wait())
    #expect(try lines(fixture.run([fixture.probe, "environment"], environment: entries)) == direct)
    #expect(direct.starts(with: ToolFixture.environment + entries))
  }

  @Test("--strict and --pool set the library's settings, and nothing else")
  func settings() throws {
    let direct = try lines(fixture.spawn(fixture.probe, ["environment"]).wait())
    for (options, added) in [
      (["--strict", "--pool", "3"], ["CONCOURSE_STRICT=report", "CONCOURSE_TASK_THREADS=3"]),
      (["--strict=trap"], ["CONCOURSE_STRICT=trap"]), (["--pool=1"], ["CONCOURSE_TASK_THREADS=1"]),
    ] {
      // A value that the command inherited is replaced.
      let switched = try lines(
        fixture.run(
          [fixture.probe, "environment"], options: options,
          environment: added.map { $0.prefix { $0 != "=" } + "=old" }))
      #expect(switched.sorted() == (direct + added).sorted())
    }
  }

  @Test("preloaded libraries are still preloaded")
  func otherPreloads() throws {
    let library = try fixture.folder.copy(
      fixture.toolchainLibraries + "/libBlocksRuntime.so", to: "other/libfirst.so")
    let result = try fixture.run(
      [fixture.probe, "maps", ".so"], environment: ["LD_PRELOAD=\(library) \(fixture.foreignLibrary)"])
    let mapped = lines(result)
    #expect(mapped.contains(library))
    #expect(mapped.contains(fixture.library))
    #expect(!mapped.contains(fixture.foreignLibrary))
  }

  @Test("the exit status is the program's")
  func statuses() throws {
    for status: Int32 in [0, 3, 125, 255] {
      #expect(try fixture.run([fixture.probe, "exit", "\(status)"]).ending == .exit(status))
    }
    for signal in [SIGTERM, SIGKILL] {
      #expect(try fixture.run([fixture.probe, "raise", "\(signal)"]).ending == .signal(signal))
    }
  }

  @Test("the command becomes the program: a signal to its process reaches the program")
  func signals() throws {
    let asked = try fixture.spawnRun([fixture.probe, "identifier"])
    #expect(try lines(asked.wait()) == ["\(asked.identifier)"])
    for (signal, ending) in [(SIGTERM, SpawnedProgram.Ending.signal(SIGTERM)), (SIGUSR1, .exit(7))] {
      let program = try fixture.spawnRun([fixture.probe, "wait"])
      program.waitForOutput("ready\n")
      #expect(kill(program.identifier, signal) == 0)
      #expect(try program.wait().ending == ending)
    }
  }

  @Test("signals blocked and ignored, descriptors, parent, group and session are as without the command")
  func state() throws {
    let direct = try lines(fixture.spawn(fixture.probe, ["state"]).wait())
    #expect(direct.count >= 6)
    #expect(try lines(fixture.run([fixture.probe, "state"])) == direct)
  }

  @Test("standard input reaches the program whole")
  func input() throws {
    var ends: [Int32] = [0, 0]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
    let program = try fixture.spawnRun([fixture.probe, "copy"], input: ends[0])
    close(ends[0])
    let bytes = (0..<4096).map { UInt8(truncatingIfNeeded: $0) }
    #expect(write(ends[1], bytes, bytes.count) == bytes.count)
    close(ends[1])
    #expect(try program.wait().output == bytes)
  }

  @Test("the program has the terminal, and Ctrl-C reaches it")
  func terminal() throws {
    let words = ["in-terminal", fixture.command, "run", "--library", fixture.library, fixture.probe]
    let told = try fixture.spawn(fixture.plain, words + ["terminal"]).wait()
    #expect(told.text == "111 foreground: 1\r\n")
    #expect(told.ending == .exit(0))
    let interrupted = try fixture.spawn(fixture.plain, words + ["wait"]).wait()
    #expect(interrupted.ending == .exit(128 + SIGINT), "\(interrupted.text)")
  }

  @Test("arguments are passed on byte for byte, with the name that was typed")
  func arguments() throws {
    let odd: [UInt8] = [0xFF, 0x20, 0x80]
    let nothing = open("/dev/null", O_RDONLY | O_CLOEXEC)
    defer { close(nothing) }
    let words =
      ["run", "--library=\(fixture.library)", "probe", "words", "--check", ""].map { Array($0.utf8) } + [odd]
    let program = try SpawnedProgram(
      fixture.command, words, environment: ["PATH=/nowhere:\(fixture.folder.path)/bin"], input: nothing)
    #expect(try program.wait().output == Array("probe\nwords\n--check\n\n".utf8) + odd + [0x0A])
  }

  @Test("--check prints and does not run; --verbose prints, also the library's version, and runs")
  func telling() throws {
    let check = try fixture.run([fixture.probe, "exit", "3"], options: ["--check"])
    #expect(lines(check) == ["\(fixture.probe) can be switched: it needs libdispatch.so"])
    let verbose = try fixture.run([fixture.probe, "exit", "3"], options: ["--verbose"])
    #expect(verbose.ending == .exit(3))
    #expect(
      verbose.complaint == """
        concourse: \(fixture.probe) can be switched: it needs libdispatch.so
        concourse: \(fixture.probe) runs on Concourse \(ConcourseTool.version), \(fixture.library)

        """)
  }

  @Test("--version prints three numbers")
  func version() throws {
    let said = try lines(fixture.spawn(fixture.command, ["--version"]).wait())
    #expect(said == ["concourse \(ConcourseTool.version)"])
    #expect(ConcourseTool.version.split(separator: ".").compactMap { UInt($0) }.count == 3)
  }

  @Test("a script, and a program without dispatch, switch their children with --children")
  func passingOn() throws {
    let script = try fixture.folder.write(
      "#!/bin/sh\n\(fixture.probe) maps dispatch.so\n".utf8, to: "bin/script", mode: 0o755)
    #expect(try lines(fixture.run([script], options: ["--children"])) == [fixture.library])
    let words = [fixture.plain, "child", fixture.probe, "maps", "dispatch.so"]
    #expect(try lines(fixture.run(words, options: ["--children"])) == [fixture.library])
  }
}

import Glibc
import Testing

@testable import ConcourseTool

/// The command, run as a program: its refusals, with status and message.
@Suite("concourse run, refusals", .timeLimit(.minutes(10)))
struct ConcourseRunRefusalTests {
  let fixture: ToolFixture

  init() throws { fixture = try ToolFixture.shared.get() }

  /// Expects a refusal of one line with `text` in it, and the same verdict, on standard output, of `--check`.
  private func expectRefusal(
    of program: String, saying text: String, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let result = try fixture.run([program, "exit", "0"])
    result.expectRefusal(saying: "\(program) ", sourceLocation: sourceLocation)
    #expect(result.complaint.contains(text), "\(result.complaint)", sourceLocation: sourceLocation)
    let check = try fixture.run([program], options: ["--check"])
    #expect(check.ending == .exit(1), sourceLocation: sourceLocation)
    #expect("concourse: " + check.text == result.complaint, sourceLocation: sourceLocation)
  }

  @Test("statically linked programs")
  func statically() throws {
    let bare = try fixture.compile("bare", from: "bare.c", flags: ["-static", "-nostdlib"])
    try expectRefusal(of: bare, saying: "is statically linked")
    // Not every system's linker can do this.
    let movable = try fixture.compile(
      "bare-pie", from: "bare.c", flags: ["-static-pie", "-fPIE", "-nostdlib", "-fuse-ld=lld"])
    try expectRefusal(of: movable, saying: "is statically linked")
  }

  @Test("setuid and setgid programs")
  func otherRights() throws {
    let program = try fixture.folder.copy(fixture.probe, to: "bin/other-user")
    try #require(chmod(program, 0o4755) == 0)
    try expectRefusal(of: program, saying: "is setuid")
    try #require(chmod(program, 0o2755) == 0)
    try expectRefusal(of: program, saying: "is setgid")
  }

  @Test("scripts, and files that are neither")
  func scripts() throws {
    let folder = fixture.folder
    let script = try folder.write("#!/usr/bin/env sh\nexit 0\n".utf8, to: "bin/script2", mode: 0o755)
    try expectRefusal(of: script, saying: "is a script for /usr/bin/env")
    let text = try folder.write("exit 0\n".utf8, to: "bin/text", mode: 0o755)
    try expectRefusal(of: text, saying: "neither an ELF program nor a script")
    let bytes = try #require(FileContents.read(fixture.probe))
    let cut = try folder.write(bytes.prefix(100), to: "bin/cut", mode: 0o755)
    try expectRefusal(of: cut, saying: "is not a valid ELF program")
  }

  @Test("programs without dispatch, which --force runs with a warning")
  func without() throws {
    try expectRefusal(of: fixture.plain, saying: "does not use libdispatch.so")
    let forced = try fixture.run([fixture.plain, "exit", "3"], options: ["--force"])
    #expect(forced.ending == .exit(3))
    #expect(forced.complaint.hasPrefix("concourse: warning: \(fixture.plain) does not use libdispatch.so"))
    #expect(forced.complaint.contains("--force"))
  }

  @Test("programs with their own libdispatch, with visible symbols or not")
  func own() throws {
    let visible = try fixture.compile("own", from: "own.c", flags: ["-rdynamic"])
    try expectRefusal(of: visible, saying: "contains its own libdispatch")
    let hidden = try fixture.compile("own-hidden", from: "own.c", flags: [])
    try expectRefusal(of: hidden, saying: "contains its own libdispatch")
    // Also if a library needs libdispatch.so: the program's functions come first.
    let both = try fixture.compile(
      "own-both", from: "own.c",
      flags: ["-rdynamic", "-Wl,--no-as-needed"] + ToolFixture.dispatchFlags(fixture.toolchainLibraries))
    try expectRefusal(of: both, saying: "contains its own libdispatch")
  }

  @Test("missing programs, and programs that cannot be run, give the statuses of env and timeout")
  func absent() throws {
    #expect(try fixture.run(["no-such-program"]).ending == .exit(127))
    #expect(try fixture.run(["/no/such/program"]).ending == .exit(127))
    let text = try fixture.folder.write("#!/bin/sh\n".utf8, to: "bin/not-executable")
    let refused = try fixture.run([text])
    #expect(refused.ending == .exit(126))
    #expect(refused.complaint == "concourse: \(text) cannot be run: Permission denied\n")
    // With --check the reason is the result, as its help says.
    let check = try fixture.run([text], options: ["--check"])
    #expect(check.ending == .exit(1))
    #expect(check.text == "\(text) cannot be run: Permission denied\n")
    #expect(try fixture.run(["no-such-program"], options: ["--check"]).ending == .exit(1))
    #expect(try fixture.run([fixture.folder.path]).ending == .exit(126))
    // Found and permitted, but the kernel cannot run it.
    let data = try fixture.folder.write("exit 0\n".utf8, to: "bin/data", mode: 0o755)
    #expect(try fixture.run([data], options: ["--force"]).ending == .exit(126))
  }

  @Test("invalid command lines")
  func commandLine() throws {
    for (words, status): ([String], Int32) in [
      ([], 2), (["rnu"], 2), (["help", "rnu"], 2), (["run"], 125), (["run", "--chidlren", "ls"], 125),
      (["help"], 0), (["help", "run"], 0), (["run", "--help"], 0), (["--version"], 0),
    ] {
      let result = try fixture.spawn(fixture.command, words).wait()
      #expect(result.ending == .exit(status), "\(words)")
      #expect(result.output.isEmpty == (status != 0), "\(words)")
      #expect(result.complaint.isEmpty == (status == 0), "\(words)")
    }
  }
}

/// The command, run as a program: the library that it uses.
@Suite("concourse run, the library", .timeLimit(.minutes(10)))
struct ConcourseRunLibraryTests {
  let fixture: ToolFixture

  init() throws { fixture = try ToolFixture.shared.get() }

  /// Whether the loader finds no library for blocks by itself.
  private static var blocksRuntimeIsTheToolchainsOnly: Bool {
    ["/lib", "/usr/lib", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/usr/local/lib"]
      .allSatisfy { access($0 + "/libBlocksRuntime.so", F_OK) != 0 }
  }

  private func complaint(
    library: String, program: String? = nil, options: [String] = [], environment: [String] = []
  ) throws -> String {
    let result = try fixture.run(
      [program ?? fixture.probe, "exit", "0"], options: options, library: library, environment: environment)
    #expect(result.ending == .exit(125))
    #expect(result.complaint.split(separator: "\n").count == 1)
    return result.complaint
  }

  @Test("a foreign library is used if it is named, with a warning")
  func foreign() throws {
    let result = try fixture.run([fixture.probe, "maps", "dispatch.so"], library: fixture.foreignLibrary)
    #expect(result.ending == .exit(0))
    #expect(result.text == fixture.foreignLibrary + "\n")
    #expect(result.complaint.hasPrefix("concourse: warning: \(fixture.foreignLibrary) is not Concourse's"))
  }

  @Test("without --library it is beside the command, and a foreign one there is ignored")
  func beside() throws {
    let installed = try TemporaryFolder()
    let command = try installed.copy(fixture.command, to: "bin/concourse")
    func run() throws -> SpawnedProgram.Result {
      try fixture.spawn(command, ["run", fixture.probe, "maps", "dispatch.so"]).wait()
    }
    try installed.copy(fixture.foreignLibrary, to: "lib/libdispatch.so")
    let refused = try run()
    #expect(refused.ending == .exit(125))
    let triplet = LibrarySearch.triplet
    for place in ["bin/../lib/", "bin/../lib/concourse/", "bin/../lib/\(triplet)/concourse/", "bin/./"] {
      #expect(refused.complaint.contains("\(installed.path)/\(place)libdispatch.so"), "\(refused.complaint)")
    }
    for place in ["bin", "lib/\(triplet)/concourse", "lib/concourse", "lib"] {
      for name in ["libincumbnt.so", "libBlocksRuntime.so"] {
        try installed.copy(fixture.folder.path + "/lib/" + name, to: "\(place)/\(name)")
      }
      let library = try installed.copy(fixture.library, to: "\(place)/libdispatch.so")
      let result = try run()
      #expect(result.text == library + "\n", "\(result.complaint)")
    }
  }

  @Test("paths that the loader's list cannot carry")
  func paths() throws {
    for name in ["sp ace", "co:lon", "dol$ORIGINlar"] {
      let library = try fixture.folder.copy(fixture.library, to: "\(name)/libdispatch.so")
      #expect(try complaint(library: library).contains("LD_PRELOAD cannot carry"))
    }
    // A link with such a path is resolved first.
    let link = try fixture.folder.place("link to.so")
    try #require(symlink(fixture.library, link) == 0)
    let result = try fixture.run([fixture.probe, "maps", "dispatch.so"], library: link)
    #expect(result.text == fixture.library + "\n")
  }

  @Test("files that are not such a library")
  func others() throws {
    #expect(try complaint(library: "/no/such/libdispatch.so").contains("No such file or directory"))
    #expect(try complaint(library: fixture.folder.path).contains("Invalid argument"))
    let text = try fixture.folder.write("text".utf8, to: "text/libdispatch.so")
    #expect(try complaint(library: text).contains("it is not an ELF file"))
    #expect(try complaint(library: fixture.plain).contains("it has no soname"))
    #expect(try complaint(library: fixture.libraryBehind).contains("its soname is libincumbnt.so"))
  }

  /// The stand-in and the library behind it, without the library for blocks beside them. Each test has its own
  /// folder, since tests run at the same time.
  private func aloneLibrary(in folder: String) throws -> String {
    try fixture.folder.copy(fixture.libraryBehind, to: folder + "/libincumbnt.so")
    return try fixture.folder.copy(fixture.library, to: folder + "/libdispatch.so")
  }

  /// A program whose own libraries are not beside the one for blocks.
  private func programWithoutBlocks(in folder: String) throws -> String {
    try fixture.folder.copy(fixture.foreignLibrary, to: folder + "/original/libdispatch.so")
    let flags = ToolFixture.dispatchFlags(fixture.toolchainLibraries).dropLast()
    return try fixture.compile(
      "no-blocks-" + folder, flags: flags + ["-Wl,-rpath,\(fixture.folder.path)/\(folder)/original"])
  }

  @Test(
    "a library whose own libraries cannot be found, until they can",
    .enabled(if: Self.blocksRuntimeIsTheToolchainsOnly, "the system has a libBlocksRuntime.so of its own"))
  func wants() throws {
    let library = try aloneLibrary(in: "alone")
    let program = try programWithoutBlocks(in: "alone")
    let check = try fixture.run([program], options: ["--check"], library: library)
    #expect(check.ending == .exit(1))
    let wanted = "libincumbnt.so needs libBlocksRuntime.so"
    let refusal = "the library \(library) cannot be loaded: \(wanted)"
    #expect(check.text.hasPrefix("\(program) cannot be switched: \(refusal)"), "\(check.text)")
    for options in [[], ["--children"], ["--force"]] {
      let said = try complaint(library: library, program: program, options: options)
      #expect(said.hasPrefix("concourse: \(refusal)"), "\(said)")
      #expect(said.contains("LD_LIBRARY_PATH"))
    }
    // With --children any program may lead to one that is switched.
    let passing = try complaint(library: library, program: fixture.plain, options: ["--children"])
    #expect(passing.contains(wanted))
    let found = ["LD_LIBRARY_PATH=\(fixture.folder.path)/foreign"]
    for options in [[], ["--children"]] {
      let result = try fixture.run(
        [program, "maps", "dispatch.so"], options: options, library: library, environment: found)
      #expect(result.text == library + "\n", "\(result.complaint)")
    }
    let foundCheck = try fixture.run([program], options: ["--check"], library: library, environment: found)
    #expect(foundCheck.ending == .exit(0))
  }

  @Test(
    "libraries that the library needs and the program finds, its children get by path",
    .enabled(if: Self.blocksRuntimeIsTheToolchainsOnly, "the system has a libBlocksRuntime.so of its own"))
  func companions() throws {
    let library = try aloneLibrary(in: "companions")
    let words = ["maps", "dispatch.so"]
    let blocks = try fixture.compile(
      "blocks",
      flags: ToolFixture.dispatchFlags(fixture.toolchainLibraries) + [
        "-Wl,--no-as-needed", "-lBlocksRuntime",
      ])
    // A child without a path to it, one with a path to another libdispatch.so; and both without the variable.
    for child in [fixture.plain, try programWithoutBlocks(in: "companions")] {
      for parent in [fixture.probe, blocks] {
        let result = try fixture.run(
          [parent, "child", child] + words, options: ["--children"], library: library)
        #expect(result.text == library + "\n", "\(child): \(result.complaint)")
      }
      let lost = try fixture.run(
        ["/usr/bin/env", "-u", "LD_LIBRARY_PATH", child] + words, options: ["--children"], library: library,
        environment: ["LD_LIBRARY_PATH=\(fixture.folder.path)/foreign"])
      #expect(lost.text == library + "\n", "\(child): \(lost.complaint)")
    }
    // A path that the loader's list cannot carry, though LD_LIBRARY_PATH can.
    let spaced = try fixture.folder.copy(
      fixture.toolchainLibraries + "/libBlocksRuntime.so", to: "with space/libBlocksRuntime.so")
    let said = try complaint(
      library: library, program: fixture.plain, options: ["--children"],
      environment: ["LD_LIBRARY_PATH=\(spaced.dropLastPart)"])
    #expect(said.contains("\(spaced), contains a space"), "\(said)")
    // The program alone: its children are as they were.
    let result = try fixture.run([fixture.probe, "child", fixture.plain, "maps", ".so"], library: library)
    #expect(result.ending == .exit(0))
    #expect(!result.text.contains("libBlocksRuntime.so"))
    let check = try fixture.run([fixture.probe], options: ["--check"], library: library)
    #expect(check.ending == .exit(0))
  }
}

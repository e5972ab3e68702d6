import DupesKit
import Glibc
import JSONOracle
import Testing

/// The program as its users see it: output, messages, exit status.
@Suite struct ProgramTests {
  private let tree = TemporaryTree()

  private func run(_ arguments: String...) -> ProgramRun {
    ProgramRun(arguments.map(\.bytes), in: tree)
  }

  private func fill() {
    tree.directory("d")
    tree.file("d/a", "content".bytes)
    tree.file("d/b", "content".bytes)
    tree.hardLink("d/c", to: "d/a")
    tree.file("d/x", "other".bytes)
    tree.file("d/y", "other".bytes)
  }

  @Test func textIsSortedAndTheSameInEachRun() {
    fill()
    for jobs in ["1", "2", "16"] {
      let run = run("d", "--jobs", jobs)
      #expect(run.output == "d/a\n\td/c\nd/b\n\nd/x\nd/y\n\n".bytes)
      #expect(
        run.errors == "dupes: 5 files, 2 sets of duplicates, 2 files (12 bytes) more than needed\n")
      #expect(run.status == 0)
    }
  }

  @Test func hardLinksQuietAndTheCurrentDirectory() {
    fill()
    let run = run("--hardlinks", "--quiet", ".")
    #expect(run.output == "./d/a\n./d/b\n./d/c\n\n./d/x\n./d/y\n\n".bytes)
    #expect(run.errors == "")
    #expect(run.status == 0)
  }

  @Test func namesThatAreNoText() {
    let strange: Bytes = [0x66, 0xFF, 0x0A, 0x22]  // f, no UTF-8, newline, quotation mark
    tree.file(named: strange, "content".bytes)
    tree.file("g\t\\ü", "content".bytes)
    let null = run("-0q", ".")
    #expect(null.status == 2)  // short options are not joined
    let text = run("-0", "-q", ".")
    #expect(text.output == "./".bytes + strange + [0] + "./g\t\\ü".bytes + [0, 0])
    #expect(text.status == 0)
  }

  @Test func jsonIsValidAndLosesNoName() throws {
    let strange: Bytes = [0x66, 0xFF, 0x0A, 0x22, 0xED, 0xA0, 0x80, 0xF0, 0x9F, 0x98]
    tree.file(named: strange, "content".bytes)
    tree.file("g\t\\ü😀\u{7F}", "content".bytes)
    tree.hardLink("h", to: "g\t\\ü😀\u{7F}")
    let run = run("--json", "-q", ".", "missing")
    #expect(run.status == 1)
    let json = try JSONOracle.parse(run.output)
    let set = try #require(json[key: "sets"]?.elements.first)
    #expect(set[key: "size"] == .number(7))
    let files = try #require(set[key: "files"]?.elements)
    #expect(files.count == 2)
    let replaced = String(repeating: "\u{FFFD}", count: 3)
    #expect(files[0][key: "path"] == .string("./f\u{FFFD}\n\"\(replaced)\(replaced)"))
    #expect(files[0][key: "bytes"] == .string("2e2f66ff0a22eda080f09f98"))
    #expect(files[1][key: "path"] == .string("./g\t\\ü😀\u{7F}"))
    #expect(files[1][key: "bytes"] == nil)
    #expect(files[1][key: "links"]?.elements == [.object(["path": .string("./h")])])
    #expect(json[key: "skipped"]?.elements.first?[key: "path"] == .string("missing/"))
    #expect(json[key: "summary"]?[key: "duplicates"] == .number(1))
    #expect(json[key: "summary"]?[key: "wastedBytes"] == .number(7))
  }

  @Test func jsonOfNothingIsValidToo() throws {
    let run = run("--json", ".")
    #expect(run.status == 0)
    let json = try JSONOracle.parse(run.output)
    #expect(json[key: "sets"] == .array([]))
    #expect(json[key: "skipped"] == .array([]))
  }

  @Test func helpVersionAndMistakes() {
    let help = run("--help")
    #expect(help.status == 0)
    #expect(help.output.starts(with: "usage: dupes".bytes))
    #expect(run("--version").status == 0)
    let wrong = run("--wrong", ".")
    #expect(wrong.status == 2)
    #expect(wrong.errors == "dupes: no such option: --wrong\nTry 'dupes --help'.\n")
    #expect(wrong.output.isEmpty)
    #expect(run().status == 2)
  }

  @Test func whatIsSkippedIsNamedAndChangesTheExitStatus() {
    fill()
    let run = run("-q", "missing", "d")
    #expect(run.status == 1)
    #expect(run.errors == "dupes: missing/: No such file or directory, skipped\n")
    #expect(run.output == "d/a\n\td/c\nd/b\n\nd/x\nd/y\n\n".bytes)
  }

  /// A full disk, in the form of a device that always is one.
  @Test func resultsThatCannotBeWritten() {
    fill()
    let run = ProgramRun(
      ["d".bytes, "-q".bytes],
      through: ["/bin/sh", "-c", "exec \"$0\" \"$@\" >/dev/full", ProgramRun.program],
      in: tree)
    #expect(run.status == 1)
    #expect(run.errors == "dupes: standard output: No space left on device\n")
  }

  @Test func fewDescriptorsAreEnough() {
    for directory in 0..<200 {
      tree.directory("d\(directory)")
      tree.file("d\(directory)/f", "content".bytes)
    }
    let run = ProgramRun(
      ["-q".bytes, ".".bytes],
      through: ["/bin/sh", "-c", "ulimit -n 24; exec \"$0\" \"$@\"", ProgramRun.program], in: tree)
    #expect(run.errors == "")
    #expect(run.status == 0)
    #expect(run.output.count { $0 == UInt8(ascii: "\n") } == 201)
  }

  /// Root may read everything, so root runs the program as somebody else.
  @Test func unreadableFilesAndDirectories() {
    fill()
    tree.directory("d/closed")
    tree.file("d/secret", "content".bytes)
    #expect(chmod(tree.path("d/secret"), 0) == 0)
    #expect(chmod(tree.path("d/closed"), 0) == 0)
    var command = [ProgramRun.program]
    let copies = TemporaryTree()
    if geteuid() == 0 {
      // The build folder may be closed to others.
      let copy = ProgramRun(
        [copies.bytes("dupes")], through: ["/bin/cp", ProgramRun.program], in: tree)
      #expect(copy.status == 0)
      command = ["/usr/bin/setpriv", "--reuid", "65534", "--clear-groups", copies.path("dupes")]
    }
    let run = ProgramRun(["-q".bytes, "d".bytes], through: command, in: tree)
    #expect(chmod(tree.path("d/closed"), 0o755) == 0)
    #expect(
      run.errors
        == "dupes: d/closed/: Permission denied, skipped\ndupes: d/secret: Permission denied, skipped\n")
    #expect(run.output == "d/a\n\td/c\nd/b\n\nd/x\nd/y\n\n".bytes)
    #expect(run.status == 1)
  }

  /// The files take minutes to compare, so the signal, which is sent once the progress line speaks of it, comes
  /// in the middle of it. On a busy machine the first lines may be about the files found.
  @Test(.timeLimit(.minutes(1)), arguments: [(SIGINT, 130), (SIGTERM, 143)] as [(Int32, Int32)])
  func signalsCancel(signal: Int32, status: Int32) {
    tree.sparseFile("huge1", size: 1 << 40)
    tree.sparseFile("huge2", size: 1 << 40)
    let comparing = "\r\u{1B}[Kdupes: 0 of 2 files compared"
    let run = ProgramRun(["--progress".bytes, ".".bytes], in: tree, whenErrorsContain: comparing) { process in
      #expect(kill(process, signal) == 0)
    }
    #expect(run.status == status)
    #expect(run.output.isEmpty)
    #expect(run.errors.hasPrefix("\r\u{1B}[Kdupes: "))
    #expect(run.errors.contains(comparing))
    #expect(run.errors.hasSuffix("\r\u{1B}[Kdupes: interrupted, no results\n"))
  }

  /// As under nohup: of the two signals sent, only the one that was not ignored may do anything.
  @Test(.timeLimit(.minutes(1))) func aSignalThatWasIgnoredStaysIgnored() {
    tree.sparseFile("huge1", size: 1 << 40)
    tree.sparseFile("huge2", size: 1 << 40)
    let run = ProgramRun(
      ["--progress".bytes, ".".bytes],
      through: ["/bin/sh", "-c", "trap '' INT; exec \"$0\" \"$@\"", ProgramRun.program], in: tree,
      whenErrorsContain: "\r\u{1B}[Kdupes: 0 of 2 files compared"
    ) { process in
      #expect(kill(process, SIGINT) == 0)
      #expect(kill(process, SIGTERM) == 0)
    }
    #expect(run.status == 143)
    #expect(run.errors.hasSuffix("\r\u{1B}[Kdupes: interrupted, no results\n"))
  }
}

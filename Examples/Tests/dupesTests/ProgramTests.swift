import ExampleSupport
import Glibc
import TestSupport
import Testing

@testable import dupes

/// The program as its users see it: options, output, messages, exit status.
@Suite(.timeLimit(.minutes(10))) struct DupesProgramTests {
  private let tree = TemporaryTree()

  /// A run to its end.
  private func run(_ arguments: String..., prelude: String = ":") -> (
    status: Int32, output: Bytes, errors: String
  ) {
    let run = ProgramRun("dupes", arguments.map(\.bytes), in: tree.root, prelude: prelude)
    return (run.end(), run.output, run.errorText)
  }

  private func fill() {
    tree.directory("d")
    tree.file("d/a", "content".bytes)
    tree.file("d/b", "content".bytes)
    tree.hardLink("d/c", to: "d/a")
    tree.file("d/x", "other".bytes)
    tree.file("d/y", "other".bytes)
  }

  @Test func everyOptionIsUnderstood() throws {
    var arguments = Arguments(
      ["dir", "-j", "3", "--min-size=2K", "-0", "-q", "--progress", "--", "-0"].map(\.bytes))
    let options = try Options(&arguments)
    #expect(options.roots == ["dir".bytes, "-0".bytes])
    #expect(options.jobs == 3 && options.minimumSize == 2048)
    #expect(options.endsNamesWithNull && options.quiet && options.progress)
    var none = Arguments([])
    #expect(throws: UsageError("no directory given")) { try Options(&none) }
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
    let quiet = run("--quiet", ".")
    #expect(quiet.output == "./d/a\n\t./d/c\n./d/b\n\n./d/x\n./d/y\n\n".bytes)
    #expect(quiet.errors == "" && quiet.status == 0)
  }

  @Test func namesThatAreNoText() {
    let strange: Bytes = [0x66, 0xFF, 0x0A, 0x22]  // f, no UTF-8, newline, quotation mark
    tree.file(named: strange, "content".bytes)
    tree.file("g\t\\ü", "content".bytes)
    let text = run("-0", "-q", ".")
    #expect(text.output == "./".bytes + strange + [0] + "./g\t\\ü".bytes + [0, 0])
    #expect(text.status == 0)
  }

  @Test func helpAndMistakes() {
    let help = run("--help")
    #expect(help.status == 0)
    #expect(help.output.starts(with: "usage: dupes".bytes))
    let wrong = run("--wrong", ".")
    #expect(wrong.status == 2)
    #expect(wrong.errors == "dupes: no such option: --wrong\nTry 'dupes --help'.\n")
    #expect(wrong.output.isEmpty)
    #expect(run().status == 2)
    #expect(run("-0q", ".").status == 2)  // short options are not joined
  }

  @Test func whatIsSkippedIsNamedAndChangesTheExitStatus() {
    fill()
    let run = run("-q", "missing", "d")
    #expect(run.status == 1)
    #expect(run.errors == "dupes: missing/: No such file or directory, skipped\n")
    #expect(run.output == "d/a\n\td/c\nd/b\n\nd/x\nd/y\n\n".bytes)
  }

  @Test func resultsThatCannotBeWritten() {
    fill()
    let run = run("d", "-q", prelude: "exec >/dev/full")
    #expect(run.status == 1)
    #expect(run.errors == "dupes: standard output: No space left on device\n")
  }

  @Test func fewDescriptorsAreEnough() {
    for directory in 0..<200 {
      tree.directory("d\(directory)")
      tree.file("d\(directory)/f", "content".bytes)
    }
    let run = run("-q", ".", prelude: "ulimit -n 24")
    #expect(run.errors == "")
    #expect(run.status == 0)
    #expect(run.output.count { $0 == UInt8(ascii: "\n") } == 201)
  }

  /// Root may read everything, so the program of root's run is another user's.
  @Test func unreadableFilesAndDirectories() {
    fill()
    tree.directory("d/closed")
    tree.file("d/secret", "content".bytes)
    #expect(chmod(tree.path("d/secret"), 0) == 0)
    #expect(chmod(tree.path("d/closed"), 0) == 0)
    var (program, arguments) = ("dupes", ["-q", "d"])
    let copies = TemporaryTree()
    if geteuid() == 0 {
      // The build folder may be closed to other users.
      #expect(ProgramRun("/bin/cp", ProgramRun.path(of: "dupes"), copies.path("dupes")).end() == 0)
      program = "/usr/bin/setpriv"
      arguments = ["--reuid", "65534", "--clear-groups", copies.path("dupes")] + arguments
    }
    let run = ProgramRun(program, arguments.map(\.bytes), in: tree.root)
    #expect(run.end() == 1)
    #expect(chmod(tree.path("d/closed"), 0o755) == 0)
    #expect(
      run.errorText
        == "dupes: d/closed/: Permission denied, skipped\ndupes: d/secret: Permission denied, skipped\n")
    #expect(run.output == "d/a\n\td/c\nd/b\n\nd/x\nd/y\n\n".bytes)
  }

  /// The files take minutes to compare, so the signal, sent after the progress line has mentioned them, comes in the
  /// middle of that.
  @Test(arguments: [(SIGINT, 130), (SIGTERM, 143)] as [(Int32, Int32)])
  func signalsCancel(signal: Int32, status: Int32) {
    tree.sparseFile("huge1", size: 1 << 40)
    tree.sparseFile("huge2", size: 1 << 40)
    let run = ProgramRun("dupes", "--progress", ".", in: tree.root)
    #expect(run.wait { $0.errorText.contains("\r\u{1B}[Kdupes: 0 of 2 files compared") })
    run.send(signal)
    #expect(run.end() == status)
    #expect(run.output.isEmpty)
    #expect(run.errorText.hasPrefix("\r\u{1B}[Kdupes: "))
    #expect(run.errorText.hasSuffix("\r\u{1B}[Kdupes: interrupted, no results\n"))
  }

  /// As under nohup: of the two signals sent, only the one that was not ignored has an effect.
  @Test func aSignalThatWasIgnoredStaysIgnored() {
    tree.sparseFile("huge1", size: 1 << 40)
    tree.sparseFile("huge2", size: 1 << 40)
    let run = ProgramRun("dupes", "--progress", ".", in: tree.root, prelude: "trap '' INT")
    #expect(run.wait { $0.errorText.contains("\r\u{1B}[Kdupes: 0 of 2 files compared") })
    run.send(SIGINT)
    run.send(SIGTERM)
    #expect(run.end() == 143)
    #expect(run.errorText.hasSuffix("\r\u{1B}[Kdupes: interrupted, no results\n"))
  }
}

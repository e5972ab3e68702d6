import ExampleSupport
import Glibc
import TestSupport
import Testing

@testable import tail_many

/// The program on files that grow, on names that lead to other files, and at its ends.
@Suite(.timeLimit(.minutes(10))) struct FollowingTests {
  private let logs = TemporaryTree()

  private func start(_ arguments: String..., prelude: String = ":") -> TailRun {
    TailRun(arguments, in: logs, prelude: prelude)
  }

  // MARK: Files that grow

  @Test func theLastLinesAndThenTheNewOnes() {
    logs.append((1...30).map { "\($0)\n" }.joined(), to: "a")
    let run = start("-n", "3", "a")
    run.expect("28\n29\n30\n")
    for line in 31...60 {
      logs.append("\(line)\n", to: "a")
      run.expect("\(line)\n")
    }
    run.send(SIGINT)
    #expect(run.end() == 130)
    #expect(run.errorText == "")
  }

  @Test func theLastLinesOfAFileThatIsLargerThanOneRead() {
    logs.append((1...30_000).map { "line \($0)\n" }.joined(), to: "a")
    logs.append("b\n", to: "b")
    let run = start("a", "b")
    run.expect("==> a <==\n" + (29_991...30_000).map { "line \($0)\n" }.joined() + "\n==> b <==\nb\n")
    logs.append("more\n", to: "a")
    run.expect("\n==> a <==\nmore\n")
  }

  /// `-n` is about the lines that are there at the start.
  @Test func everythingIsNewInAFileThatWasEmpty() {
    logs.append("", to: "a")
    let run = start("-n", "1", "a", "absent")
    run.expectMessage("absent: No such file or directory, waiting for it")
    logs.append("1\n2\n3\n", to: "a")
    run.expect("==> a <==\n1\n2\n3\n")
    logs.append("4\n5\n", to: "absent")
    run.expect("\n==> absent <==\n4\n5\n")
  }

  /// No line is lost, repeated or torn, and those of a file keep their order.
  @Test func manyFilesThatGrowAtOnce() {
    let (files, rounds) = (200, 40)
    for file in 0..<files { logs.append("\(file) -1\n", to: "f\(file)") }
    let run = TailRun(["-n", "1"] + (0..<files).map { "f\($0)" }, in: logs)
    let group = DispatchGroup()
    let logs = logs
    for writer in 0..<4 {
      DispatchQueue.global().async(group: group) {
        for round in 0..<rounds {
          for file in stride(from: writer, to: files, by: 4) {
            // In two writes, so that the program may find half a line.
            logs.append("\(file) ", to: "f\(file)")
            logs.append("\(round)\n", to: "f\(file)")
          }
        }
      }
    }
    group.wait()
    // The first line may have come after some of the others, so `-n 1` may have left lines out: the last ones have
    // not.
    for file in 0..<files { logs.append("\(file) end\n", to: "f\(file)") }
    // No other line has an `e` in it.
    run.wait { run in run.output.count { $0 == UInt8(ascii: "e") } == files }
    run.send(SIGTERM)
    #expect(run.end() == 143)
    var last = [Int?](repeating: nil, count: files)
    var header = ""
    for line in run.outputText.split(separator: "\n") {
      if line.hasPrefix("==> ") {
        header = String(line.dropFirst(4).dropLast(4))
        continue
      }
      let words = line.split(separator: " ")
      guard words.count == 2, let file = Int(words[0]), header == "f\(file)",
        let round = words[1] == "end" ? rounds : Int(words[1])
      else {
        Issue.record("a torn line below \(header): \(line)")
        break
      }
      #expect(last[file] == nil || last[file] == round - 1)
      last[file] = round
    }
    #expect(last.allSatisfy { $0 == rounds })
  }

  @Test func anUnfinishedLineWaitsForItsEnd() {
    logs.append("one\nun", to: "a")
    let run = start("a")
    run.expect("one\n")
    logs.append("finished", to: "a")
    logs.append(" line\nnext\nnever", to: "a")
    run.expect("unfinished line\nnext\n")
    run.send(SIGINT)
    run.expect("never\n")
    #expect(run.end() == 130)
  }

  @Test func truncation() {
    logs.append("old 1\nold 2\nhalf", to: "log")
    let run = start("log")
    run.expect("old 1\nold 2\n")
    for round in 0..<10 {
      logs.file("log", Bytes("\(round)\n".utf8))
      run.expect(round == 0 ? "half\n0\n" : "\(round)\n")
      logs.append("much longer than what comes after the next truncation\n", to: "log")
      run.expect("much longer than what comes after the next truncation\n")
    }
    run.expectMessage("log: truncated, beginning again")
  }

  // MARK: Names that lead to other files

  /// The writer of a log goes on with the old file until it notices the rotation.
  @Test func rotation() {
    logs.append("start\n", to: "log")
    let run = start("log")
    run.expect("start\n")
    for round in 0..<20 {
      logs.rename("log", to: "log.1")
      run.expectMessages("log: is gone, waiting for it", count: round + 1)
      logs.append("\(round) late\nunfinished", to: "log.1")
      run.expect("\(round) late\n")
      logs.append("\(round) new\n", to: "log")
      run.expect("unfinished\n\(round) new\n")
    }
    run.expectOpenFiles(1, under: logs.root)
    run.send(SIGINT)
    #expect(run.end() == 130)
  }

  /// A file renamed over the name, and a symbolic link that leads elsewhere.
  @Test func replacement() {
    logs.append("one\n", to: "1")
    logs.append("two\n", to: "2")
    logs.symbolicLink("log", to: "1")
    let run = start("log")
    run.expect("one\n")
    logs.symbolicLink("fresh", to: "2")
    logs.rename("fresh", to: "log")
    run.expect("two\n")
    logs.append("three\n", to: "3")
    logs.rename("3", to: "log")
    run.expect("three\n")
    logs.append("four\n", to: "log")
    run.expect("four\n")
  }

  @Test func aNameWhoseDirectoryDoesNotExistYet() {
    let run = start("d/e/log")
    run.expectMessage("d/e/log: No such file or directory, waiting for it")
    logs.directory("d")
    logs.directory("d/e")
    logs.append("one\n", to: "d/e/log")
    run.expect("one\n")
    run.expectMessage("d/e/log: is there")
    logs.rename("d/e", to: "d/old")
    logs.directory("d/e")
    logs.append("two\n", to: "d/e/log")
    run.expect("two\n")
  }

  /// Root may read everything, so the program of root's run is another user's.
  @Test func anUnreadableFileIsWaitedFor() {
    logs.append("one\n", to: "log")
    #expect(chmod(logs.path("log"), 0) == 0)
    var (program, arguments) = ("tail-many", ["log"])
    let copies = TemporaryTree()
    if geteuid() == 0 {
      // The build folder may be closed to other users.
      #expect(ProgramRun("/bin/cp", ProgramRun.path(of: "tail-many"), copies.path("tail-many")).end() == 0)
      program = "/usr/bin/setpriv"
      arguments = ["--reuid", "65534", "--clear-groups", copies.path("tail-many"), "log"]
    }
    let run = TailRun(arguments, of: program, in: logs)
    run.expectMessage("log: Permission denied, waiting for it")
    #expect(chmod(logs.path("log"), 0o644) == 0)
    run.expect("one\n")
  }

  // MARK: Ends

  /// While the output is not read, the program waits for that and still sees events.
  @Test func aSlowReader() {
    let block = (0..<4096).map { "line \($0) of a file that is much larger than a pipe\n" }.joined()
    logs.append("", to: "a")
    let run = start("a", "absent")
    run.expectMessage("absent: No such file or directory, waiting for it")
    for _ in 0..<40 { logs.append(block, to: "a") }
    logs.append("", to: "absent")
    #expect(run.wait(readingOutput: false) { $0.errorText.contains("absent: is there") })
    run.expect("==> a <==\n")
    for _ in 0..<40 { run.expect(block) }
  }

  @Test func theSecondCtrlCDoesNotWaitForTheReader() {
    logs.append("", to: "a")
    let run = start("a", "absent")
    run.expectMessage("absent: No such file or directory, waiting for it")
    logs.append(String(repeating: "a line\n", count: 200_000), to: "a")
    run.send(SIGINT)
    // A signal that is sent while an equal one is pending is lost, so the second is another.
    run.send(SIGTERM)
    #expect([130, 143].contains(run.end(readingOutput: false)))
  }

  @Test func aReaderThatGoesEndsIt() {
    logs.append("one\n", to: "a")
    let run = start("a")
    run.expect("one\n")
    run.closeOutput()
    logs.append("two\n", to: "a")
    #expect(run.end(readingOutput: false) == 1)
    #expect(run.errorText == "")
  }

  @Test func outputThatCannotBeWritten() {
    logs.append("one\n", to: "a")
    let run = start("a", prelude: "exec >/dev/full")
    #expect(run.end() == 1)
    #expect(run.errorText == "tail-many: standard output: No space left on device\n")
  }

  @Test func helpAndMistakes() {
    let help = start("--help")
    #expect(help.end() == 0)
    #expect(help.outputText.hasPrefix("usage: tail-many"))
    let wrong = start("--wrong", "a")
    #expect(wrong.end() == 2)
    #expect(wrong.errorText == "tail-many: no such option: --wrong\nTry 'tail-many --help'.\n")
    #expect(start().end() == 2)
  }
}

/// A run of the program, with expectations about what comes next.
private final class TailRun {
  private let run: ProgramRun
  /// How much of the output `expect` has seen.
  private var consumed = 0

  init(_ arguments: [String], of program: String = "tail-many", in logs: TemporaryTree, prelude: String = ":")
  {
    run = ProgramRun(program, arguments.map { Bytes($0.utf8) }, in: logs.root, prelude: prelude)
  }

  var outputText: String { run.outputText }
  var errorText: String { run.errorText }
  func send(_ signal: Int32) { run.send(signal) }
  func closeOutput() { run.closeOutput() }
  func end(readingOutput: Bool = true) -> Int32 { run.end(readingOutput: readingOutput) }

  @discardableResult
  func wait(
    readingOutput: Bool = true, _ location: SourceLocation = #_sourceLocation,
    until condition: (ProgramRun) -> Bool
  ) -> Bool {
    if run.wait(readingOutput: readingOutput, until: condition) { return true }
    Issue.record(
      "nothing more comes; output so far: \(outputText.suffix(2000)); messages: \(errorText.suffix(2000))",
      sourceLocation: location)
    return false
  }

  /// Waits until the output goes on, and expects this text.
  func expect(_ text: String, _ location: SourceLocation = #_sourceLocation) {
    let wanted = Bytes(text.utf8)
    wait(location) { $0.output.count >= consumed + wanted.count }
    let next = run.output.dropFirst(consumed).prefix(wanted.count)
    #expect(String(decoding: next, as: UTF8.self) == text, sourceLocation: location)
    consumed += wanted.count
  }

  func expectMessage(_ text: String, _ location: SourceLocation = #_sourceLocation) {
    expectMessages(text, count: 1, location)
  }

  /// Waits until the message has come so many times.
  func expectMessages(_ text: String, count: Int, _ location: SourceLocation = #_sourceLocation) {
    wait(location) { $0.errorText.split(separator: "\n").count { $0 == "tail-many: " + text } >= count }
  }

  /// Waits until the program has so many files under the directory open, deleted ones included.
  func expectOpenFiles(
    _ expected: Int, under directory: String, _ location: SourceLocation = #_sourceLocation
  ) {
    let start = ContinuousClock.now
    while openFiles(under: directory) != expected {
      guard start.duration(to: .now) < .seconds(120) else {
        Issue.record(
          "\(openFiles(under: directory)) files are open, not \(expected)", sourceLocation: location)
        return
      }
      usleep(1000)
    }
  }

  private func openFiles(under directory: String) -> Int {
    (0..<256).count { descriptor in
      var target = [UInt8](repeating: 0, count: Int(PATH_MAX))
      let length = target.withUnsafeMutableBytes { bytes in
        // SAFETY: characters have no structure.
        readlink(
          "/proc/\(run.process)/fd/\(descriptor)", bytes.baseAddress!.assumingMemoryBound(to: CChar.self),
          bytes.count)
      }
      return target.prefix(max(0, length)).starts(with: Bytes("\(directory)/".utf8))
    }
  }
}

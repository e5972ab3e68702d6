import Glibc
import JSONOracle
import TailKit
import Testing

/// The program on files that grow, and at its ends.
@Suite(.timeLimit(.minutes(2))) struct FollowingTests {
  private let logs = LogDirectory()

  private func start(_ arguments: String...) throws -> TailRun { try TailRun(arguments, in: logs) }

  @Test func theLastLinesAndThenTheNewOnes() throws {
    logs.append((1...30).map { "\($0)\n" }.joined(), to: "a")
    let run = try start("-n", "3", "a")
    run.expect("28\n29\n30\n")
    for line in 31...60 {
      logs.append("\(line)\n", to: "a")
      run.expect("\(line)\n")
    }
    run.send(SIGINT)
    #expect(run.end() == 130)
    #expect(run.errorText == "")
  }

  @Test func theLastLinesComeInTheOrderOfTheNamesAndInOnePiece() throws {
    // More than is read at once.
    let long = (1...30_000).map { "line \($0)\n" }.joined()
    for name in ["c", "a", "b"] { logs.append(long, to: name) }
    let run = try start("-n", "all", "--idle-exit", "0", "c", "a", "b")
    #expect(run.end() == 0)
    #expect(run.outputText == "==> c <==\n\(long)\n==> a <==\n\(long)\n==> b <==\n\(long)")
  }

  /// No line is lost, repeated or torn, and those of a file keep their order.
  @Test func manyFilesThatGrowAtOnce() throws {
    let (files, rounds) = (200, 40)
    for file in 0..<files { logs.append("\(file) -1\n", to: "f\(file)") }
    let run = try TailRun(["--prefix", "-n", "1"] + (0..<files).map { "f\($0)" }, in: logs)
    run.expect((0..<files).map { "f\($0): \($0) -1\n" }.joined())
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
    run.expectStatus { $0.lines == files * (rounds + 1) && $0.pending == 0 }
    run.send(SIGTERM)
    #expect(run.end() == 143)
    var next = [Int](repeating: -1, count: files)
    for line in run.outputText.split(separator: "\n") {
      let words = line.split(separator: " ")
      guard words.count == 3, let file = Int(words[1]), let round = Int(words[2]) else {
        Issue.record("a torn line: \(line)")
        break
      }
      #expect(words[0] == "f\(file):" && round == next[file])
      next[file] += 1
    }
    #expect(next.allSatisfy { $0 == rounds })
  }

  @Test func anUnfinishedLineWaitsForItsEnd() throws {
    logs.append("one\nun", to: "a")
    let run = try start("a")
    run.expect("one\n")
    logs.append("finished", to: "a")
    logs.append("x\n", to: "b")
    logs.append(" line\nnext\nnever", to: "a")
    run.expect("unfinished line\nnext\n")
    run.expectStatus { $0.bytes == 30 }
    run.send(SIGINT)
    run.expect("never\n")
    #expect(run.end() == 130)
  }

  @Test func jsonLines() throws {
    logs.append("a \"quoted\" line\n", to: "a")
    let run = try start("--json", "--idle-exit", "0", "a")
    #expect(run.end() == 0)
    let object = try JSONOracle.parse(run.output)
    #expect(object == .object(["file": .string("a"), "line": .string("a \"quoted\" line")]))
  }

  /// What is read but not written is bounded, however much there is and however long nobody reads.
  @Test func aSlowReaderHoldsTheReadingBack() throws {
    let block = (0..<4096).map { "line \($0) of a file that is much larger than what may wait\n" }.joined()
    let (files, blocks, limit) = (4, 40, 1 << 18)
    for file in 0..<files {
      let writer = LogWriter(logs.path("f\(file)"))
      for _ in 0..<blocks { writer.write(block) }
    }
    let run = try TailRun(
      ["-n", "all", "--plain", "--buffer", "\(limit)"] + (0..<files).map { "f\($0)" } + ["absent"], in: logs)
    run.expectMessage("absent: No such file or directory, waiting for it")
    // Nobody has read anything so far. It has stopped when the numbers do not change any more.
    var (last, repeats) = (0, 0)
    let stuck = run.expectStatus(reading: false) { status in
      repeats = status.bytes == last ? repeats + 1 : 0
      last = status.bytes
      return status.pending > 0 && repeats == 20
    }
    // What waits with what was being read when the limit was reached, and what the pipe holds.
    let bound = limit + 4 << 16
    #expect(stuck.pending <= bound)
    #expect(stuck.bytes <= bound + 1 << 16)
    logs.append("more\n", to: "f0")
    #expect(run.expectStatus(reading: false) { _ in true }.bytes <= bound + 1 << 16)
    let total = files * blocks * block.utf8.count + 5
    run.expectStatus { $0.bytes == total && $0.pending == 0 }
    run.send(SIGINT)
    #expect(run.end() == 130)
    #expect(run.output.count == total)
    #expect(run.output.count { $0 == 10 } == files * blocks * 4096 + 1)
  }

  @Test func theSecondCtrlCDoesNotWaitForTheReader() throws {
    logs.append(String(repeating: "a line\n", count: 200_000), to: "a")
    let run = try start("-n", "all", "--plain", "a", "absent")
    run.expectMessage("absent: No such file or directory, waiting for it")
    run.expectStatus(reading: false) { $0.pending > 0 }
    run.send(SIGINT)
    // The first has been heard when nothing is followed any more; it waits for us.
    run.expectStatus(reading: false) { $0.followed == 0 && $0.pending > 0 }
    run.send(SIGINT)
    #expect(run.end(readingOutput: false) == 130)
  }

  @Test func theFirstCtrlCLosesNothingThatWasRead() throws {
    logs.append(String(repeating: "a line\n", count: 200_000), to: "a")
    let run = try start("-n", "all", "--plain", "a", "absent")
    run.expectMessage("absent: No such file or directory, waiting for it")
    run.expectStatus(reading: false) { $0.pending > 0 }
    run.send(SIGTERM)
    let last = run.expectStatus(reading: false) { $0.followed == 0 }
    #expect(run.end() == 143)
    // A line that was read in part has got its newline.
    #expect(run.output.count - last.bytes == (last.bytes % 7 == 0 ? 0 : 1))
  }

  @Test func aReaderThatGoesEndsIt() throws {
    logs.append("one\n", to: "a")
    let run = try start("a")
    run.expect("one\n")
    run.closeOutput()
    // What another test starts at this moment has a copy of our end until it runs: till then lines are still taken.
    run.untilEnd { logs.append("two\n", to: "a") }
    #expect(run.end(readingOutput: false) == 1)
    #expect(run.errorText == "")
  }

  @Test func outputThatCannotBeWritten() throws {
    logs.append("one\n", to: "a")
    let run = try TailRun(
      ["a"], in: logs, through: ["/bin/sh", "-c", "exec \"$0\" \"$@\" >/dev/full", TailRun.program])
    #expect(run.end() == 1)
    #expect(run.errorText == "tail-many: standard output: No space left on device\n")
  }

  /// As under nohup: of the two signals sent, only the one that was not ignored may do anything.
  @Test func aSignalThatWasIgnoredStaysIgnored() throws {
    logs.append("one\n", to: "a")
    let run = try TailRun(
      ["a"], in: logs, through: ["/bin/sh", "-c", "trap '' INT; exec \"$0\" \"$@\"", TailRun.program])
    run.expect("one\n")
    run.send(SIGINT)
    logs.append("two\n", to: "a")
    run.expect("two\n")
    run.send(SIGTERM)
    #expect(run.end() == 143)
  }

  /// Standard output and standard error of a program are often one file, which others append to as well.
  @Test func outputToAFileThatOthersWriteTo() throws {
    logs.append("one\n", to: "a")
    logs.append("before\n", to: "out")
    let run = try TailRun(
      ["a", "b", "--plain", "--idle-exit", "0"], in: logs,
      through: ["/bin/sh", "-c", "\"$0\" \"$@\" >>out 2>&1; echo after >>out; cat out", TailRun.program])
    #expect(run.end() == 0)
    let lines = run.outputText.split(separator: "\n")
    #expect(
      lines.sorted()
        == ["after", "before", "one", "tail-many: b: No such file or directory, waiting for it"])
    #expect(lines.first == "before" && lines.last == "after")
  }

  @Test func helpVersionAndMistakes() throws {
    let help = try start("--help")
    #expect(help.end() == 0)
    #expect(help.outputText.hasPrefix("usage: tail-many"))
    #expect(try start("--version").end() == 0)
    let wrong = try start("--wrong", "a")
    #expect(wrong.end() == 2)
    #expect(wrong.errorText == "tail-many: no such option: --wrong\nTry 'tail-many --help'.\n")
  }
}

import Glibc
import TailKit
import Testing

/// Directories as arguments: all files in them, also those to come.
@Suite(.timeLimit(.minutes(2))) struct DirectoryTests {
  private let logs = LogDirectory()

  private func start(_ arguments: String...) throws -> TailRun {
    try TailRun(["--recheck", "0.05", "--prefix"] + arguments, in: logs)
  }

  @Test func newFilesAreRead() throws {
    logs.makeDirectory("d")
    logs.append("0\n1\n", to: "d/a")
    logs.append("2\n", to: "d/b")
    let run = try start("-n", "1", "d")
    run.expect("d/a: 1\nd/b: 2\n")
    for file in 0..<50 {
      logs.append("x\ny\n", to: "d/new\(file)")
      run.expect("d/new\(file): x\nd/new\(file): y\n")
    }
    logs.append("3\n", to: "d/a")
    run.expect("d/a: 3\n")
    // A subdirectory is none of its files.
    logs.makeDirectory("d/sub")
    logs.append("no\n", to: "d/sub/c")
    logs.append("4\n", to: "d/b")
    run.expect("d/b: 4\n")
  }

  /// A file that is renamed in the directory is the same file: what was shown is not shown again.
  @Test func rotationInsideOfADirectory() throws {
    logs.makeDirectory("d")
    logs.append("first\n", to: "d/log")
    let run = try start("d")
    run.expect("d/log: first\n")
    for round in 0..<10 {
      if round > 1 { logs.rename("d/log.1", to: "d/log.\(round)") }
      if round > 0 { logs.rename("d/log.0", to: "d/log.1") }
      let old = LogWriter(logs.path("d/log"))
      logs.rename("d/log", to: "d/log.0")
      logs.append("round \(round)\n", to: "d/log")
      run.expect("d/log: round \(round)\n")
      old.write("late \(round)\n")
      run.expect("d/log.0: late \(round)\n")
    }
    run.send(SIGINT)
    #expect(run.end() == 130)
  }

  @Test func onlyWantedNames() throws {
    logs.makeDirectory("d")
    logs.append("1\n", to: "d/a.log")
    logs.append("2\n", to: "d/a.gz")
    let run = try start("--match", "*.log", "--match", "x*", "d")
    run.expect("d/a.log: 1\n")
    logs.append("3\n", to: "d/b.gz")
    logs.append("4\n", to: "d/xyz")
    run.expect("d/xyz: 4\n")
    #expect(run.expectStatus { _ in true }.followed == 2)
  }

  @Test func aDirectoryThatGoesAndComesAgain() throws {
    let run = try start("--exit-when-gone", "--linger", "0", "d", "stays")
    // Both are missing, which is the end.
    #expect(run.end() == 0)
    logs.append("", to: "stays")
    let next = try start("--linger", "0", "d", "stays")
    next.expectMessage("d: No such file or directory, waiting for it")
    for round in 0..<5 {
      logs.makeDirectory("d")
      logs.append("\(round)\n", to: "d/a")
      next.expect("d/a: \(round)\n")
      logs.remove("d/a")
      logs.remove("d")
      next.expectStatus { $0.followed == 1 && $0.withoutName == 0 && $0.waitedFor == 1 }
    }
    logs.makeDirectory("e")
    logs.append("moved\n", to: "e/a")
    logs.rename("e", to: "d")
    next.expect("d/a: moved\n")
  }

  @Test func filesThatGoAreForgotten() throws {
    logs.makeDirectory("d")
    logs.append("0\n", to: "d/keep")
    let run = try start("--linger", "0", "d")
    run.expect("d/keep: 0\n")
    for file in 0..<20 {
      logs.append("x\n", to: "d/f\(file)")
      run.expect("d/f\(file): x\n")
      logs.remove("d/f\(file)")
    }
    run.expectStatus { $0.followed == 1 && $0.withoutName == 0 && $0.waitedFor == 0 }
  }
}

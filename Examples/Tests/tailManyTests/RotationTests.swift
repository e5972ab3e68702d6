import Glibc
import TailKit
import Testing

/// The program on names that change hands.
@Suite(.timeLimit(.minutes(2))) struct RotationTests {
  private let logs = LogDirectory()

  private func start(_ arguments: String...) throws -> TailRun {
    try TailRun(["--recheck", "0.05"] + arguments, in: logs)
  }

  /// The program that keeps the log goes on with the old file for a while, as such programs do.
  @Test func rotation() throws {
    let run = try start("--linger", "60", "log")
    var writer = LogWriter(logs.path("log"))
    for round in 0..<20 {
      writer.write("\(round) before\n")
      run.expect("\(round) before\n")
      if round > 0 { logs.remove("log.1") }
      logs.rename("log", to: "log.1")
      writer.write("\(round) after\n")
      let next = LogWriter(logs.path("log"))
      next.write("\(round) new\n")
      run.expect("\(round) after\n\(round) new\n")
      writer.write("\(round) late\n")
      run.expect("\(round) late\n")
      writer = next
    }
    // The one that has been removed is still followed, as somebody may still write to it.
    #expect(run.expectStatus { $0.withoutName == 20 }.followed == 1)
    run.send(SIGINT)
    #expect(run.end() == 130)
  }

  /// Files that have lost their name are let go of, and so are their descriptors.
  @Test func descriptorsComeBack() throws {
    let run = try start("--linger", "0", "log")
    logs.append("start\n", to: "log")
    run.expect("start\n")
    run.expectStatus { $0.followed == 1 && $0.withoutName == 0 && $0.waitedFor == 0 }
    let before = openFiles(run)
    for round in 0..<30 {
      logs.rename("log", to: "log.old")
      logs.append("\(round)\n", to: "log")
      run.expect("\(round)\n")
    }
    run.expectStatus { $0.withoutName == 0 && $0.followed == 1 }
    // Whoever closes comes after the numbers; asking again gives it the time that it needs.
    var after = openFiles(run)
    run.expectStatus { _ in
      after = openFiles(run)
      return after == before
    }
    #expect(after == before)
  }

  @Test func deletionAndANewFileOfTheSameName() throws {
    let run = try start("log", "--linger", "60")
    run.expectMessage("log: No such file or directory, waiting for it")
    for round in 0..<10 {
      let writer = LogWriter(logs.path("log"))
      writer.write("\(round) here\nunfinished")
      run.expect("\(round) here\n")
      logs.remove("log")
      writer.write(" \(round)\n")
      run.expect("unfinished \(round)\n")
    }
    #expect(run.errorText.contains("tail-many: log: is gone, waiting for it\n"))
    #expect(run.errorText.contains("tail-many: log: is there\n"))
  }

  @Test func anUnfinishedLineOfAFileThatIsGone() throws {
    logs.append("one\nrest", to: "log")
    let run = try start("--exit-when-gone", "--linger", "0", "log")
    run.expect("one\n")
    logs.remove("log")
    run.expect("rest\n")
    #expect(run.end() == 0)
  }

  @Test func truncation() throws {
    logs.append("old 1\nold 2\nhalf", to: "log")
    let run = try start("log")
    run.expect("old 1\nold 2\n")
    for round in 0..<10 {
      logs.truncate("log")
      logs.append("\(round)\n", to: "log")
      run.expect(round == 0 ? "half\n0\n" : "\(round)\n")
      logs.append("much longer than what comes after the next truncation\n", to: "log")
      run.expect("much longer than what comes after the next truncation\n")
    }
    run.expectMessage("log: truncated, beginning again")
  }

  /// A symbolic link that is pointed elsewhere is a rotation, and so is a file moved over the name.
  @Test func linksAndReplacement() throws {
    logs.append("one\n", to: "1")
    logs.append("two\n", to: "2")
    #expect(symlink("1", logs.path("log")) == 0)
    let run = try start("log")
    run.expect("one\n")
    #expect(symlink("2", logs.path("fresh")) == 0)
    logs.rename("fresh", to: "log")
    run.expect("two\n")
    logs.append("three\n", to: "3")
    logs.rename("3", to: "log")
    run.expect("three\n")
    logs.append("four\n", to: "log")
    run.expect("four\n")
  }

  @Test func aFileUnderTwoNamesIsFollowedOnce() throws {
    logs.append("one\n", to: "a")
    #expect(link(logs.path("a"), logs.path("b")) == 0)
    let run = try start("--prefix", "a", "b")
    run.expect("a: one\n")
    run.expectMessage("b: is the same file as a")
    logs.append("two\n", to: "b")
    run.expect("a: two\n")
    // The other name takes over.
    logs.remove("a")
    run.expectMessage("a: is gone, waiting for it")
    logs.append("three\n", to: "b")
    run.expect("b: three\n")
    logs.append("again\n", to: "a")
    run.expect("a: again\n")
  }

  @Test func aNameWhoseDirectoryDoesNotExistYet() throws {
    let run = try start("d/e/log")
    run.expectMessage("d/e/log: No such file or directory, waiting for it")
    logs.makeDirectory("d")
    logs.makeDirectory("d/e")
    logs.append("one\n", to: "d/e/log")
    run.expect("one\n")
    logs.rename("d/e", to: "d/old")
    logs.makeDirectory("d/e")
    logs.append("two\n", to: "d/e/log")
    run.expect("two\n")
  }

  /// Root may read everything, so root runs the program as somebody else.
  @Test func anUnreadableFileIsWaitedFor() throws {
    logs.append("one\ntwo\n", to: "log")
    #expect(chmod(logs.path("log"), 0) == 0)
    var command = [TailRun.program]
    let copies = LogDirectory()
    if geteuid() == 0 {
      // The build folder may be closed to others.
      let copy = try TailRun([copies.path("tail-many")], in: logs, through: ["/bin/cp", TailRun.program])
      #expect(copy.end() == 0)
      command = ["/usr/bin/setpriv", "--reuid", "65534", "--clear-groups", copies.path("tail-many")]
    }
    let run = try TailRun(["-n", "1", "--recheck", "0.05", "log"], in: logs, through: command)
    run.expectMessage("log: Permission denied, waiting for it")
    #expect(chmod(logs.path("log"), 0o644) == 0)
    run.expect("two\n")
  }

  /// With few descriptors the rest waits, and comes in when there is room.
  @Test func tooFewDescriptors() throws {
    for file in 0..<100 { logs.append("\(file)\n", to: "f\(file)") }
    let run = try TailRun(
      ["--recheck", "0.05", "--linger", "0", "--prefix"] + (0..<100).map { "f\($0)" }, in: logs,
      through: ["/bin/sh", "-c", "ulimit -n 64; exec \"$0\" \"$@\"", TailRun.program])
    run.expectMessage("f99: Too many open files, waiting for it")
    // The first ones are open, and make room; not all of the last ones are.
    for file in 0..<80 { logs.remove("f\(file)") }
    run.expectStatus { $0.followed == 20 && $0.waitedFor == 80 }
    logs.append("more\n", to: "f99")
    run.expectSomewhere("f99: more\n")
    run.send(SIGINT)
    #expect(run.end() == 130)
    let lines = Set(run.outputText.split(separator: "\n").map(String.init))
    #expect(lines.isSuperset(of: (80..<100).map { "f\($0): \($0)" } + ["f99: more"]))
  }

  private func openFiles(_ run: TailRun) -> Int {
    guard let stream = opendir("/proc/\(run.process)/fd") else { return -1 }
    defer { closedir(stream) }
    var count = 0
    while readdir(stream) != nil { count += 1 }
    return count
  }
}

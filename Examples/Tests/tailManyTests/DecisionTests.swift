import JSONOracle
import TailKit
import Testing

/// What is concluded, and how lines are written, without any file.
@Suite struct DecisionTests {
  private let one = FileIdentity(device: 1, inode: 1)
  private let two = FileIdentity(device: 1, inode: 2)

  @Test func fates() {
    #expect(Fate.of(open: nil, now: .nothing(2)) == .missing(2))
    #expect(Fate.of(open: nil, now: .file(one, size: 0)) == .appeared(one))
    #expect(Fate.of(open: one, now: .file(one, size: 9)) == .same)
    #expect(Fate.of(open: one, now: .file(two, size: 9)) == .replaced(by: two))
    #expect(Fate.of(open: one, now: .nothing(13)) == .gone(13))
    #expect(Fate.of(open: one, now: .directory) == .unsuitable(isDirectory: true))
    #expect(Fate.of(open: nil, now: .other) == .unsuitable(isDirectory: false))
    // The same number on another device is another file.
    let far = FileIdentity(device: 2, inode: 1)
    #expect(Fate.of(open: one, now: .file(far, size: 0)) == .replaced(by: far))
  }

  @Test func growth() {
    #expect(Growth.of(size: 7, read: 7) == .none)
    #expect(Growth.of(size: 9, read: 7) == .some(2))
    #expect(Growth.of(size: 6, read: 7) == .truncated)
    #expect(Growth.of(size: 0, read: 7) == .truncated)
  }

  @Test func headersStandWhereTheFileChanges() {
    var output = Multiplexer(.header)
    #expect(format(&output, "1\n", "a") == "==> a <==\n1\n")
    #expect(format(&output, "2\n", "a") == "2\n")
    #expect(format(&output, "", "b") == "")
    #expect(format(&output, "3\n4\n", "b") == "\n==> b <==\n3\n4\n")
    #expect(format(&output, "5\n", "a") == "\n==> a <==\n5\n")
  }

  @Test func prefixesStandBeforeEachLine() {
    var output = Multiplexer(.prefix)
    #expect(format(&output, "1\n\n3\n", "a") == "a: 1\na: \na: 3\n")
    var plain = Multiplexer(.plain)
    #expect(format(&plain, "1\n\n3\n", "a") == "1\n\n3\n")
  }

  @Test func jsonIsValidWhateverTheBytes() throws {
    var output = Multiplexer(.json)
    let lines: Bytes = Bytes("q\"\\\t\u{1}\u{7F}ü😀\n".utf8) + [0xFF, 0x41, 10]
    let text = Bytes(output.format(data(lines), from: Bytes("n\n\"".utf8)))
    let objects = try text.split(separator: 10).map { try JSONOracle.parse(Bytes($0)) }
    #expect(objects.map { $0[key: "file"] } == [.string("n\n\""), .string("n\n\"")])
    #expect(objects.map { $0[key: "line"] } == [.string("q\"\\\t\u{1}\u{7F}ü😀"), .string("\u{FFFD}A")])
  }

  @Test func commandLines() throws {
    let options = try follow(
      "-n", "3", "--idle-exit=0.25", "--match", "*.log", "--match=*.txt", "-p", "a", "--", "-b")
    #expect(options.lines == 3)
    #expect(options.idleExit == 250)
    #expect(options.patterns == [Bytes("*.log".utf8), Bytes("*.txt".utf8)])
    #expect(options.style == .prefix)
    #expect(options.paths == [Bytes("a".utf8), Bytes("-b".utf8)])
    #expect(try follow("--lines=all", "a").lines == nil)
    #expect(try follow("a").lines == 10)
  }

  @Test(arguments: [
    [], ["--wrong", "a"], ["-n"], ["-n", "x", "a"], ["-n", "-1", "a"], ["--linger", "1e5", "a"], [""],
    ["--json=yes", "a"], ["--idle-exit", ".", "a"], ["-n", "99999999999999999999", "a"],
  ]) func mistakes(arguments: [String]) {
    #expect(throws: UsageError.self) { try Arguments.parse(arguments.map { Bytes($0.utf8) }) }
  }

  private func follow(_ arguments: String...) throws -> Options {
    let command = try Arguments.parse(arguments.map { Bytes($0.utf8) })
    guard case .follow(let options) = command else {
      Issue.record("another command: \(command)")
      return Options()
    }
    return options
  }

  private func format(_ output: inout Multiplexer, _ lines: String, _ name: String) -> String {
    String(decoding: output.format(data(lines.utf8), from: Bytes(name.utf8)), as: UTF8.self)
  }
}

import Foundation
import Glibc
import Testing

@testable import ConcourseTool

@Suite("concourse: text and files that others choose")
struct ForeignTextTests {
  @Test("a line for a terminal has no control characters and no invisible ones")
  func line() {
    #expect(ForeignText.line("plain 画像 é 🙂") == "plain 画像 é 🙂")
    #expect(ForeignText.line("a\u{1B}[31m\nb\r\u{7}\u{7F}\u{9B}c") == "a?[31m?b????c")
    #expect(ForeignText.line("a\u{202E}b\u{2066}c\u{200B}d\u{FEFF}\u{E0001}") == "abcd")
    #expect(ForeignText.line("a\u{2028}b\u{2029}c") == "a?b?c")
  }

  @Test("JSON keeps the text, and has nothing that a terminal or a page would obey")
  func json() throws {
    let text = "a\u{1B}]0;x\u{7}\n\t\"\\</script>\u{9B}\u{2028}\u{202E}\u{E0001}🙂"
    let written = JSONValue.string(text).line
    #expect(isHarmless(written))
    #expect(!written.contains("<"))
    let read = try JSONSerialization.jsonObject(with: Data("[\(written)]".utf8)) as? [String]
    #expect(read == [text])
  }

  private func isHarmless(_ text: String) -> Bool {
    text.unicodeScalars.allSatisfy { $0 == "\n" || $0.effect == .none }
  }

  // Under a sanitizer a program's memory is not what `report` expects (ReportTests).
  @Test(
    "report, top and trace clean the labels and names of a hostile process",
    .enabled(if: getenv("CONCOURSE_SANITIZER") == nil))
  func commands() throws {
    let fixture = try ReportFixture()
    let program = Examined(try fixture.spawn(fixture.waits, ["hostile"]))
    let text = try fixture.report(on: program.program) { $0.contains("evil?]0;OWNED") }
    #expect(isHarmless(text))
    #expect(!text.split(separator: "\n").contains { $0.hasPrefix("Deadlock: forged") })
    let json = try fixture.report(["--json", "--all", program.id])
    #expect(isHarmless(json.text))
    _ = try fixture.json(json.text)
    let folder = try TemporaryFolder()
    for (ending, words) in [("json", "evil"), ("html", "ticks")] {
      let path = "\(folder.path)/trace.\(ending)"
      let trace = try fixture.spawn(fixture.command, ["trace", "--seconds", "0.3", "-o", path, program.id])
        .wait()
      #expect(trace.ending == .exit(0), "\(trace.complaint)")
      #expect(isHarmless(trace.complaint))
      let written = String(decoding: try #require(FileContents.read(path)), as: UTF8.self)
      #expect(written.contains(words) || ending == "json")
      #expect(!written.contains("</script><b>"))
      #expect(isHarmless(written))
    }
    for options in [["--once"], ["--json", "--once"]] {
      let top = try fixture.spawn(
        fixture.command, ["top", "--interval", "0.2"] + options + [program.id]
      ).wait()
      #expect(top.ending == .exit(0), "\(top.complaint)")
      #expect(isHarmless(top.text), "\(options)")
    }
  }

  @Test("a trace without a name for its file takes a free one, and follows no link")
  func freeName() throws {
    let folder = try TemporaryFolder()
    let base = folder.path + "/concourse-1"
    try folder.write(Array("precious".utf8), to: "victim")
    #expect(symlink("victim", base + ".json") == 0)
    #expect(symlink("nowhere", base + "-2.json") == 0)
    do {
      let file = try OutputFile(free: base, ".json")
      #expect(file.path == base + "-3.json")
      try file.write(Array("trace".utf8))
    }
    #expect(FileContents.read(folder.path + "/victim") == Array("precious".utf8))
    #expect(access(folder.path + "/nowhere", F_OK) != 0)
    #expect(FileContents.read(base + "-3.json") == Array("trace".utf8))
    var status = stat()
    #expect(stat(base + "-3.json", &status) == 0 && status.st_mode & 0o777 == 0o600)
  }

  @Test("a named file is overwritten, but not through a link; a device is written to")
  func named() throws {
    let folder = try TemporaryFolder()
    try folder.write(Array("long, and precious".utf8), to: "victim")
    #expect(symlink("victim", folder.path + "/link") == 0)
    #expect(throws: OutputFile.Failure.self) { _ = try OutputFile(named: folder.path + "/link") }
    #expect(FileContents.read(folder.path + "/victim") == Array("long, and precious".utf8))
    try OutputFile(named: folder.path + "/victim").write(Array("trace".utf8))
    #expect(FileContents.read(folder.path + "/victim") == Array("trace".utf8))
    #expect(symlink("/dev/null", folder.path + "/null") == 0)
    try OutputFile(named: folder.path + "/null").write(Array("trace".utf8))
  }
}

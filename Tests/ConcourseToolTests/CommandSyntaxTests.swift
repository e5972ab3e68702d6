import Testing

@testable import ConcourseTool

@Suite("CommandSyntax")
struct CommandSyntaxTests {
  @Test("a value follows an option or its equals sign, and every name of an option is known")
  func values() {
    let expected = ParsedCommandLine.options(TraceOptions(target: .process(1), output: "x.json"))
    for words in [["-o", "x.json"], ["-o=x.json"], ["--output", "x.json"], ["--output=x.json"]] {
      #expect(TraceOptions.parse(words + ["1"]) == expected)
    }
    // The sign is found although the mark makes one character of both.
    let mark = "\u{301}=a"
    #expect(
      TopOptions.parse(["--filter=" + mark, "1"]) == .options(TopOptions(target: .process(1), filter: mark)))
    #expect(TopOptions.parse(["--filter=", "1"]) == .options(TopOptions(target: .process(1))))
    #expect(TopOptions.parse(["--library", "", "1"]) == .unusable("--library needs a path"))
  }

  @Test("an option without a value takes none")
  func flags() {
    #expect(
      ReportOptions.parse(["--json=1", "1"])
        == .unusable("unknown option '--json=1'; did you mean '--json'?"))
    #expect(ReportOptions.parse(["--", "1"]) == .unusable("unknown option '--'"))
  }

  @Test("the help has a row for each option, with its text in one column")
  func help() {
    let lines = ReportOptions.help.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    #expect(lines[0] == "usage: concourse report [options] PID")
    #expect(lines[1] == "       concourse report [options] --core FILE")
    let table = lines.filter { $0.hasPrefix("  -") }
    #expect(table.map { String($0.dropFirst(2).prefix { $0 != " " }) } == ReportOptions.syntax.names)
    #expect(lines.contains("  --core FILE       reads a core dump instead"))
    #expect(lines.contains("                    the end, items that had not started, and the last events"))
  }
}

import Testing

@testable import ConcourseTool

@Suite("RunOptions")
struct RunOptionsTests {
  @Test("a similar word is suggested for an unknown command or option")
  func suggestions() {
    func unknown(_ word: String) -> String {
      Suggestion.unknown("option", word, of: RunOptions.syntax.names)
    }
    #expect(unknown("--chekc") == "unknown option '--chekc'; did you mean '--check'?")
    #expect(unknown("--libary=/x") == "unknown option '--libary=/x'; did you mean '--library'?")
    #expect(unknown("--xyz") == "unknown option '--xyz'")
    #expect(
      RunOptions.parse(["--verbos", "a"]) == .unusable("unknown option '--verbos'; did you mean '--verbose'?")
    )
    #expect(Suggestion.distance(Array("report".utf8), Array("reprot".utf8)) == 1)
  }

  @Test("the program is the first word that is not an option; later words are its arguments")
  func program() {
    #expect(
      RunOptions.parse(["--verbose", "ls", "--children", "-l"])
        == .options(RunOptions(target: 1, verbose: true)))
    #expect(
      RunOptions.parse(["--", "--odd", "--"]) == .options(RunOptions(target: 1)))
    #expect(RunOptions.parse([""]) == .options(RunOptions(target: 0)))
  }

  @Test("every option")
  func options() {
    let all = ["--children", "--check", "--force", "--verbose", "--library", "a", "--library=b c", "--", "p"]
    #expect(
      RunOptions.parse(all)
        == .options(
          RunOptions(target: 8, children: true, check: true, force: true, verbose: true, library: "b c")))
    for (words, strict) in [
      (["--strict"], "report"), (["--strict=report"], "report"), (["--strict=trap"], "trap"),
    ] {
      #expect(
        RunOptions.parse(words + ["--pool", "2", "p"])
          == .options(RunOptions(target: 3, strict: strict, pool: 2)))
    }
    #expect(RunOptions.parse(["--strict", "trap"]) == .options(RunOptions(target: 1, strict: "report")))
    #expect(RunOptions.parse(["--help", "--nonsense"]) == .help)
    #expect(RunOptions.parse(["-h"]) == .help)
    for option in [
      "--children", "--check", "--force", "--verbose", "--library PATH", "--strict[=trap]", "--pool N",
      "--help",
    ] {
      #expect(RunOptions.help.contains(option))
    }
  }

  @Test("the manual page has the options of the help, and no others")
  func manual() throws {
    let path = #filePath.dropLastPart.dropLastPart.dropLastPart + "/Packaging/concourse.1"
    let page = String(decoding: try #require(FileContents.read(path)), as: UTF8.self)
    let words = page.split { " \n".contains($0) }
    let listed = zip(words, words.dropFirst()).compactMap { macro, word in
      macro.hasSuffix("Fl") && word.count > 1 ? "-" + word : nil
    }
    let helps = [
      ConcourseTool.usage, RunOptions.help, ReportOptions.help, TopOptions.help, TraceOptions.help,
      ExploreOptions.help,
    ].joined(separator: " ")
    let options = helps.split { !($0 == "-" || $0.isLetter) }.filter { $0.count > 2 && $0.hasPrefix("--") }
    #expect(Set(listed) == Set(options.map(String.init)))
  }

  @Test(
    "an invalid command line is refused, and the message names the word",
    arguments: [
      ([], "no program"), (["--verbose"], "no program"), (["--"], "no program"),
      (["--chidlren", "ls"], "'--chidlren'"), (["-v", "ls"], "'-v'"), (["-"], "'-'"),
      (["--library"], "--library"), (["--library=", "ls"], "--library"),
      (["--library", "", "ls"], "--library"),
      (["--strict=maybe", "ls"], "'maybe' is not report or trap"),
      (["--pool", "0", "ls"], "'0' is not a number"), (["--pool=many", "ls"], "'many' is not a number"),
      (["--pool"], "--pool"),
    ])
  func unusable(_ arguments: [String], _ word: String) throws {
    guard case .unusable(let reason) = RunOptions.parse(arguments) else {
      Issue.record("\(arguments) was taken")
      return
    }
    #expect(reason.contains(word), "\(reason)")
  }
}

import Testing

@testable import ConcourseTool

@Suite("RunOptions")
struct RunOptionsTests {
  @Test("the program is the first word that is not an option; later words are its arguments")
  func program() {
    #expect(
      RunOptions.parse(["--verbose", "ls", "--children", "-l"])
        == .run(RunOptions(verbose: true, program: "ls", programIndex: 1)))
    #expect(
      RunOptions.parse(["--", "--odd", "--"]) == .run(RunOptions(program: "--odd", programIndex: 1)))
    #expect(RunOptions.parse([""]) == .run(RunOptions(program: "", programIndex: 0)))
  }

  @Test("every option")
  func options() {
    let all = ["--children", "--check", "--force", "--verbose", "--library", "a", "--library=b c", "--", "p"]
    #expect(
      RunOptions.parse(all)
        == .run(
          RunOptions(
            children: true, check: true, force: true, verbose: true, library: "b c", program: "p",
            programIndex: 8)))
    #expect(RunOptions.parse(["--help", "--nonsense"]) == .help)
    #expect(RunOptions.parse(["-h"]) == .help)
    for option in ["--children", "--check", "--force", "--verbose", "--library PATH", "--help"] {
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
    ])
  func unusable(_ arguments: [String], _ word: String) throws {
    guard case .unusable(let reason) = RunOptions.parse(arguments) else {
      Issue.record("\(arguments) was taken")
      return
    }
    #expect(reason.contains(word), "\(reason)")
  }
}

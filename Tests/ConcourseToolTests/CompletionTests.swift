import ConcourseSchedules
import Glibc
import Testing

@testable import ConcourseTool

/// The completions for shells, in `Packaging/completions`, against what the command understands.
@Suite("Completions")
struct CompletionTests {
  private static let folder =
    #filePath.dropLastPart.dropLastPart.dropLastPart + "/Packaging/completions"

  private static let helps = [
    "run": RunOptions.help, "report": ReportOptions.help, "top": TopOptions.help, "trace": TraceOptions.help,
    "explore": ExploreOptions.help,
  ]

  private static let names = [
    "run": RunOptions.syntax.names, "report": ReportOptions.syntax.names, "top": TopOptions.syntax.names,
    "trace": TraceOptions.syntax.names, "explore": ExploreOptions.syntax.names,
  ]

  private static func options(of command: String) throws -> Set<String> { Set(try #require(names[command])) }

  private static func lines(_ file: String) throws -> [String] {
    let bytes = try #require(FileContents.read("\(folder)/\(file)"))
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  /// What bash offers for a command line whose last word is completed.
  private static func bash(_ words: [String]) throws -> [String] {
    let script = """
      source "$1" && shift && COMP_WORDS=("$@") && COMP_CWORD=$(($# - 1)) && _concourse
      printf '%s\\n' "${COMPREPLY[@]}"
      """
    let arguments = ["-c", script, "bash", "\(folder)/concourse.bash"] + words
    let result = try SpawnedProgram(
      "/bin/bash", arguments.map { Array($0.utf8) }, environment: ["PATH=/usr/bin:/bin"], input: STDIN_FILENO
    ).wait()
    #expect(result.ending == .exit(0) && result.complaint == "", "\(words): \(result.complaint)")
    return result.text.split(separator: "\n").map(String.init)
  }

  @Test("bash offers the commands, and the options of each")
  func bash() throws {
    let commands = ConcourseTool.commands
    #expect(Set(commands) == Set(Self.helps.keys))
    #expect(try Self.bash(["concourse", ""]) == commands + ["help", "--version"])
    #expect(try Self.bash(["concourse", "help", ""]) == commands)
    for command in commands {
      let options = try Self.options(of: command)
      #expect(try Set(Self.bash(["concourse", command, "-"])) == options, "\(command)")
      // After the value of an option, options follow; after a program, its own.
      for option in try Self.options(withValueOf: command) {
        #expect(
          try Set(Self.bash(["concourse", command, option, "x", "-"])) == options, "\(command) \(option)")
        #expect(
          try Set(Self.bash(["concourse", command, option, "=", "x", "-"])) == options,
          "\(command) \(option)=")
      }
      if command != "report" {
        #expect(try Self.bash(["concourse", command, "true", "--"]).isEmpty, "\(command)")
        #expect(try Self.bash(["concourse", command, "--", "true", "--"]).isEmpty, "\(command)")
        #expect(try Self.bash(["concourse", command, "chmo"]).contains("chmod"), "\(command)")
      }
    }
    let columns = TopState.Order.allCases.map(\.rawValue)
    #expect(try Set(Self.bash(["concourse", "top", "--sort", ""])) == Set(columns))
    #expect(try Self.bash(["concourse", "top", "--sort", "=", "de"]) == ["depth"])
    let strategies = ExploringStrategy.allCases.map(\.rawValue)
    #expect(try Self.bash(["concourse", "explore", "--strategy", ""]) == strategies)
    let own = String(getpid())
    for command in ["report", "top", "trace"] {
      #expect(try Self.bash(["concourse", command, own]).contains(own))
    }
    for file in [["run", "--library"], ["report", "--core"], ["trace", "--recording", "="]] {
      #expect(
        try Self.bash(["concourse"] + file + ["\(Self.folder)/concourse.f"]) == [
          "\(Self.folder)/concourse.fish"
        ])
    }
  }

  /// The options of a command that are followed by a value, as its help shows them.
  private static func options(withValueOf command: String) throws -> Set<String> {
    let lines = try #require(helps[command]).split(separator: "\n")
    return Set(
      lines.compactMap { line in
        let words = line.split(separator: " ")
        guard line.hasPrefix("  -"), words.count > 1, words[1].allSatisfy(\.isUppercase) else { return nil }
        return String(words[0])
      })
  }

  @Test("zsh has the options of each command, with values where they have some")
  func zsh() throws {
    let lines = try Self.lines("_concourse").map { String($0.drop { $0 == " " }) }
    for command in ConcourseTool.commands {
      #expect(lines.contains { $0.contains("\(command)\\:\"") }, "\(command)")
      let start = try #require(lines.firstIndex(of: "\(command))"))
      // '(excluded)--name=[text]:…
      let specifications = lines[start...].prefix { $0 != ";;" }.compactMap { line -> String? in
        guard let first = line.first, first == "'" || first == "\"" else { return nil }
        let text = line.dropFirst()
        let name = text.first == "(" ? text.drop { $0 != ")" }.dropFirst() : text
        return name.first == "-" ? String(name.prefix { $0 != "[" }) : nil
      }
      let names = specifications.map { $0.last == "=" ? String($0.dropLast()) : $0 }
      #expect(try Set(names) == Self.options(of: command), "\(command)")
      let valued = specifications.filter { $0.last == "=" || $0 == "-o" }.map { $0.prefix { $0 != "=" } }
      #expect(try Set(valued.map(String.init)) == Self.options(withValueOf: command), "\(command)")
    }
    let columns = TopState.Order.allCases.map(\.rawValue).joined(separator: " ")
    #expect(lines.contains { $0.contains("--sort=") && $0.contains(":(\(columns))'") })
    let strategies = ExploringStrategy.allCases.map(\.rawValue).joined(separator: " ")
    #expect(lines.contains { $0.contains("--strategy=") && $0.contains(":(\(strategies))'") })
    #expect(
      lines.contains {
        $0.hasPrefix("help)") && $0.contains("(\(ConcourseTool.commands.joined(separator: " ")))")
      })
  }

  @Test("fish has the options of each command, with values where they have some")
  func fish() throws {
    let lines = try Self.lines("concourse.fish")
    for command in ConcourseTool.commands {
      #expect(
        lines.contains { $0.hasPrefix("complete -c concourse -n __fish_is_first_token -a \(command) -d") })
      let prefix = "complete -c concourse -n '__concourse_options_of \(command)' "
      let declared = lines.filter { $0.hasPrefix(prefix) }.map {
        $0.dropFirst(prefix.count).split(separator: " ")
      }
      let options = declared.filter { $0[0] == "-l" || $0[0] == "-s" }
      func name(_ words: [Substring]) -> String { (words[0] == "-l" ? "--" : "-") + words[1] }
      #expect(try Set(options.map(name)) == Self.options(of: command), "\(command)")
      let valued = options.filter { ["-rF", "-x", "-xa"].contains($0[2]) }.map(name)
      #expect(try Set(valued) == Self.options(withValueOf: command), "\(command)")
    }
    let columns = TopState.Order.allCases.map(\.rawValue).joined(separator: " ")
    #expect(lines.contains { $0.contains(" -l sort -xa '\(columns)'") })
    let strategies = ExploringStrategy.allCases.map(\.rawValue).joined(separator: " ")
    #expect(lines.contains { $0.contains(" -l strategy -xa '\(strategies)'") })
    #expect(
      lines.contains {
        $0.hasSuffix("options_of help' -a '\(ConcourseTool.commands.joined(separator: " "))'")
      })
    // The words after an option with a value are that, and no program.
    let skipped = try #require(lines.first { $0.contains("case --library") }).split(separator: " ")
      .dropFirst()
    let valued = try ConcourseTool.commands.flatMap { try Self.options(withValueOf: $0) }
    #expect(Set(skipped.map(String.init)) == Set(valued))
  }
}

import CTracing
import Glibc

/// The `concourse` command. It starts fast and does not use dispatch itself, so it imports neither Foundation nor Swift
/// Concurrency: see the target's settings in Package.swift.
@main
enum ConcourseTool {
  static let version = CONCOURSE_VERSION

  static let usage = """
    usage: concourse run [options] [--] program [argument ...]
           concourse report [options] PID | --core FILE | --recording FILE
           concourse top [options] PID | [--] program [argument ...]
           concourse trace [options] PID | [--] program [argument ...] | --recording FILE
           concourse explore [options] [--] program [argument ...]
           concourse help [run|report|top|trace|explore]
           concourse --version

    """

  private static var all: [any Command.Type] {
    [RunCommand.self, ReportCommand.self, TopCommand.self, TraceCommand.self, ExploreCommand.self]
  }

  /// The names of the commands.
  static var commands: [String] { all.map { $0.name } }

  static func main() {
    let arguments = CommandLine.arguments
    switch arguments.dropFirst().first {
    case "help", "--help", "-h":
      exit(Terminal.status(help(on: arguments.dropFirst(2).first)))
    case "--version":
      Terminal.printLine("concourse \(version)")
      exit(Terminal.status(0))
    case nil:
      Terminal.printError(usage, asIs: true)
      exit(2)
    case .some(let name):
      if let command = all.first(where: { $0.name == name }) {
        // The program that `concourse run` starts has the descriptors and signals as they are.
        if command != RunCommand.self { Terminal.makeUsual() }
        exit(Terminal.status(command.run(Array(arguments.dropFirst(2)))))
      }
      Terminal.printError(Suggestion.unknown("command", name, of: commands + ["help", "--version"]))
      Terminal.printError(usage, asIs: true)
      exit(2)
    }
  }

  private static func help(on subject: String?) -> Int32 {
    guard let subject else {
      let summaries = all.map { command in
        command.name + String(repeating: " ", count: 9 - command.name.count) + command.summary
      }
      Terminal.printLine(usage + "\n" + summaries.joined(separator: "\n"))
      return 0
    }
    guard let command = all.first(where: { $0.name == subject }) else {
      Terminal.printError(Suggestion.unknown("command", subject, of: commands))
      return 2
    }
    Terminal.printLine(command.help)
    return 0
  }
}

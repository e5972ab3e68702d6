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
           concourse help [run|report|top|trace]
           concourse --version

    """

  static let commands = ["run", "report", "top", "trace"]

  static func main() {
    let arguments = CommandLine.arguments
    switch arguments.dropFirst().first {
    case "run":
      exit(RunCommand.run(Array(arguments.dropFirst(2))))
    case "report":
      exit(ReportCommand.run(Array(arguments.dropFirst(2))))
    case "top":
      exit(TopCommand.run(Array(arguments.dropFirst(2))))
    case "trace":
      exit(TraceCommand.run(Array(arguments.dropFirst(2))))
    case "help", "--help", "-h":
      exit(help(on: arguments.dropFirst(2).first))
    case "--version":
      Terminal.printLine("concourse \(version)")
      exit(0)
    case nil:
      Terminal.printError(usage, asIs: true)
      exit(2)
    case .some(let unknown):
      Terminal.printError(Suggestion.unknown("command", unknown, of: commands + ["help", "--version"]))
      Terminal.printError(usage, asIs: true)
      exit(2)
    }
  }

  private static func help(on subject: String?) -> Int32 {
    switch subject {
    case nil:
      Terminal.printLine(
        usage + """

          run      runs a finished program on Concourse instead of its own libdispatch.so
          report   prints what a process on Concourse waits for
          top      shows it live: queues, times, threads, timers and sources
          trace    records what a process on Concourse does, and writes a file that shows it
          """)
      return 0
    case "top":
      Terminal.printLine(TopOptions.help)
      return 0
    case "trace":
      Terminal.printLine(TraceOptions.help)
      return 0
    case "run":
      Terminal.printLine(RunOptions.help)
      return 0
    case "report":
      Terminal.printLine(ReportOptions.help)
      return 0
    case .some(let unknown):
      Terminal.printError(Suggestion.unknown("command", unknown, of: commands))
      return 2
    }
  }
}

extension [String] {
  /// The value of an option that stands at a place of the command line, as `NAME VALUE` or `NAME=VALUE`.
  /// - Parameter index: Moves to the value in the first form.
  /// - Returns: nil if another argument stands there, or no value follows.
  func value(of name: String, at index: inout Int) -> String? {
    if self[index].utf8.starts(with: "\(name)=".utf8) { return String(self[index].dropFirst(name.count + 1)) }
    guard self[index] == name, index + 1 < count else { return nil }
    index += 1
    return self[index]
  }
}

import Glibc

/// The `concourse` command. It starts fast and does not use dispatch itself, so it imports neither Foundation nor Swift
/// Concurrency: see the target's settings in Package.swift.
@main
enum ConcourseTool {
  static let version = "0.4.0"

  static let usage = """
    usage: concourse run [options] [--] program [argument ...]
           concourse report [options] PID | --core FILE
           concourse help [run|report]
           concourse --version

    """

  static func main() {
    let arguments = CommandLine.arguments
    switch arguments.dropFirst().first {
    case "run":
      exit(RunCommand.run(Array(arguments.dropFirst(2))))
    case "report":
      exit(ReportCommand.run(Array(arguments.dropFirst(2))))
    case "help", "--help", "-h":
      exit(help(on: arguments.dropFirst(2).first))
    case "--version":
      Terminal.printLine("concourse \(version)")
      exit(0)
    case nil:
      Terminal.printError(usage, asIs: true)
      exit(2)
    case .some(let unknown):
      Terminal.printError("unknown command '\(unknown)'")
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
          """)
      return 0
    case "run":
      Terminal.printLine(RunOptions.help)
      return 0
    case "report":
      Terminal.printLine(ReportOptions.help)
      return 0
    case .some(let unknown):
      Terminal.printError("unknown command '\(unknown)'")
      return 2
    }
  }
}

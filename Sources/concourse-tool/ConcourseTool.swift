import Glibc

/// The `concourse` command. It must start fast and must not itself be a program that uses dispatch, hence
/// neither Foundation nor Swift Concurrency here: see the target's settings in Package.swift.
@main
enum ConcourseTool {
  static let version = "0.4.0"

  static let usage = """
    usage: concourse run [options] [--] program [argument ...]
           concourse help [run]
           concourse --version

    """

  static func main() {
    let arguments = CommandLine.arguments
    switch arguments.dropFirst().first {
    case "run":
      exit(RunCommand.run(Array(arguments.dropFirst(2))))
    case "help", "--help", "-h":
      exit(help(on: arguments.dropFirst(2).first))
    case "--version":
      Terminal.say("concourse \(version)")
      exit(0)
    case nil:
      Terminal.complain(usage, asIs: true)
      exit(2)
    case .some(let unknown):
      Terminal.complain("there is no command '\(unknown)'")
      Terminal.complain(usage, asIs: true)
      exit(2)
    }
  }

  private static func help(on subject: String?) -> Int32 {
    switch subject {
    case nil:
      Terminal.say(
        usage + "\n" + "run   runs a finished program on Concourse in place of its own libdispatch.so")
      return 0
    case "run":
      Terminal.say(RunOptions.help)
      return 0
    case .some(let unknown):
      Terminal.complain("there is no command '\(unknown)'")
      return 2
    }
  }
}

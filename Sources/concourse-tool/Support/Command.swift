/// A command of the tool.
protocol Command {
  associatedtype Options: CommandOptions
  /// What it does, in the list of all commands.
  static var summary: String { get }
  /// - Parameter arguments: The arguments after the command.
  /// - Returns: The exit status.
  static func run(_ options: Options, _ arguments: [String]) -> Int32
}

extension Command {
  static var name: String { Options.command }
  static var help: String { Options.help }

  /// - Returns: The exit status, unless a program has replaced the process.
  static func run(_ arguments: [String]) -> Int32 {
    switch Options.parse(arguments) {
    case .help:
      Terminal.printLine(help)
      return 0
    case .unusable(let reason):
      Terminal.printError("\(reason); see 'concourse \(name) --help'")
      return RunCommand.Status.failure
    case .options(let options):
      return run(options, arguments)
    }
  }
}

/// What may stand on the command line of one command. A command line is read by it, and the help is its text.
struct CommandSyntax<Options: CommandOptions> {
  /// A row of the table.
  struct Option {
    /// The help shows the first.
    var names: [String]
    /// The placeholder of its value in the help; nil if it has none.
    var placeholder: String?
    /// Whether it may also stand without the value, which must then be written as `NAME=VALUE`.
    var isOptional = false
    var help: String
    /// What is said to be missing without a value.
    var value = "value"
    /// Takes the value, or "".
    var store: (inout Options, String) throws(UsageError) -> Void = { _, _ in }
    /// What the command works on, if the option names that.
    var target: ((String) -> Options.Target)?

    /// As the help has it.
    var name: String {
      guard let placeholder else { return names[0] }
      return isOptional ? "\(names[0])[=\(placeholder)]" : "\(names[0]) \(placeholder)"
    }

    static func flag<Value>(
      _ name: String, _ property: WritableKeyPath<Options, Value>, _ value: Value, _ help: String
    ) -> Option {
      Option(names: [name], help: help) { options, _ in options[keyPath: property] = value }
    }

    static func text(
      _ names: String..., as placeholder: String, _ help: String,
      set: @escaping (inout Options, String) -> Void
    ) -> Option {
      Option(names: names, placeholder: placeholder, help: help, store: set)
    }

    /// - Parameter parse: Gives nil for a text that is not `what`.
    static func value<Value>(
      _ name: String, as placeholder: String, _ help: String, _ what: String,
      _ parse: @escaping (String) -> Value?, set: @escaping (inout Options, Value) -> Void
    ) -> Option {
      Option(names: [name], placeholder: placeholder, help: help) { (options, text) throws(UsageError) in
        guard let value = parse(text) else { throw UsageError("'\(text)' is not \(what)") }
        set(&options, value)
      }
    }

    /// A value that may be left out.
    /// - Parameter parse: Gives nil for a text that is not `what`; "" stands for no value.
    static func optional<Value>(
      _ name: String, as placeholder: String, _ help: String, _ what: String,
      _ parse: @escaping (String) -> Value?, set: @escaping (inout Options, Value) -> Void
    ) -> Option {
      var option = Option.value(name, as: placeholder, help, what, parse, set: set)
      option.isOptional = true
      return option
    }

    /// A file to work on.
    static func file(_ name: String, _ help: String, target: @escaping (String) -> Options.Target) -> Option {
      Option(names: [name], placeholder: "FILE", help: help, value: "path", target: target)
    }

    static func library(
      _ property: WritableKeyPath<Options, String?>,
      _ help: String = "the libdispatch.so to run the program on, as for 'concourse run'"
    ) -> Option {
      Option(names: ["--library"], placeholder: "PATH", help: help, value: "path") {
        (options, path) throws(UsageError) in
        if path.isEmpty { throw UsageError("--library needs a path") }
        options[keyPath: property] = path
      }
    }
  }

  /// What follows "concourse" and the command, in each of its forms.
  var forms: [String]
  var about: String
  var options: [Option]
  var notes: String
  /// What a number stands for; nil if the command does not work on processes.
  var process: ((Int32) -> Options.Target)?
  /// What the place of a program among the arguments stands for; nil if the command starts none. Later words are the
  /// program's.
  var program: ((Int) -> Options.Target)?
  /// The errors of a command line with no target, and with more than one.
  var noTarget: String
  var manyTargets = ""

  /// The names of all options, as the help has them.
  var names: [String] { options.map { $0.names[0] } + ["--help"] }

  var help: String {
    let rows =
      options.map { ($0.name, $0.help) }
      + [("--help", "prints this text")]
    let width = rows.map(\.0.count).max()! + 2
    let table = rows.map { left, right in
      let lines = right.split(separator: "\n").joined(
        separator: "\n" + String(repeating: " ", count: width + 2))
      return "  " + left + String(repeating: " ", count: width - left.count) + lines
    }
    let usage = forms.map { "concourse \(Options.command) \($0)" }.joined(separator: "\n       ")
    return "usage: \(usage)\n\n\(about)\n\n\(table.joined(separator: "\n"))\n\n\(notes)"
  }

  /// - Parameter arguments: The arguments after the command.
  /// - Returns: nil if help is wanted.
  fileprivate func parse(_ arguments: [String]) throws(UsageError) -> Options? {
    var options = Options()
    var targets: [Options.Target] = []
    var index = 0
    reading: while index < arguments.count {
      let argument = arguments[index]
      switch argument {
      case "--help", "-h": return nil
      case "--" where program != nil:
        index += 1
        break reading
      case _ where argument.utf8.first == UInt8(ascii: "-"):
        let (option, value) = try option(of: arguments, at: &index)
        try option.store(&options, value)
        if let target = option.target { targets.append(target(value)) }
      default:
        if let process, program == nil || targets.isEmpty, let id = Int32(argument), id > 0 {
          targets.append(process(id))
        } else if program != nil {
          break reading
        } else {
          throw UsageError("'\(argument)' is not the id of a process")
        }
      }
      index += 1
    }
    if let program, index < arguments.count { targets.append(program(index)) }
    guard let target = targets.first else { throw UsageError(noTarget) }
    guard targets.count == 1 else { throw UsageError(manyTargets) }
    options.target = target
    try options.validate()
    return options
  }

  /// The option that stands at a place of the command line, as `NAME`, `NAME VALUE` or `NAME=VALUE`.
  /// - Parameter index: Moves to the value in the second form.
  private func option(of arguments: [String], at index: inout Int) throws(UsageError) -> (Option, String) {
    let argument = arguments[index]
    // Not by characters: a mark at the beginning of the value would be part of the sign.
    let parts = argument.utf8.split(
      separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
    let name = String(Substring(parts[0]))
    guard
      let option = options.first(where: {
        $0.names.contains(name) && (parts.count == 1 || $0.placeholder != nil)
      })
    else { throw UsageError(Suggestion.unknown("option", argument, of: names)) }
    if parts.count == 2 { return (option, String(Substring(parts[1]))) }
    guard option.placeholder != nil && !option.isOptional else { return (option, "") }
    index += 1
    guard index < arguments.count else { throw UsageError("\(name) needs a \(option.value)") }
    return (option, arguments[index])
  }
}

/// What a command's line has said.
protocol CommandOptions: Equatable, Sendable {
  /// What the command works on.
  associatedtype Target: Equatable, Sendable
  /// The name of the command.
  static var command: String { get }
  static var syntax: CommandSyntax<Self> { get }
  var target: Target { get set }
  /// As without options; the target is replaced.
  init()
  /// Refuses options that exclude each other.
  func validate() throws(UsageError)
}

/// What is wrong with a command line.
struct UsageError: Error, Equatable {
  let reason: String

  init(_ reason: String) { self.reason = reason }
}

enum ParsedCommandLine<Options: CommandOptions>: Equatable, Sendable {
  case options(Options)
  case help
  case unusable(String)
}

extension CommandOptions {
  func validate() throws(UsageError) {}

  /// - Parameter arguments: The arguments after the command.
  static func parse(_ arguments: [String]) -> ParsedCommandLine<Self> {
    do { return try syntax.parse(arguments).map { .options($0) } ?? .help } catch {
      return .unusable(error.reason)
    }
  }

  static var help: String { syntax.help }

  static func seconds(in range: ClosedRange<Double>) -> (String) -> Double? {
    { Double($0).flatMap { range.contains($0) ? $0 : nil } }
  }
}

/// The command line of `concourse top`.
struct TopOptions: Equatable {
  enum Target: Equatable {
    case process(Int32)
    /// The index of the program among the arguments.
    case program(Int)
  }

  enum Form: Equatable {
    case screen, text, json
  }

  var target: Target
  var form = Form.screen
  var isOnce = false
  /// Seconds.
  var interval = 1.0
  var filter = ""
  var order = TopState.Order.rate
  /// The library to run a program on, if not the one beside the command.
  var library: String?

  enum Parsed: Equatable {
    case top(TopOptions)
    case help
    /// The error in the command line.
    case unusable(String)
  }

  /// - Parameter arguments: The arguments after `top`.
  static func parse(_ arguments: [String]) -> Parsed {
    var options = TopOptions(target: .process(0))
    var process: Int32?
    var index = 0
    reading: while index < arguments.count {
      let argument = arguments[index]
      func value(_ name: String) -> String? { arguments.value(of: name, at: &index) }
      switch argument {
      case "--help", "-h": return .help
      case "--once": options.isOnce = true
      case "--json": options.form = .json
      case "--text": options.form = .text
      case "--":
        index += 1
        break reading
      default:
        if let text = value("--interval") {
          guard let seconds = Double(text), seconds >= 0.1, seconds <= 3600 else {
            return .unusable("'\(text)' is not a number of seconds from 0.1 to 3600")
          }
          options.interval = seconds
        } else if let text = value("--filter") {
          options.filter = text
        } else if let text = value("--sort") {
          guard let order = TopState.Order(rawValue: text) else {
            let all = TopState.Order.allCases.map(\.rawValue).joined(separator: ", ")
            return .unusable("'\(text)' is not one of \(all)")
          }
          options.order = order
        } else if let path = value("--library") {
          options.library = path
        } else if argument.utf8.first == UInt8(ascii: "-") {
          return .unusable(
            ["--interval", "--filter", "--sort", "--library"].contains(argument)
              ? "\(argument) needs a value"
              : Suggestion.unknown("option", argument, of: Suggestion.options(in: help)))
        } else if process == nil, let number = Int32(argument), number > 0 {
          process = number
        } else {
          break reading
        }
      }
      index += 1
    }
    let hasProgram = index < arguments.count
    guard !hasProgram || process == nil else { return .unusable("only one process or program can be given") }
    if let process {
      options.target = .process(process)
    } else if hasProgram {
      options.target = .program(index)
    } else {
      return .unusable("no process and no program given")
    }
    return .top(options)
  }

  static let help = """
    usage: concourse top [options] PID
           concourse top [options] [--] program [argument ...]

    Shows what a process on Concourse does, again and again: its queues by rate, with depth, wait time and run
    time (median and 99th percentile), its pool, blocked threads and what they wait for, timers and sources.
    The ? key explains the keys: sort, filter by label, freeze, look into a queue.

      --interval N     seconds between two views, from 0.1 (default: 1)
      --sort COLUMN    rate, depth, wait, run, busy or name
      --filter TEXT    only queues whose label contains the text
      --once           one interval as plain text; or as JSON, with --json
      --json           a JSON object on one line for each interval; times are in nanoseconds
      --text           plain text for each interval; also if the output is not a terminal
      --library PATH   the libdispatch.so to run the program on, as for 'concourse run'
      --help           prints this text

    The events are recorded while the command runs (see 'concourse help trace'), so an item of the process takes
    30 to 50 ns longer, or 60 to 110 if there is no free processor for the command; the rest is read from its
    memory, and its threads are not stopped. That needs the permissions of ptrace (see ptrace(2)). A program that
    is started here ends with the view; what it prints is shown afterwards, or goes to standard error with --once,
    --json and --text.
    NO_COLOR switches colours off.

    Exit status: 0, or 125 if the process cannot be watched; of a program that ended, its own.
    """
}

import ExampleSupport
import Glibc

/// The program: starts the server, and gives the main thread to the main queue, where the signals arrive.
@main
struct EchoServer {
  private static let program = Program(name: "echo-server", help: helpText)
  // SAFETY: OWNED BY the main queue.
  private nonisolated(unsafe) static var isStopping = false

  static func main() {
    var options = program.options(Options.init)
    let wanted = options.maximumConnections
    options.maximumConnections = DescriptorLimit.makeRoom(for: wanted)
    if options.maximumConnections < wanted {
      program.complain(
        "the hard limit of open descriptors (ulimit -Hn) leaves room for \(options.maximumConnections) "
          + "connections, not \(wanted); further clients have to wait")
    }
    // If the reader of our standard output has gone, a write should fail and not end the process.
    signal(SIGPIPE, SIG_IGN)

    let server: Server
    do {
      server = try Server(options) { program.complain($0) }
    } catch {
      program.complain(error.message)
      exit(1)
    }
    let begin = { @Sendable [quiet = options.quiet] in
      server.start()
      if !quiet {
        _ = writeAll(Bytes("echo-server: listening on \(server.address)\n".utf8), to: STDOUT_FILENO)
      }
    }
    Signals.handle([SIGTERM, SIGINT, SIGUSR1], on: .main, whenReady: begin) { [options] signal in
      if signal == SIGUSR1 { program.complain(server.statistics.line) } else { stop(server, options) }
    }
    dispatchMain()
  }

  private static func stop(_ server: Server, _ options: Options) {
    // The second signal ends all connections at once.
    if isStopping { return server.abort() }
    isStopping = true
    if !options.quiet { program.complain("stopping, \(server.statistics.open) connections to close") }
    server.stop(grace: options.grace) {
      let statistics = server.statistics
      if !options.quiet { program.complain(statistics.line) }
      exit(statistics.cutOff == 0 ? 0 : 1)
    }
  }
}

/// What the user asked for.
struct Options: Sendable, Equatable {
  var host = "127.0.0.1"
  /// 0 lets the kernel choose.
  var port: UInt16 = 7007
  var maximumConnections = 5_000
  /// Seconds that clients have to take their pending output once the server stops.
  var grace = 5
  var quiet = false
  /// Seconds without input after which a connection whose output has ended is closed. Only tests change it.
  var silence = 1.0

  init() {}

  init(_ arguments: inout Arguments) throws(UsageError) {
    while let argument = try arguments.next() {
      switch argument {
      case .name(let name): throw UsageError("no names are expected: \(name.text)")
      case .option("--host"): host = try arguments.value().text
      case .option("-p"), .option("--port"): port = UInt16(try arguments.number(in: 0...65_535))
      case .option("--max-connections"): maximumConnections = try arguments.number(in: 1...1_000_000)
      case .option("--grace"): grace = try arguments.number(in: 0...86_400)
      case .option("-q"), .option("--quiet"): quiet = true
      case .option: throw arguments.unknownOption()
      }
    }
  }
}

private let helpText = """
  usage: echo-server [options]

  Sends back to each TCP client what it receives from it.

        --host ADDRESS        where to listen: a name or an address, IPv4 or IPv6 (127.0.0.1)
    -p, --port N              the port; 0 lets the kernel choose one (7007)
        --max-connections N   connections at the same time; further clients wait (5000)
        --grace N             seconds that clients have to take their output after SIGTERM (5)
    -q, --quiet               print errors only
    -h, --help                print this text

  SIGTERM or SIGINT (Ctrl-C) stops it: it accepts no more clients, sends back what it has received, closes all
  connections and ends. A second one closes them at once. SIGUSR1 prints a line of statistics on standard error.

  Exit status: 0 after an orderly stop, 1 if it could not listen or clients were cut off with output pending, 2 if
  the command line is wrong.

  """

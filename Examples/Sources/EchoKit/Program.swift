import Glibc

/// The program: reads the command line, starts the server, and gives the main thread to the main queue,
/// where the signals arrive.
package func runProgram() -> Never {
  do {
    switch try Arguments.parse(Array(CommandLine.arguments.dropFirst())) {
    case .help: finish(printing: helpText)
    case .version: finish(printing: versionText)
    case .serve(let options): serve(options)
    }
  } catch {
    write("echo-server: \(error.message)\nTry 'echo-server --help'.\n", to: STDERR_FILENO)
    exit(2)
  }
}

private func serve(_ wanted: Options) -> Never {
  var options = wanted
  options.maximumConnections = DescriptorLimit.makeRoom(for: wanted.maximumConnections)
  if options.maximumConnections < wanted.maximumConnections {
    complain(
      "the hard limit of open descriptors (ulimit -Hn) leaves room for \(options.maximumConnections) "
        + "connections, not \(wanted.maximumConnections); further clients have to wait")
  }
  // Whoever reads our standard output may be gone; that is an error number, no reason to die.
  signal(SIGPIPE, SIG_IGN)

  let server: Server
  do {
    server = try Server(options, report: complain)
  } catch {
    complain(error.message)
    exit(1)
  }
  let begin = {
    server.start()
    if !options.quiet { write("echo-server: listening on \(server.address)\n", to: STDOUT_FILENO) }
  }
  let signals = Signals(handle: { handle($0, server, options) }, whenReady: begin)
  withExtendedLifetime(signals) { dispatchMain() }
}

private func handle(_ signal: Int32, _ server: Server, _ options: Options) {
  guard signal != SIGUSR1 else {
    complain(server.statistics.line)
    return
  }
  // A second one means: at once. What has stopped already does not mind.
  if stopping {
    server.abort()
    return
  }
  stopping = true
  if !options.quiet { complain("stopping, \(server.statistics.open) connections to close") }
  server.stop(grace: options.grace) {
    let statistics = server.statistics
    if !options.quiet { complain(statistics.line) }
    exit(statistics.cutOff == 0 ? 0 : 1)
  }
}

/// Whether a signal has asked for the end.
// SAFETY: OWNED BY the main queue, on which signals are handled one after the other.
private nonisolated(unsafe) var stopping = false

private func finish(printing text: String) -> Never {
  let failure = write(text, to: STDOUT_FILENO)
  if failure != 0 { complain("standard output: \(String(cString: strerror(failure)))") }
  exit(failure == 0 ? 0 : 1)
}

import Glibc

/// The program: reads the command line, starts to follow, and gives the main thread away.
package func runProgram() -> Never {
  let options: Options
  do {
    switch try Arguments.parse(commandLine()) {
    case .help: finish(printing: helpText)
    case .version: finish(printing: versionText)
    case .follow(let parsed): options = parsed
    }
  } catch {
    writeToStandardError(Bytes("tail-many: \(error.message)\nTry 'tail-many --help'.\n".utf8))
    exit(2)
  }
  let follower = Follower(options, report: writeToStandardError) { outcome in
    // A reader that has had enough, `head` for example, needs no words.
    if outcome.outputFailure != 0 && outcome.outputFailure != EPIPE {
      let reason = describe(errno: outcome.outputFailure)
      writeToStandardError(Bytes("tail-many: standard output: \(reason)\n".utf8))
    }
    exit(outcome.status)
  }
  let stopping = Stopping()
  let signals = Signals(queue: follower.queue) { signal in
    // The second says that this takes too long: nobody reads the output any more.
    if stopping.hasBegun { _exit(128 + signal) }
    stopping.hasBegun = true
    follower.stop(status: 128 + signal)
  } status: {
    writeToStandardError(follower.statusLine())
  }
  follower.start(output: STDOUT_FILENO)
  withExtendedLifetime(signals) { dispatchMain() }
}

/// Whether somebody has asked for the end.
// SAFETY: OWNED BY the follower's queue.
private final class Stopping: @unchecked Sendable {
  var hasBegun = false
}

private func finish(printing text: String) -> Never {
  exit(writeAll(Bytes(text.utf8), to: STDOUT_FILENO) == 0 ? 0 : 1)
}

/// The arguments as the kernel passed them: `CommandLine.arguments` repairs what is not UTF-8.
private func commandLine() -> [Bytes] {
  (1..<max(1, Int(CommandLine.argc))).map { place in
    let argument = CommandLine.unsafeArgv[place]!
    // SAFETY: argv holds NUL-terminated strings that live as long as the process.
    return argument.withMemoryRebound(to: UInt8.self, capacity: strlen(argument)) {
      Bytes(UnsafeBufferPointer(start: $0, count: strlen(argument)))
    }
  }
}

import Glibc

/// The command's output.
enum Terminal {
  /// Why a result could not be printed; 0 if none was lost.
  // SAFETY: only the command's first thread prints.
  nonisolated(unsafe) private(set) static var failure: Int32 = 0

  /// Prints a result to standard output.
  /// - Parameter isCancelled: Whether the rest is left out, since a signal that this command handles has come. The reader
  ///   may leave a pipe full for any time.
  static func printLine(_ text: String, unless isCancelled: (() -> Bool)? = nil) {
    let error = emit(text + "\n", to: STDOUT_FILENO, unless: isCancelled)
    if failure == 0 { failure = error }
  }

  /// The exit status of a command that ends with `status`: a lost result is a failure, unless its reader has gone.
  static func status(_ status: Int32) -> Int32 {
    guard failure != 0 && failure != EPIPE else { return status }
    printError("the output cannot be written: \(describe(error: failure))")
    return status == 0 ? RunCommand.Status.failure : status
  }

  /// Undoes what a parent may have left. A process that ignores SIGCHLD cannot wait for its children. Without a standard
  /// descriptor, a file of the command's would take its number, and get the messages; printing still fails.
  static func makeUsual() {
    signal(SIGCHLD, SIG_DFL)
    for descriptor in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO]
    where fcntl(descriptor, F_GETFD) < 0 && errno == EBADF {
      // The lowest free number is this one.
      _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
    }
  }

  /// Whether the command's parent ignores the signal, as nohup(1) does for SIGHUP.
  static func isIgnored(_ number: Int32) -> Bool {
    var action = sigaction()
    // SAFETY: the field is a pointer or SIG_IGN, which is 1.
    return sigaction(number, nil, &action) == 0
      && unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
  }

  /// Prints a message of one line to standard error, after the command's name. `asIs`: text of our own, or of a program
  /// that writes to this terminal itself.
  static func printError(_ text: String, asIs: Bool = false) {
    _ = emit(asIs ? text : "concourse: \(ForeignText.line(text))\n", to: STDERR_FILENO)
  }

  // Unbuffered: another program may replace the process right afterwards.
  /// - Returns: `errno`, or 0.
  private static func emit(
    _ text: String, to descriptor: Int32, unless isCancelled: (() -> Bool)? = nil
  ) -> Int32 {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      if let isCancelled {
        // A handler returns into a `write` that waits. The signal may also come right before it, so nothing waits long.
        var room = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        let isReady = poll(&room, 1, 50) != 0
        if isCancelled() { return 0 }
        guard isReady else { continue }
      }
      // A pipe that is ready has room for so many.
      let most = isCancelled == nil ? rest.count : min(rest.count, Int(PIPE_BUF))
      let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, most) }
      if count < 0 && errno == EINTR { continue }
      if count < 0 && errno == EAGAIN {
        // Another program has made the terminal or the pipe one that does not block.
        var room = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        _ = poll(&room, 1, -1)
        continue
      }
      guard count > 0 else { return count < 0 ? errno : EIO }
      rest = rest.dropFirst(count)
    }
    return 0
  }
}

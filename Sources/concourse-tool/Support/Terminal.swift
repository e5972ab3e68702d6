import Glibc

/// The command's output.
enum Terminal {
  /// Prints a result to standard output.
  static func printLine(_ text: String) {
    emit(text + "\n", to: STDOUT_FILENO)
  }

  /// Prints a message of one line to standard error, after the command's name. `asIs`: text of our own, or of a program
  /// that writes to this terminal itself.
  static func printError(_ text: String, asIs: Bool = false) {
    emit(asIs ? text : "concourse: \(ForeignText.line(text))\n", to: STDERR_FILENO)
  }

  // Unbuffered: another program may replace the process right afterwards.
  private static func emit(_ text: String, to descriptor: Int32) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      // A closed output cannot be reported.
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }
}

import Glibc

/// What the command says, and where.
enum Terminal {
  /// An answer that was asked for: to standard output.
  static func say(_ text: String) {
    put(text + "\n", to: STDOUT_FILENO)
  }

  /// Everything else: to standard error, in the manner of other commands. `asIs` leaves out the name.
  static func complain(_ text: String, asIs: Bool = false) {
    put(asIs ? text : "concourse: \(text)\n", to: STDERR_FILENO)
  }

  // Written at once and unbuffered: the process may become another program right afterwards.
  private static func put(_ text: String, to descriptor: Int32) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      // Nobody is there to be told that nobody listens.
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }
}

import Glibc

/// The terminal while the view is shown: another screen, without echo. It is restored when the view ends, also when the
/// command is stopped, ended by a signal or traps.
final class LiveScreen {
  /// The signal that ended the view; 0 if none.
  // SAFETY: a signal handler writes a word of these five, or reads what was written before it was installed; otherwise
  // only the view's thread uses them. If the thread that reads tasks traps, the process ends.
  nonisolated(unsafe) private static var endedBy: Int32 = 0
  nonisolated(unsafe) private static var isStopped = false
  nonisolated(unsafe) private static var original = termios()
  // SAFETY: as above.
  nonisolated(unsafe) private static var descriptor: Int32 = -1
  nonisolated(unsafe) private static var isShown = false

  private static let enterSequence: StaticString = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l"
  private static let leaveSequence: StaticString = "\u{1B}[0m\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"

  private var pending: [UInt8] = []
  private(set) var isClosed = false
  private let input: Int32

  /// nil if there is no terminal.
  init?() {
    // Keys also work if standard input is something else.
    input = open("/dev/tty", O_RDWR | O_CLOEXEC)
    guard input >= 0, tcgetattr(input, &Self.original) == 0 else { return nil }
    Self.descriptor = input
    for number in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
      signal(number) { number in
        // The second one ends the command, whatever it does.
        if LiveScreen.endedBy != 0 { LiveScreen.die(of: number) }
        LiveScreen.endedBy = number
      }
    }
    signal(SIGTSTP) { _ in LiveScreen.isStopped = true }
    // It interrupts the wait for a key; the next drawing asks for the size.
    signal(SIGWINCH) { _ in }
    signal(SIGPIPE, SIG_IGN)
    for number in [SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGBUS, SIGFPE] {
      signal(number) { number in
        LiveScreen.restore()
        signal(number, SIG_DFL)
        raise(number)
      }
    }
    Self.show()
  }

  deinit {
    Self.restore()
    close(input)
  }

  private static func show() {
    var raw = original
    raw.c_lflag &= ~tcflag_t(ICANON | ECHO)
    raw.c_iflag &= ~tcflag_t(IXON | ICRNL)
    isShown = true
    tcsetattr(descriptor, TCSAFLUSH, &raw)
    _ = write(descriptor, enterSequence.utf8Start, enterSequence.utf8CodeUnitCount)
  }

  /// Async-signal-safe.
  private static func restore() {
    guard isShown else { return }
    isShown = false
    _ = write(descriptor, leaveSequence.utf8Start, leaveSequence.utf8CodeUnitCount)
    tcsetattr(descriptor, TCSAFLUSH, &original)
  }

  /// The signal that asks the command to end; nil if none has come.
  static var endingSignal: Int32? { endedBy == 0 ? nil : endedBy }

  /// Ends the process as the signal would have.
  static func die(of number: Int32) -> Never {
    restore()
    signal(number, SIG_DFL)
    raise(number)
    // Blocked in its own handler.
    _exit(128 + number)
  }

  /// Whether the terminal shows colours and more than ASCII, as the environment says.
  static func abilities() -> ScreenLine.Abilities {
    func text(_ name: String) -> String? {
      getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }
    let locale = (text("LC_ALL") ?? text("LC_CTYPE") ?? text("LANG") ?? "").lowercased()
    return ScreenLine.Abilities(
      hasAttributes: true, hasColours: text("NO_COLOR") == nil,
      isUnicode: locale.hasSuffix("utf-8") || locale.hasSuffix("utf8"))
  }

  /// Columns and rows of a terminal; 80 and 24 if it does not say.
  static func size(of descriptor: Int32) -> (columns: Int, rows: Int) {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
      return (80, 24)
    }
    return (Int(size.ws_col), Int(size.ws_row))
  }

  var size: (columns: Int, rows: Int) { Self.size(of: input) }

  func draw(_ lines: [ScreenLine], _ abilities: ScreenLine.Abilities, _ columns: Int) {
    var text = "\u{1B}[H"
    for (index, line) in lines.enumerated() {
      text += (index == 0 ? "" : "\r\n") + line.text(abilities, limit: columns) + "\u{1B}[K"
    }
    text += "\u{1B}[J"
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(input, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR && Self.endingSignal == nil { continue }
      guard count > 0 else {
        isClosed = isClosed || (count < 0 && errno != EINTR)
        return
      }
      rest = rest.dropFirst(count)
    }
  }

  /// Waits for keys; returns early when the screen must be drawn again, or the command is to end.
  func keys(within milliseconds: Int32) -> [TerminalKey] {
    if Self.isStopped { suspend() }
    var watched = pollfd(fd: input, events: Int16(POLLIN), revents: 0)
    guard poll(&watched, 1, milliseconds) > 0 else { return [] }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = read(input, &bytes, bytes.count)
    guard count > 0 else {
      // The terminal is gone.
      isClosed = isClosed || !(count < 0 && (errno == EINTR || errno == EAGAIN))
      return []
    }
    pending += bytes[..<count]
    return TerminalKey.take(from: &pending)
  }

  /// The key for suspending: the shell gets its terminal, until it continues this command.
  private func suspend() {
    Self.isStopped = false
    Self.restore()
    raise(SIGSTOP)
    Self.show()
  }
}

import Glibc
import Testing

/// A terminal that a test reads and types on.
final class PseudoTerminal {
  private let leader: Int32
  /// Kept open, so that reading does not fail while no program has it.
  private let follower: Int32
  private let path: String
  private(set) var output: [UInt8] = []
  /// The program that has been started and not waited for; 0 for none.
  private var running: pid_t = 0

  init(columns: UInt16, rows: UInt16) throws {
    // `posix_openpt` and its companions, which the module of the C library does not show.
    leader = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    try #require(leader >= 0)
    var (isLocked, number): (Int32, UInt32) = (0, 0)
    let (setLock, getNumber): (UInt, UInt) = (0x4004_5431, 0x8004_5430)
    try #require(ioctl(leader, setLock, &isLocked) == 0 && ioctl(leader, getNumber, &number) == 0)
    path = "/dev/pts/\(number)"
    follower = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC)
    try #require(follower >= 0)
    resize(columns: columns, rows: rows)
  }

  deinit {
    // After a failed test. The testing library cannot wait for its own processes beside one that has ended.
    if running != 0 {
      kill(running, SIGKILL)
      while waitpid(running, nil, 0) < 0 && errno == EINTR {}
    }
    close(leader)
    close(follower)
  }

  func resize(columns: UInt16, rows: UInt16) {
    var size = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
    _ = ioctl(leader, UInt(TIOCSWINSZ), &size)
  }

  /// The flags that a program changes.
  var modes: [UInt32] {
    var modes = termios()
    tcgetattr(follower, &modes)
    return [modes.c_iflag, modes.c_oflag, modes.c_lflag]
  }

  /// Starts a program in a session of its own, whose terminal this is.
  func spawn(_ program: String, _ arguments: [String], environment: [String]) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, path, O_RDWR, 0)
    posix_spawn_file_actions_adddup2(&actions, 0, 1)
    posix_spawn_file_actions_adddup2(&actions, 0, 2)
    for descriptor: Int32 in 3..<256 { posix_spawn_file_actions_addclose(&actions, descriptor) }
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var (none, all) = (sigset_t(), sigset_t())
    sigemptyset(&none)
    sigfillset(&all)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    // POSIX_SPAWN_SETSID
    let newSession: Int16 = 0x80
    posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF) | newSession)
    let words = ([program] + arguments).map { strdup($0) } + [nil]
    let variables = environment.map { strdup($0) } + [nil]
    defer { for word in words + variables { free(word) } }
    var process: pid_t = 0
    let error = posix_spawn(&process, program, &actions, &attributes, words, variables)
    try #require(error == 0)
    running = process
    return process
  }

  func type(_ text: String) {
    let bytes = Array(text.utf8)
    #expect(write(leader, bytes, bytes.count) == bytes.count)
  }

  /// Reads until the condition holds, or for a minute: a guard against a hang.
  func read(until isReached: (PseudoTerminal) -> Bool, sourceLocation: SourceLocation = #_sourceLocation) {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    let limit = time.tv_sec + 60
    while !isReached(self) {
      clock_gettime(CLOCK_MONOTONIC, &time)
      guard time.tv_sec < limit else {
        let text = screen.isEmpty ? String(decoding: output, as: UTF8.self) : screen.joined(separator: "\n")
        Issue.record("not reached:\n\(text)", sourceLocation: sourceLocation)
        return
      }
      readWhatIsThere(waiting: 200)
    }
  }

  func readWhatIsThere(waiting milliseconds: Int32 = 0) {
    var watched = pollfd(fd: leader, events: Int16(POLLIN), revents: 0)
    while poll(&watched, 1, milliseconds) > 0 {
      var bytes = [UInt8](repeating: 0, count: 65536)
      let count = Glibc.read(leader, &bytes, bytes.count)
      guard count > 0 else { return }
      output += bytes[..<count]
      if milliseconds > 0 { return }
    }
  }

  /// The lines of the last whole drawing, without styles.
  var screen: [String] {
    let text = String(decoding: output, as: UTF8.self)
    let drawings = text.components(between: "\u{1B}[H", and: "\u{1B}[J")
    guard let last = drawings.last else { return [] }
    return last.split(separator: "\r\n", omittingEmptySubsequences: false).map { line in
      var plain = ""
      var isEscape = false
      for scalar in line.unicodeScalars {
        if scalar == "\u{1B}" { isEscape = true }
        if !isEscape && scalar != "\r" { plain.unicodeScalars.append(scalar) }
        if isEscape, scalar == "m" || scalar == "K" { isEscape = false }
      }
      while plain.hasSuffix(" ") { plain.removeLast() }
      return plain
    }
  }

  /// Waits for the end of a process, or until it stops, and reads meanwhile: it may wait for its output to be read.
  func wait(for process: pid_t, orStop: Bool = false) -> Int32 {
    var status: Int32 = 0
    read(until: { _ in
      guard waitpid(process, &status, WNOHANG | (orStop ? WUNTRACED : 0)) == process else { return false }
      // Not if it has stopped.
      if status & 0xFF != 0x7F { running = 0 }
      return true
    })
    readWhatIsThere()
    return status
  }
}

extension String {
  fileprivate func components(between start: String, and end: String) -> [Substring] {
    var found: [Substring] = []
    var rest = self[...]
    while let first = rest.firstRange(of: start) {
      rest = rest[first.upperBound...]
      guard let last = rest.firstRange(of: end) else { break }
      found.append(rest[..<last.lowerBound])
      rest = rest[last.upperBound...]
    }
    return found
  }
}

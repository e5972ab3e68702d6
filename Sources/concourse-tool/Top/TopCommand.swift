import ConcourseRecording
import Glibc

/// `concourse top`: a live view of what a process does.
enum TopCommand: Command {
  static let summary = "shows it live: queues, times, threads, timers and sources"

  static func run(_ options: TopOptions, _ arguments: [String]) -> Int32 {
    var options = options
    let terminal = getenv("TERM").map { String(cString: $0) }
    if options.form == .screen, options.isOnce || isatty(STDOUT_FILENO) == 0 || terminal == "dumb" {
      options.form = .text
    }
    do {
      switch options.target {
      case .process(let process):
        let end = try show(TopWatch(process), options, program: nil)
        return finish(end, process, nil)
      case .program(let index):
        let program = try WatchedProgram.start(
          arguments[index], index, library: options.library, keepsOutput: options.form == .screen)
        defer { program.end() }
        guard let watch = try attach(to: program) else {
          let status = program.end()
          // Else `concourse run` has said why.
          if !RunCommand.Status.notStarted.contains(status) {
            Terminal.printError("\(arguments[index]) has ended before it used Concourse")
          }
          return status
        }
        return try finish(show(watch, options, program: program), program.process, program)
      }
    } catch {
      Terminal.printError(error.reason)
      return RunCommand.Status.failure
    }
  }

  private enum End {
    case user, processEnded
    case signal(Int32)
  }

  private static func finish(_ end: End, _ process: Int32, _ program: WatchedProgram?) -> Int32 {
    var status: Int32 = 0
    let ended = program?.end() ?? 0
    switch end {
    case .user: break
    case .processEnded:
      if program == nil { Terminal.printError("process \(process) has ended") }
      status = ended
    case .signal(let number): LiveScreen.die(of: number)
    }
    return status
  }

  /// A started program is not on Concourse before its loader has run, which takes seconds on a busy machine.
  /// - Returns: nil if it has ended meanwhile.
  private static func attach(to program: WatchedProgram) throws(RecordingFailure) -> TopWatch? {
    let limit = UptimeClock.now + 30_000_000_000
    while true {
      program.readOutput()
      do { return try TopWatch(program.process) } catch {
        if program.hasEnded { return nil }
        if UptimeClock.now > limit { throw error }
      }
      usleep(5000)
    }
  }

  private static func show(_ watch: TopWatch, _ options: TopOptions, program: WatchedProgram?)
    throws(RecordingFailure) -> End
  {
    if options.form == .screen, let screen = LiveScreen() {
      return try showScreen(watch, options, screen, program)
    }
    return try print(watch, options, program)
  }

  // MARK: Text and JSON

  private static func print(_ watch: TopWatch, _ options: TopOptions, _ program: WatchedProgram?)
    throws(RecordingFailure) -> End
  {
    var state = TopState()
    (state.order, state.filter) = (options.order, options.filter)
    let columns = isatty(STDOUT_FILENO) != 0 ? LiveScreen.size(of: STDOUT_FILENO).columns : 120
    var abilities = ScreenLine.Abilities.none
    abilities.isUnicode = LiveScreen.abilities().isUnicode
    // The program ends with the view, also if the reader of the output has gone.
    signal(SIGPIPE, SIG_IGN)
    for number in [SIGINT, SIGTERM, SIGQUIT, SIGHUP] where number != SIGHUP || !Terminal.isIgnored(SIGHUP) {
      signal(number) { number in
        TopCommand.endedBy = number
        // The second one ends the command, whatever it does.
        signal(number, SIG_DFL)
      }
    }
    var end = UptimeClock.now
    while true {
      let interval = UInt64(options.interval * 1e9)
      end = max(end + interval, UptimeClock.now + interval / 2)
      var isAlive = true
      while isAlive && UptimeClock.now < end && endedBy == 0 {
        usleep(watch.microsecondsToNextPoll)
        isAlive = try watch.poll() && program?.hasEnded != true
      }
      if endedBy != 0 { return .signal(endedBy) }
      let frame = watch.frame(waitingForTasks: { options.isOnce && isAlive && endedBy == 0 })
      if options.form == .json {
        Terminal.printLine(TopJSON.line(frame, state.rows(frame))) { endedBy != 0 }
      } else {
        let screen = TopScreen(
          frame: frame, state: state, columns: columns, height: nil, abilities: abilities)
        let text = screen.lines().map { $0.text(abilities, limit: columns) }.joined(separator: "\n")
        Terminal.printLine(options.isOnce ? text : text + "\n") { endedBy != 0 }
      }
      if endedBy != 0 { return .signal(endedBy) }
      if Terminal.failure == EPIPE { return .signal(SIGPIPE) }
      if options.isOnce || Terminal.failure != 0 { return .user }
      if !isAlive { return .processEnded }
    }
  }

  // SAFETY: the view's thread, and a signal handler that only stores to it.
  nonisolated(unsafe) private static var endedBy: Int32 = 0

  // MARK: The screen

  private static func showScreen(
    _ watch: TopWatch, _ options: TopOptions, _ screen: LiveScreen, _ program: WatchedProgram?
  ) throws(RecordingFailure) -> End {
    let abilities = LiveScreen.abilities()
    var state = TopState()
    (state.order, state.filter) = (options.order, options.filter)
    var shown = watch.frame()
    var latest = shown
    var drawn = (columns: 0, rows: 0)
    var end = UptimeClock.now + UInt64(options.interval * 1e9)
    // The first view comes early.
    end = min(end, UptimeClock.now + 300_000_000)
    while true {
      if let number = LiveScreen.endingSignal { return number == SIGINT ? .user : .signal(number) }
      guard try watch.poll(), program?.hasEnded != true else { return .processEnded }
      program?.readOutput()
      var mustDraw = screen.size != drawn
      if UptimeClock.now >= end {
        latest = watch.frame()
        // On time again after a view that was late.
        let interval = UInt64(options.interval * 1e9)
        end = max(end + interval, UptimeClock.now + interval / 2)
        if !state.isFrozen { (shown, mustDraw) = (latest, true) }
      }
      if mustDraw {
        drawn = screen.size
        let lines = TopScreen(
          frame: shown, state: state, columns: drawn.columns, height: drawn.rows, abilities: abilities,
          function: watch.name
        ).lines()
        screen.draw(lines, abilities, drawn.columns)
      }
      let keys = screen.keys(within: Int32(watch.microsecondsToNextPoll / 1000))
      if screen.isClosed { return .user }
      for key in keys {
        if state.handle(key, shown) == .quit { return .user }
      }
      if !state.isFrozen && !keys.isEmpty { shown = latest }
      if !keys.isEmpty { drawn = (0, 0) }
    }
  }
}

/// A program that the command starts, and that ends with it.
final class WatchedProgram {
  let process: pid_t
  /// Reads what it prints; -1 if that goes to standard error.
  private var output: Int32
  private var kept: [UInt8] = []
  private var status: Int32?

  private static let mostKept = 1 << 18

  private init(_ process: pid_t, _ output: Int32) { (self.process, self.output) = (process, output) }

  /// - Parameter keepsOutput: Whether what it prints is kept until its end, since the screen is used otherwise.
  static func start(_ program: String, _ index: Int, library: String?, keepsOutput: Bool)
    throws(RecordingFailure) -> WatchedProgram
  {
    var ends: [Int32] = [-1, STDERR_FILENO]
    if keepsOutput {
      guard pipe(&ends) == 0 else { throw RecordingFailure("no pipe: \(describe(error: lastError()))") }
      for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
      _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
    }
    defer { if keepsOutput { close(ends[1]) } }
    do {
      // The keys are the view's: the interrupt key, too.
      return WatchedProgram(
        try TracedProgram.start(program, index, library: library, output: ends[1], isApart: keepsOutput),
        ends[0])
    } catch {
      if keepsOutput { close(ends[0]) }
      throw error
    }
  }

  /// Reads what it has printed. The latest is kept.
  func readOutput() {
    guard output >= 0 else { return }
    var piece = [UInt8](repeating: 0, count: 65536)
    // A program that prints without end must not keep the view from its work.
    for _ in 0..<16 {
      let count = read(output, &piece, piece.count)
      guard count > 0 else { break }
      kept += piece[..<count]
    }
    if kept.count > 2 * Self.mostKept { kept.removeFirst(kept.count - Self.mostKept) }
  }

  var hasEnded: Bool {
    if status != nil { return true }
    var number: Int32 = 0
    guard waitpid(process, &number, WNOHANG) == process else { return false }
    status = number
    return true
  }

  /// Ends the program if it runs, and prints what it has printed.
  /// - Returns: its exit status.
  @discardableResult
  func end() -> Int32 {
    if !hasEnded { kill(process, SIGTERM) }
    let limit = UptimeClock.now + 2_000_000_000
    while !hasEnded {
      if UptimeClock.now > limit { kill(process, SIGKILL) }
      readOutput()
      usleep(2000)
    }
    if output >= 0 {
      readOutput()
      close(output)
      output = -1
      if kept.count > Self.mostKept { kept.removeFirst(kept.count - Self.mostKept) }
      if !kept.isEmpty { Terminal.printError(String(decoding: kept, as: UTF8.self), asIs: true) }
      kept = []
    }
    let killed = status! & 0x7F
    return killed == 0 ? status! >> 8 & 0xFF : 128 + killed
  }
}

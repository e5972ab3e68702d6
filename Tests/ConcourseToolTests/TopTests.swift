import Foundation
import Glibc
import Testing

@testable import ConcourseTool

/// `concourse top`, run as a program, on a terminal and without.
@Suite(
  "concourse top", .enabled(if: getenv("CONCOURSE_SANITIZER") == nil), .timeLimit(.minutes(10)), .serialized)
struct TopTests {
  let fixture: ReportFixture

  init() throws { fixture = try ReportFixture() }

  private func busy(_ arguments: [String] = []) throws -> Examined {
    let program = Examined(try fixture.spawn(fixture.waits, ["busy"] + arguments))
    program.program.waitForOutput("ready")
    return program
  }

  /// The view of a busy program on a terminal, once it shows its queues.
  private struct Shown {
    let terminal: PseudoTerminal
    let process: pid_t
    let before: [UInt32]

    init(_ fixture: ReportFixture, _ arguments: [String], environment: [String] = []) throws {
      terminal = try PseudoTerminal(columns: 80, rows: 24)
      before = terminal.modes
      process = try terminal.spawn(
        fixture.command, ["top", "--interval", "0.3"] + arguments,
        environment: environment + ["LC_ALL=C.UTF-8", "TERM=xterm", "SWIFT_BACKTRACE=enable=no"]
          + ToolFixture.environment)
      terminal.read { Self.shows($0, "e.thumbnails", "BLOCKED THREADS", "timer on \"ticks\"") }
      #expect(terminal.modes != before)
    }

    static func shows(_ terminal: PseudoTerminal, _ texts: String...) -> Bool {
      let screen = terminal.screen
      return texts.allSatisfy { text in screen.contains { $0.contains(text) } }
    }

    /// The modes and the screen are the shell's again.
    func expectRestored(sourceLocation: SourceLocation = #_sourceLocation) {
      terminal.readWhatIsThere()
      #expect(terminal.modes == before, sourceLocation: sourceLocation)
      let text = String(decoding: terminal.output, as: UTF8.self)
      let last = text.range(of: "\u{1B}[?1049", options: .backwards)
      #expect(last.map { text[$0.upperBound...].hasPrefix("l") } == true, sourceLocation: sourceLocation)
      let cursor = text.range(of: "\u{1B}[?25", options: .backwards)
      #expect(cursor.map { text[$0.upperBound...].hasPrefix("h") } == true, sourceLocation: sourceLocation)
    }
  }

  @Test("keys, sizes and the end on a terminal")
  func session() throws {
    let program = try busy()
    let shown = try Shown(fixture, [program.id])
    let terminal = shown.terminal
    #expect(terminal.screen.count == 24)
    #expect(terminal.screen.allSatisfy { DisplayText.width($0) <= 80 }, "\(terminal.screen)")
    #expect(terminal.screen[0].contains("concourse top   report-probe (\(program.id))"))
    #expect(terminal.screen.contains { $0.contains("waits for a semaphore") })
    #expect(String(decoding: terminal.output, as: UTF8.self).contains("\u{1B}[1;36mPOOL"))

    terminal.type("n")
    terminal.read { Shown.shows($0, "sort: name") }
    terminal.type("/THUMB\r")
    terminal.read { screen in
      !Shown.shows(screen, "com.example.images") && Shown.shows(screen, "filter: THUMB")
    }
    #expect(terminal.screen.contains { $0.contains("e.thumbnails") })
    terminal.type("\u{1B}")
    terminal.read { Shown.shows($0, "com.example.images") }
    terminal.type("?")
    terminal.read { Shown.shows($0, "KEYS") }
    terminal.type("\u{1B}")
    terminal.read { !Shown.shows($0, "KEYS") }
    terminal.type("\u{1B}[B\r")
    // Sorted by name, the table has no such title.
    terminal.read { Shown.shows($0, "QUEUE  ", "FUNCTION") }
    terminal.type("f")
    terminal.read { Shown.shows($0, "FROZEN") }
    terminal.resize(columns: 120, rows: 40)
    terminal.read { $0.screen.count == 40 }
    terminal.type("q")
    #expect(terminal.wait(for: shown.process) == 0)
    shown.expectRestored()
  }

  @Test("NO_COLOR has no colours")
  func colours() throws {
    let program = try busy()
    let shown = try Shown(fixture, [program.id], environment: ["NO_COLOR=1"])
    shown.terminal.type("q")
    #expect(shown.terminal.wait(for: shown.process) == 0)
    let text = String(decoding: shown.terminal.output, as: UTF8.self)
    #expect(!text.contains("\u{1B}[1;36m") && !text.contains("\u{1B}[32m") && !text.contains("\u{1B}[33m"))
    #expect(text.contains("\u{1B}[1mPOOL"))
  }

  @Test(
    "a signal restores the terminal and ends the command", arguments: [SIGTERM, SIGHUP, SIGQUIT, SIGSEGV])
  func signals(number: Int32) throws {
    let program = try busy()
    let shown = try Shown(fixture, [program.id])
    kill(shown.process, number)
    #expect(shown.terminal.wait(for: shown.process) & 0x7F == number)
    shown.expectRestored()
  }

  @Test("the interrupt key quits")
  func interrupt() throws {
    let program = try busy()
    let shown = try Shown(fixture, [program.id])
    shown.terminal.type("\u{3}")
    #expect(shown.terminal.wait(for: shown.process) == 0)
    shown.expectRestored()
  }

  @Test("a suspended command gives the terminal back, and takes it again")
  func suspension() throws {
    let program = try busy()
    let shown = try Shown(fixture, [program.id])
    shown.terminal.type("\u{1A}")
    #expect(shown.terminal.wait(for: shown.process, orStop: true) & 0xFF == 0x7F)
    shown.expectRestored()
    kill(shown.process, SIGCONT)
    shown.terminal.read { $0.modes != shown.before }
    shown.terminal.type("q")
    #expect(shown.terminal.wait(for: shown.process) == 0)
    shown.expectRestored()
  }

  @Test("another command that switches the recording off is noticed")
  func pause() throws {
    let program = try busy()
    let process = try #require(pid_t(program.id))
    let first = try LiveRecording(process)
    while first.reader?.hasEvents != true { #expect(try first.poll()) }
    for pauses in 1...2 {
      do {
        let second = try LiveRecording(process)
        #expect(try second.poll())
      }
      #expect(try first.poll())
      #expect(first.reader?.pauses.count == pauses)
    }
    #expect(try first.poll())
    #expect(first.reader?.pauses.count == 2)
    #expect(try #require(first.reader).take().losses.contains("recording was off 2 times"))
  }

  @Test("the end of the watched process ends the view")
  func processEnds() throws {
    let program = try busy()
    let shown = try Shown(fixture, [program.id])
    kill(program.program.identifier, SIGKILL)
    #expect(shown.terminal.wait(for: shown.process) == 0)
    shown.expectRestored()
    let text = String(decoding: shown.terminal.output, as: UTF8.self)
    #expect(text.hasSuffix("concourse: process \(program.id) has ended\r\n"), "\(text.suffix(200))")
  }

  @Test("a process whose main thread ends while it is watched goes on")
  func mainThreadEnds() throws {
    let program = Examined(try fixture.spawn(fixture.waits, ["ending-main"]))
    program.program.waitForOutput("ready")
    let recording = try LiveRecording(program.program.identifier)
    while recording.reader?.hasEvents != true { try #require(try recording.poll()) }
    kill(program.program.identifier, SIGUSR1)
    let thread = "/proc/\(program.id)/task/\(program.id)/status"
    while ProcFile.read(thread).map({ !ProcFile.value(of: "State", in: $0).hasPrefix("Z") }) ?? true {
      try #require(TargetProcess.isAlive(program.program.identifier))
      usleep(1000)
    }
    try #require(try recording.poll())
    _ = try #require(recording.reader).take()
    while recording.reader?.hasEvents != true { try #require(try recording.poll()) }
  }

  @Test("a program that top starts: its output comes afterwards, and it ends with the view")
  func program() throws {
    let shown = try Shown(fixture, ["--", fixture.waits, "busy"])
    let title = try #require(shown.terminal.screen.first)
    let id = try #require(title.split(separator: "(").last?.prefix { $0.isNumber })
    let child = try #require(pid_t(id))
    shown.terminal.type("q")
    #expect(shown.terminal.wait(for: shown.process) == 0)
    shown.expectRestored()
    #expect(String(decoding: shown.terminal.output, as: UTF8.self).hasSuffix("ready\r\n"))
    #expect(kill(child, 0) == -1)
  }

  @Test("JSON: an object on one line for each interval, until the process ends")
  func json() throws {
    let program = try busy(["paused"])
    let view = try fixture.spawn(fixture.command, ["top", "--json", "--interval", "2", program.id])
    view.waitForOutput("}\n{")
    // On a busy machine it is seen later than the rest.
    let alarm = "queue \"paused\" is suspended (once) and has not been resumed: 3 items wait"
    view.waitForOutput("has not been resumed")
    kill(program.program.identifier, SIGKILL)
    let result = try view.wait()
    #expect(result.ending == .exit(0))
    let lines = result.text.split(separator: "\n")
    #expect(lines.count >= 2)
    let frame = try fixture.json(String(lines[1]))
    let queues = try #require(frame["queues"] as? [[String: Any]])
    func queue(_ label: String) throws -> [String: Any] {
      try #require(queues.first { $0["label"] as? String == label }, "\(lines[1])")
    }
    let images = try queue("com.example.images")
    #expect(try #require(images["started"] as? Int) > 0)
    let run = try #require(images["run"] as? [String: Any])
    #expect(try #require(run["median"] as? Int) > 900_000)
    #expect(try queue("paused")["depth"] as? Int == 3)
    #expect(try queue("bell\u{7} escape\u{1B}[31m newline\n")["kind"] as? String == "serial")
    #expect(try lines.contains { try fixture.json(String($0))["alarm"] as? String == alarm })
    let events = try #require(frame["events"] as? [[String: Any]])
    let timer = try #require(events.first { $0["name"] as? String == "timer on \"ticks\"" }, "\(lines[1])")
    #expect(try #require(timer["count"] as? Int) > 0)
    let blocked = try #require(frame["blocked"] as? [[String: Any]])
    #expect(
      blocked.contains {
        ($0["threads"] as? [Int])?.count == 2 && $0["what"] as? String == "waits for a semaphore"
      })
  }

  @Test("one interval as text, and text where there is no terminal")
  func text() throws {
    let program = try busy()
    let once = try fixture.spawn(
      fixture.command, ["top", "--once", "--interval", "2", "--filter", "images", program.id]
    ).wait()
    #expect(once.ending == .exit(0), "\(once.complaint)")
    #expect(
      once.text.contains("  com.example.images ") && !once.text.contains("com.example.thumbnails"),
      "\(once.text)")
    #expect(!once.text.contains("\u{1B}"))
    let view = try fixture.spawn(fixture.command, ["top", "--interval", "0.3", program.id])
    view.waitForOutput("com.example.thumbnails")
    kill(view.identifier, SIGTERM)
    let result = try view.wait()
    #expect(result.ending == .signal(SIGTERM))
    #expect(!result.text.contains("\u{1B}"))
  }

  @Test("a program that cannot be switched: status 125")
  func status() throws {
    let result = try fixture.spawn(
      fixture.command, ["top", "--once", "--", "/bin/sh", "-c", "exit 7"]
    ).wait()
    // A shell is no program on Concourse.
    #expect(result.complaint.split(separator: "\n").count >= 1)
    #expect(result.ending == .exit(125), "\(result.complaint)")
  }

  private func expectRefusal(
    _ arguments: [String], saying text: String, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    try fixture.spawn(fixture.command, ["top"] + arguments).wait().expectRefusal(
      saying: text, sourceLocation: sourceLocation)
  }

  @Test("one line for what cannot be watched, with the status of the other commands")
  func refusals() throws {
    try expectRefusal(["2000000000"], saying: "no process 2000000000")
    try expectRefusal([], saying: "no process and no program given")
    try expectRefusal(["--wrong", "1"], saying: "unknown option '--wrong'")
    try expectRefusal(["--", "/no/such/program"], saying: "/no/such/program: no such program")
    let other = Examined(try fixture.spawn("/bin/sleep", ["1000"]))
    try expectRefusal([other.id], saying: "process \(other.id) (sleep) does not run on Concourse")
  }

  @Test("another layout of the inspection record is refused")
  func layout() throws {
    let program = try fixture.probe(["busy"], changing: 0, to: 77)
    try expectRefusal(
      [program.id], saying: "process \(program.id) (probe) runs on another version of Concourse")
  }

  @Test(
    "the process of another user is refused",
    .enabled(if: ReportFixture.canBecomeOther, "needs root and setpriv"))
  func permission() throws {
    let program = try busy()
    let result = try fixture.runAsOther(["top", "--once", program.id])
    #expect(result.ending == .exit(125))
    #expect(result.complaint.contains("not permitted"), "\(result.complaint)")
    #expect(result.complaint.split(separator: "\n").count == 1)
  }
}

import Foundation
import Glibc
import Testing

@testable import ConcourseRecording
@testable import ConcourseTool

@Suite("The tasks of concourse top")
struct TopTasksTests {
  /// Suspended tasks at a few places, the largest first, and one of each other state.
  static func tasks(places: Int = 3) -> TaskSummary {
    func task(_ state: TaskInfo.State) -> TaskInfo {
      TaskInfo(address: 0, id: 1, state: state, priority: 21, basePriority: 21, isCancelled: false)
    }
    var tasks = TaskSummary()
    tasks.counts = TaskCounts(
      [.running, .enqueued, .completed].map(task) + (0..<12_345).map { _ in task(.suspended) })
    tasks.places = (0..<places).map {
      .init(
        count: $0 == 0 ? 12_300 : places - $0, state: .suspended, activity: "await a continuation",
        sentence: $0 == 0 ? "await a continuation" : "task 1234567 \"request \($0)\" awaits a stream",
        place: "closure #1 in Server.Pool.lease(\($0))  Pool.swift:\(100_000 + $0)")
    }
    tasks.age = 12_700_000_000
    return tasks
  }

  private func frame(_ tasks: TaskSummary?) -> TopFrame {
    var frame = TopFrame(
      process: 4711, program: "server", interval: EventInterval(start: 0, end: 1_000_000_000), names: [:],
      snapshot: nil)
    frame.clock = "12:00:00"
    frame.tasks = tasks
    return frame
  }

  private func lines(
    _ tasks: TaskSummary?, _ state: TopState = showing, _ columns: Int = 80, _ rows: Int? = 24
  ) -> [String] {
    TopScreen(frame: frame(tasks), state: state, columns: columns, height: rows, abilities: .none).lines()
      .map { $0.text(.none, limit: columns) }
  }

  private static var showing: TopState {
    var state = TopState()
    state.view = .tasks
    return state
  }

  @Test("80 columns: a place is below what is done there")
  func narrow() {
    let text = lines(Self.tasks())
    let wanted = [
      " concourse top   server (4711)                            12:00:00  every 1.0 s",
      "POOL   unknown",
      "ITEMS  0/s started, 0/s submitted, 0 at once, 0/s wake-ups",
      "TASKS  1 running, 1 enqueued, 12.3k suspended, 1 ended; 12 s ago",
      "",
      "   TASKS  ACTIVITY AND PLACE",
      "   12.3k  await a continuation",
      "          at closure #1 in Server.Pool.lease(0)  Pool.swift:100000",
      "       2  task 1234567 \"request 1\" awaits a stream",
      "          at closure #1 in Server.Pool.lease(1)  Pool.swift:100001",
    ]
    #expect(Array(text.prefix(wanted.count)) == wanted, "\(text.joined(separator: "\n"))")
    #expect(text.count == 24)
    #expect(text.last == "q quit   Esc back   Up Down scroll   f freeze   ? help")
    let small = lines(Self.tasks(), Self.showing, 40, 10)
    #expect(small[3] == "TASKS  12.3k suspended; 12 s ago", "\(small.joined(separator: "\n"))")
    #expect(small[5] == "   TASKS  ACTIVITY AND PLACE")
    #expect(small[7].hasSuffix("…ool.swift:100000"), "\(small.joined(separator: "\n"))")
  }

  @Test("120 columns: a place is beside it")
  func wide() {
    let text = lines(Self.tasks(), Self.showing, 120, 24)
    #expect(
      Array(text[5...7]) == [
        "   TASKS  ACTIVITY                                  PLACE",
        "   12.3k  await a continuation                      closure #1 in Server.Pool.lease(0)  Pool.swift:100000",
        "       2  task 1234567 \"request 1\" awaits a stream  closure #1 in Server.Pool.lease(1)  Pool.swift:100001",
      ], "\(text.joined(separator: "\n"))")
  }

  @Test("keys: the view, scrolling, and back")
  func keys() {
    let tasks = Self.tasks(places: 40)
    let frame = frame(tasks)
    var state = TopState()
    func press(_ keys: TerminalKey...) { for key in keys { #expect(state.handle(key, frame) == .goOn) } }
    #expect(
      lines(tasks, state).last
        == "q quit   ? help   s sort: rate   / filter   f freeze   t tasks   Enter look into")
    press(.character("t"))
    #expect(state.view == .tasks)
    #expect(lines(tasks, state)[5] == "   TASKS  ACTIVITY AND PLACE (1 to 8 of 40)")
    press(.down, .pageDown, .up)
    let text = lines(tasks, state)
    #expect(text[5] == "   TASKS  ACTIVITY AND PLACE (11 to 18 of 40)", "\(text.joined(separator: "\n"))")
    #expect(text[6].contains("\"request 10\""))
    press(.end, .down)
    #expect(lines(tasks, state)[5] == "   TASKS  ACTIVITY AND PLACE (40 to 40 of 40)")
    // Fewer than there were, and so few that all are shown.
    #expect(lines(Self.tasks(places: 20), state)[5] == "   TASKS  ACTIVITY AND PLACE (20 to 20 of 20)")
    #expect(lines(Self.tasks(), state)[5] == "   TASKS  ACTIVITY AND PLACE")
    press(.home, .up)
    #expect(state.firstTask == 0)
    press(.enter)
    #expect(state.view == .tasks)
    press(.escape)
    #expect(state.view == .all)
    press(.character("t"), .character("t"))
    #expect(state.view == .all)
  }

  @Test("one line if there is nothing to show, and then no line in the other views")
  func nothing() {
    var unknown = TaskSummary()
    unknown.problem = "the tasks of this Swift runtime (layout 9, 240 bytes) are unknown to this command"
    for (tasks, text) in [
      (nil, "The tasks are being read."), (TaskSummary(), "There are no tasks of Swift Concurrency."),
      (TaskSummary.none, "TASKS  the process has no libswift_Concurrency.so, whose tasks could be shown"),
      (unknown, "TASKS  the tasks of this Swift runtime (layout 9, 240 bytes) are unknown to this"),
    ] as [(TaskSummary?, String)] {
      #expect(lines(tasks)[4] == text)
      #expect(!lines(tasks, TopState()).contains { $0.contains("TASKS") || $0.contains("t tasks") })
    }
    #expect(lines(unknown, TopState(), 80, nil).contains { $0.contains("are unknown to") })
    #expect(!lines(TaskSummary.none, TopState(), 80, nil).contains { $0.contains("TASKS") })
  }

  @Test("a text has the largest places")
  func text() {
    let text = lines(Self.tasks(places: 30), TopState(), 120, nil)
    #expect(text.contains { $0.contains("PLACE (1 to 20 of 30)") }, "\(text.joined(separator: "\n"))")
    #expect(text.count { $0.contains("Server.Pool.lease(") } == 20)
  }

  @Test("reading takes at most a tenth of one processor, and half of the time")
  func pace() {
    var pace = ReadingPace()
    #expect(pace.next == 0)
    pace.finish(at: 5_000, processorTime: 1_200, elapsed: 1_300)
    #expect(pace.next == 5_000 + 9 * 1_200)
    pace.finish(at: 5_000, processorTime: 10, elapsed: 2_000)
    #expect(pace.next == 7_000)
    // The command was suspended for a day.
    pace.finish(at: 5_000, processorTime: 10, elapsed: 86_400_000_000_000)
    #expect(pace.next == 60_000_005_000)
  }
}

/// `concourse top`, run on a program whose tasks wait.
@Suite(
  "concourse top: tasks", .enabled(if: getenv("CONCOURSE_SANITIZER") == nil), .timeLimit(.minutes(10)))
struct TopTasksProgramTests {
  private let fixture: ReportFixture

  init() throws { fixture = try ReportFixture() }

  private func start(_ arguments: [String] = ["suspended"]) throws -> Examined {
    let program = Examined(try fixture.spawn(fixture.waits, arguments))
    program.program.waitForOutput("ready")
    return program
  }

  private func top(_ arguments: [String]) throws -> String {
    let result = try fixture.spawn(fixture.command, ["top", "--once"] + arguments).wait()
    #expect(result.ending == .exit(0), "\(result.complaint)")
    return result.text
  }

  @Test("JSON: how many tasks are in which state, and the places, also of a stopped process")
  func json() throws {
    let program = try start()
    for isStopped in [false, true] {
      if isStopped { kill(program.program.identifier, SIGSTOP) }
      var frame: [String: Any] = [:]
      // The program may still be on its way.
      for _ in 0..<100 {
        frame = try fixture.json(try top(["--json", "--interval", "0.1", program.id]))
        if (frame["taskPlaces"] as? [[String: Any]])?.first?["count"] as? Int == 25 { break }
      }
      #expect(
        frame["taskCounts"] as? [String: Int]
          == ["running": 1, "enqueued": 1, "suspended": 29, "created": 0, "completed": 1], "\(frame)")
      #expect(frame["alarm"] is NSNull)
      let places = try #require(frame["taskPlaces"] as? [[String: Any]])
      #expect(places.first?["activity"] as? String == "await a continuation")
      #expect(
        (places.first?["place"] as? String)?.hasPrefix("Suspended.Pool.lease()  Suspended.swift:") == true)
      #expect(places.reduce(0) { $0 + ($1["count"] as? Int ?? 0) } == 31)
      // Of a task that blocks its thread, from the thread's stack, without stopping it.
      let auditor = places.first { ($0["activity"] as? String)?.contains("is in pause") ?? false }
      #expect((auditor?["place"] as? String)?.contains("Suspended.") == true, "\(places)")
      #expect(frame["tasksProblem"] is NSNull && frame["tasksAge"] is Int)
    }
  }

  @Test("text: the largest places, and nothing that a terminal obeys")
  func text() throws {
    let program = try start()
    let text = try top(["--interval", "2", program.id])
    #expect(text.contains("TASKS  1 running, 1 enqueued, 29 suspended, 1 ended; "), "\(text)")
    #expect(text.contains("      25  await a continuation "), "\(text)")
    #expect(text.contains("\"reader?]0;OW") && text.utf8.allSatisfy { $0 != 0x1B }, "\(text)")
  }

  @Test("tasks are read again and again, and the places stay the same")
  func repeated() throws {
    let program = try start()
    let watch = TaskWatch()
    var record: InspectionRecord?
    var (age, readings) = (UInt64.max, 0)
    var texts: Set<String> = []
    // A guard against a hang: a reading of these few tasks may be late on a busy machine.
    for _ in 0..<6000 where readings < 4 {
      let target = try TargetProcess.live(program.program.identifier, stopsThreads: false)
      record = try record ?? InspectionRecord.find(in: target, MappedImage.all(of: target))
      let engine = try #require(record)
      watch.start(
        try EngineReader.read(target, engine, taskClass: watch.taskClass(in: target)), engine)
      watch.wait { true }
      let shown = try #require(watch.shown)
      if shown.age < age, shown.places.first?.count == 25 {
        readings += 1
        texts.insert(shown.places.compactMap { $0.place }.joined(separator: "\n"))
      }
      age = shown.age
      usleep(10_000)
    }
    #expect(readings == 4 && texts.count == 1, "\(readings): \(texts)")
  }

  /// Programs of Examples/Sources/broken.
  @Test(
    "an alarm for tasks that wait for one another, and for tasks that nothing can resume",
    arguments: [
      ("task-cycle", "deadlock: 2 tasks wait for one another"),
      ("lost-continuation", "all 10 tasks are suspended, and nothing is left that could resume one: "),
    ])
  func alarm(name: String, sentence: String) throws {
    let program = Examined(try fixture.spawn(fixture.broken, [name]))
    var frame: [String: Any] = [:]
    // The program may still be on its way.
    for _ in 0..<100 {
      let result = try fixture.spawn(
        fixture.command, ["top", "--once", "--json", "--interval", "0.1", program.id]
      ).wait()
      guard result.ending == .exit(0) else { continue }
      frame = try fixture.json(result.text)
      if (frame["alarm"] as? String)?.hasPrefix(sentence) ?? false { break }
    }
    #expect((frame["alarm"] as? String)?.hasPrefix(sentence) == true, "\(frame)")
  }

  @Test("a program without tasks has no such line")
  func none() throws {
    let program = try start(["busy"])
    #expect(try !top(["--interval", "0.1", program.id]).contains("TASKS"))
    let frame = try fixture.json(try top(["--json", "--interval", "0.1", program.id]))
    #expect(frame["taskPlaces"] as? [Int] == [])
  }

  @Test("the view on a terminal, and the end of the process in it")
  func session() throws {
    let program = try start()
    let terminal = try PseudoTerminal(columns: 80, rows: 24)
    let process = try terminal.spawn(
      fixture.command, ["top", "--interval", "0.3", program.id],
      environment: ["LC_ALL=C.UTF-8", "TERM=xterm", "SWIFT_BACKTRACE=enable=no"] + ToolFixture.environment)
    func shows(_ texts: String...) {
      terminal.read { terminal in
        texts.allSatisfy { text in terminal.screen.contains { $0.contains(text) } }
      }
    }
    shows("TASKS  1 running, 1 enqueued, 29 suspended, 1 ended; ", "t tasks", "QUEUE")
    terminal.type("t")
    shows("      25  await a continuation", "at Suspended.Pool.lease()  Suspended.swift:", "\"reader?]0;")
    for (columns, rows) in [(120, 40), (40, 10), (20, 5), (1, 1)] as [(UInt16, UInt16)] {
      terminal.resize(columns: columns, rows: rows)
      terminal.read { $0.screen.count == rows }
      #expect(terminal.screen.allSatisfy { DisplayText.width($0) <= columns }, "\(terminal.screen)")
    }
    terminal.resize(columns: 80, rows: 14)
    shows("(1 to 3 of 7)")
    terminal.type("\u{1B}[B")
    shows("(2 to 4 of 7)")
    kill(program.program.identifier, SIGKILL)
    #expect(terminal.wait(for: process) == 0)
    let text = String(decoding: terminal.output, as: UTF8.self)
    #expect(text.hasSuffix("concourse: process \(program.id) has ended\r\n"), "\(text.suffix(200))")
    #expect(!text.contains("\u{1B}]0;"))
  }
}

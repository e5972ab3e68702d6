import Testing

@testable import ConcourseRecording
@testable import ConcourseTool

@Suite("The screen of concourse top")
struct TopScreenTests {
  private static let colours = ScreenLine.Abilities(hasAttributes: true, hasColours: true)

  /// Queues with their labels, the first the busiest.
  private func frame(_ labels: [String], blocked: Int = 1, events: Int = 2) -> TopFrame {
    var interval = EventInterval(start: 0, end: 1_000_000_000)
    var names: [UInt64: RecordedName] = [:]
    for (index, label) in labels.enumerated() {
      var activity = QueueActivity()
      activity.started = 1000 * (labels.count - index)
      activity.submitted = activity.started
      for time in 1...100 as ClosedRange<UInt64> {
        activity.wait.add(time * 10_000)
        activity.run.add(time * UInt64(index + 1) * 1000)
      }
      activity.functions[0x10] = activity.run
      activity.busy = 500_000_000
      interval.queues[UInt64(index + 1)] = activity
      names[UInt64(index + 1)] = RecordedName(
        queue: UInt64(index + 1), time: 0, target: 0, kind: 1, text: label)
    }
    interval.running = 1_500_000_000
    var frame = TopFrame(process: 4711, program: "server", interval: interval, names: names, snapshot: nil)
    frame.clock = "12:00:00"
    frame.pool = .init(width: 4, limit: 512, threads: 6, active: 4, blocked: 1, parked: 1, waiting: 2)
    frame.blocked = (0..<blocked).map {
      .init(
        threads: [UInt32(100 + $0)], role: "pool", text: "waits for a semaphore", item: "\"a\"",
        blockedFor: 2_500_000_000)
    }
    frame.events = (0..<events).map {
      .init(what: "timer \($0)", queue: "\"a\"", count: 10, detail: "due in 5.0 ms")
    }
    return frame
  }

  private func lines(
    _ frame: TopFrame, _ state: TopState, _ columns: Int, _ rows: Int?,
    _ abilities: ScreenLine.Abilities = .none
  ) -> [String] {
    TopScreen(frame: frame, state: state, columns: columns, height: rows, abilities: abilities) { "f\($0)()" }
      .lines().map { $0.text(abilities, limit: columns) }
  }

  private func withoutEscapes(_ text: String) -> String {
    var result = ""
    var isEscape = false
    for character in text {
      if character == "\u{1B}" { isEscape = true }
      if !isEscape { result.append(character) }
      if character == "m" { isEscape = false }
    }
    while result.hasSuffix(" ") { result.removeLast() }
    return result
  }

  @Test("80 columns and 24 rows")
  func small() {
    let text = lines(frame(["images", "log"]), TopState(), 80, 24)
    let wanted = [
      " concourse top   server (4711)                            12:00:00  every 1.0 s",
      "POOL   6 threads: 4 active of 4, 1 blocked, 1 parked, 2 waiting; limit 512",
      "ITEMS  3000/s started, 3000/s submitted, 1.5 at once, 0/s wake-ups",
      "",
      "  QUEUE                    RATE↓  DEPTH     WAIT     p99      RUN     p99   BUSY",
      "  images                  2000/s      0   503 us  991 us  49.6 us 99.3 us   50 %",
      "  log                     1000/s      0   503 us  991 us  99.3 us  198 us   50 %",
      "",
      "BLOCKED THREADS  1",
      "  100         pool            2.5 s  waits for a semaphore; in an item of \"a\"",
      "",
      "TIMERS AND SOURCES  2",
      "  timer 0 on \"a\"                                   10/s  due in 5.0 ms",
      "  timer 1 on \"a\"                                   10/s  due in 5.0 ms",
    ]
    #expect(Array(text.prefix(wanted.count)) == wanted, "\(text.joined(separator: "\n"))")
    #expect(text.count == 24)
    #expect(text.last == "q quit   ? help   s sort: rate   / filter   f freeze   a idle   Enter look into")
  }

  @Test(
    "every size has its lines and columns, with colours and without, also of strange labels",
    arguments: [(80, 24), (120, 40), (40, 10), (20, 5), (1, 1), (300, 100)])
  func sizes(columns: Int, rows: Int) {
    let labels = [
      "画像の読み込みと縮小と保存をするための列", "bell\u{7} escape\u{1B}[31m newline\n", "e\u{301}\u{200F}\u{202E}abc",
      String(repeating: "long.", count: 60), "", "👩‍👩‍👧 family", "\u{FFFD}\u{0}",
    ]
    var frame = frame(labels + (0..<60).map { "queue \($0)" }, blocked: 20, events: 20)
    frame.alarm = "deadlock: 3 threads wait for one another"
    frame.tasks = TopTasksTests.tasks(places: 40)
    frame.tasks?.places[1].sentence = labels.joined()
    frame.tasks?.places[1].place = labels.joined()
    for view in [TopState.View.all, .queue(1), .queue(99), .tasks, .help] {
      var state = TopState()
      state.view = view
      state.selected = 30
      let plain = lines(frame, state, columns, rows)
      let coloured = lines(frame, state, columns, rows, Self.colours)
      #expect(plain.count == rows)
      #expect(plain.allSatisfy { DisplayText.width($0) <= columns }, "\(plain.joined(separator: "\n"))")
      #expect(plain.allSatisfy { $0.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F } })
      #expect(coloured.map(withoutEscapes) == plain)
      // Attributes are no colours.
      let attributes = lines(frame, state, columns, rows, .init(hasAttributes: true))
      #expect(
        !attributes.contains { line in
          ["\u{1B}[32m", "\u{1B}[33m", ";31m", ";36m"].contains { line.contains($0) }
        })
    }
    let ascii = lines(frame, TopState(), columns, rows, .init(isUnicode: false))
    #expect(ascii.allSatisfy { $0.utf8.allSatisfy { $0 < 0x7F } })
  }

  /// The numbers of lines, with their units.
  private func numbers(_ lines: [String]) -> Set<String> {
    var found: Set<String> = []
    for line in lines {
      let words = line.split { " ;:,()…".contains($0) }.map(String.init)
      for (index, word) in words.enumerated() where word.utf8.first.map({ (48...57).contains($0) }) == true {
        let next = index + 1 < words.count ? words[index + 1] : ""
        found.insert(["ns", "us", "ms", "s", "%"].contains(next) ? "\(word) \(next)" : word)
      }
    }
    return found
  }

  @Test("on no width does a number lose digits or its unit", arguments: 30...130)
  func wholeNumbers(columns: Int) {
    var frame = frame(["com.example.images", "log", String(repeating: "long.", count: 20)], events: 0)
    frame.program = "a-server-with-a-long-name"
    frame.alarm =
      "deadlock: threads 123456 and 123457 wait for one another, and 123458 for them, since 12.5 s"
    frame.interval.lost = 12_345_678
    frame.blocked = [
      .init(
        threads: [123_456], role: "pool",
        text: "waits in sync for queue \"com.example.images\", which thread 123457 holds, with a time-out",
        item: "\"com.example.thumbnails\"", blockedFor: 12_500_000_000)
    ]
    frame.events = [
      .init(
        what: "write of descriptor 123456", queue: "\"com.example.images\"", count: 98_765,
        detail: "thread 123457 runs its handler")
    ]
    frame.queues[0].state = "held by thread 123457, barrier of thread 123458"
    frame.queues[0].properties = ["concurrent", "class user-initiated", "width 123459", "target \"x\""]
    frame.tasks = TopTasksTests.tasks()
    for view in [TopState.View.all, .queue(1), .tasks, .help] {
      for order in TopState.Order.allCases {
        var state = TopState()
        (state.view, state.order) = (view, order)
        let whole = numbers(lines(frame, state, 400, nil))
        let shown = lines(frame, state, columns, nil)
        let wrong = numbers(shown).subtracting(whole)
        #expect(wrong.isEmpty, "\(view), \(order): \(shown.joined(separator: "\n"))")
      }
    }
  }

  @Test("60 columns: the numbers that matter most are whole, and the sorted column stays")
  func narrow() {
    var frame = frame(["images", "log"])
    frame.interval.lost = 1_234_567
    let text = lines(frame, TopState(), 60, 24)
    let wanted = [
      " concourse top   server (4711)        12:00:00  every 1.0 s",
      "POOL   6 threads: 4 active of 4, 1 blocked, 2 waiting",
      "ITEMS  3000/s started, 3000/s submitted, 1.5 at once",
      "LOST   1.2M events: rates and counts are too low. ? says",
      "       what helps",
      "",
      "  QUEUE                RATE↓  DEPTH     WAIT      RUN   BUSY",
    ]
    #expect(Array(text.prefix(wanted.count)) == wanted, "\(text.joined(separator: "\n"))")
    var state = TopState()
    state.order = .wait
    #expect(lines(frame, state, 50, 24)[6].contains("WAIT↓     p99"))
    #expect(text.last == "q quit   ? help   s sort: rate   / filter   Enter look into")
    state.view = .help
    #expect(lines(frame, state, 60, 60).joined(separator: "").contains("CONCOURSE_RECORDER=1000000"))
  }

  @Test("many sources of a kind on a queue are one row, also those that were gone before the look")
  func manySources() throws {
    var interval = EventInterval(start: 0, end: 1_000_000_000)
    for source in 1...97 as ClosedRange<UInt64> {
      interval.events[source * 64] = 1000
      interval.origins[source * 64] = SourceOrigin(3 << 48 | 0xA0)
    }
    interval.events[0x10000] = 5
    interval.origins[0x10000] = SourceOrigin(2 << 48 | 0xA0)
    let name = RecordedName(queue: 0xA0, time: 0, target: 0, kind: 1, text: "MultiHandle.isolation")
    let frame = TopFrame(
      process: 1, program: "p", interval: interval, names: [0xA0: name], snapshot: nil)
    #expect(
      frame.events.map(\.name) == [
        "97 write sources on \"MultiHandle.isolation\"", "read on \"MultiHandle.isolation\"",
      ])
    let row = try #require(lines(frame, TopState(), 80, nil).first { $0.contains("97 write") })
    #expect(row == "  97 write sources on \"MultiHandle.isolation\"   97.0k/s", "\(row)")
    #expect(SourceOrigin(0) == nil && SourceOrigin(77 << 48 | 0xA0) == nil)
  }

  @Test("wide characters keep the columns in line")
  func wide() {
    let text = lines(frame(["画像の読み込みと縮小と保存をするための列の名前", "log"]), TopState(), 80, 24)
    #expect(text[5].hasPrefix("  画像の読…めの列の名前 "), "\(text[5])")
    #expect(DisplayText.fitEnds("com.example.thumbnails", 16, .none) == "com.ex…humbnails")
    #expect(DisplayText.fitEnds("com.example", 12, .none) == "com.example ")
    #expect(DisplayText.width(text[5]) == DisplayText.width(text[6]))
    #expect(DisplayText.fit("a\u{1B}[2Jb", 10, .none, pads: false) == "a?[2Jb")
    #expect(DisplayText.fit("列列列", 4, .none) == "列… ")
    #expect(DisplayText.fit("列", 4, .none, right: true) == "  列")
  }

  @Test("a wider screen also has the state, and a selected row is marked")
  func selection() {
    var frame = frame((0..<50).map { "queue \($0)" }, blocked: 0, events: 0)
    frame.queues = frame.queues.map {
      var queue = $0
      queue.state = "held by thread 7"
      return queue
    }
    var state = TopState()
    state.selected = 45
    let text = lines(frame, state, 120, 40)
    #expect(text[4].contains("STATE"))
    #expect(
      text[5...].contains { $0.hasPrefix("> queue 44 ") && $0.hasSuffix("  held by thread 7") }, "\(text)")
    #expect(text.filter { $0.hasPrefix("> ") }.count == 1)
    #expect(text[4].contains("(34 of 50)"))
  }

  @Test("one queue: its times, bars and functions")
  func detail() {
    var state = TopState()
    state.view = .queue(1)
    let text = lines(frame(["images", "log"]), state, 80, 24)
    for piece in [
      "QUEUE  images", "RATE   2000/s started, 2000/s submitted, busy 50 %",
      "RUN    median 49.6 us  p99 99.3 us  longest 100 us   mean 50.5 us",
    ] { #expect(text.contains(piece), "\(piece)\n\(text.joined(separator: "\n"))") }
    #expect(
      text.contains { $0.hasPrefix("f16() ") && $0.hasSuffix(" 1 %") }, "\(text.joined(separator: "\n"))")
    #expect(
      text.contains { $0.hasPrefix("  < 1 ms ") && $0.contains("█") }, "\(text.joined(separator: "\n"))")
  }

  @Test("keys sort, filter, freeze, select, look into a queue and quit")
  func keys() {
    let frame = frame(["images", "log", "Log 2"])
    var state = TopState()
    func press(_ keys: TerminalKey...) { for key in keys { #expect(state.handle(key, frame) == .goOn) } }
    func labels() -> [String] { state.rows(frame).map(\.label) }
    #expect(labels() == ["images", "log", "Log 2"])
    press(.character("x"))
    #expect(labels() == ["Log 2", "log", "images"])
    press(.character("R"))
    #expect(labels() == ["images", "log", "Log 2"])
    press(.character("R"), .character("n"), .character("s"))
    #expect(state.order == .rate)
    press(.character("/"), .character("L"), .character("o"), .character("q"), .backspace, .enter)
    #expect(labels() == ["log", "Log 2"])
    press(.down, .down, .down)
    #expect(state.selected == 3)
    press(.enter)
    #expect(state.view == .queue(3))
    press(.up)
    #expect(state.view == .queue(2))
    press(.escape, .escape)
    #expect(state.view == .all && state.filter.isEmpty)
    press(.character(" "))
    #expect(state.isFrozen)
    press(.character("?"))
    #expect(state.view == .help)
    #expect(state.handle(.character("q"), frame) == .quit)
  }

  @Test("what a terminal sends for keys, also in pieces")
  func sequences() {
    var bytes = Array("\u{1B}[A\u{1B}OB\u{1B}[5~\u{1B}[1;5Cx\r\u{7F}é".utf8)
    #expect(
      TerminalKey.take(from: &bytes)
        == [.up, .down, .pageUp, .other, .character("x"), .enter, .backspace, .character("é")])
    bytes = [0xE5, 0x88]
    #expect(TerminalKey.take(from: &bytes).isEmpty)
    bytes.append(0x97)
    #expect(TerminalKey.take(from: &bytes) == [.character("列")])
    bytes = [0xFF, 0xFE, 0x71, 0xE3, 0x71]
    #expect(
      TerminalKey.take(from: &bytes) == [.other, .other, .character("q"), .other, .character("q")])
    bytes = [0x1B]
    #expect(TerminalKey.take(from: &bytes) == [.escape])
    #expect(bytes.isEmpty)
  }

  @Test("numbers have three digits or four")
  func numbers() {
    let numbers: [(Double, String)] = [
      (0, "0"), (0.04, "0"), (0.25, "0.3"), (9.99, "10.0"), (12, "12"), (9999, "9999"), (12_345, "12.3k"),
      (999_400, "999k"), (1_234_567, "1.2M"), (5e9, "5.0G"),
    ]
    for (value, text) in numbers { #expect(TopScreen.number(value) == text) }
  }
}

@Suite("Options of concourse top")
struct TopOptionsTests {
  @Test("processes, programs and forms")
  func targets() {
    #expect(TopOptions.parse(["12"]) == .options(TopOptions(target: .process(12))))
    #expect(TopOptions.parse(["--", "12", "--once"]) == .options(TopOptions(target: .program(1))))
    #expect(
      TopOptions.parse(["--once", "--json", "--interval", "0.5", "--filter=x", "--sort", "busy", "12"])
        == .options(
          TopOptions(
            target: .process(12), form: .json, isOnce: true, interval: 0.5, filter: "x", order: .busy)))
    #expect(TopOptions.parse(["--help"]) == .help)
  }

  @Test("what is wrong is said in one line")
  func errors() {
    #expect(TopOptions.parse([]) == .unusable("no process and no program given"))
    #expect(TopOptions.parse(["--wrong"]) == .unusable("unknown option '--wrong'"))
    #expect(TopOptions.parse(["--interval"]) == .unusable("--interval needs a value"))
    #expect(
      TopOptions.parse(["--interval", "0"]) == .unusable("'0' is not a number of seconds from 0.1 to 3600"))
    #expect(
      TopOptions.parse(["--sort", "x"]) == .unusable("'x' is not one of rate, depth, wait, run, busy, name"))
    #expect(TopOptions.parse(["1", "ls"]) == .unusable("only one process or program can be given"))
    #expect(TopOptions.parse(["1", "2"]) == .unusable("only one process or program can be given"))
  }
}

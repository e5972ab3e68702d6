import CExploring
import Glibc
import Testing

@testable import ConcourseSchedules
@testable import ConcourseTool

/// What the command makes of the results of runs; no program runs.
@Suite("Explore: results and text")
struct ExploreTextTests {
  private static func result(
    _ outcome: concourse_exploring_outcome, status: Int32? = 0, steps: UInt64 = 10,
    change: (inout ScheduleResult) -> Void = { _ in }
  ) -> ScheduleResult {
    var header = concourse_exploring_header()
    header.outcome = outcome.rawValue
    header.steps = steps
    header.thread_count = 3
    var result = ScheduleResult(
      status: status, header: header, made: [], firstEvent: 0, events: [], threads: [], output: [])
    change(&result)
    return result
  }

  private static func event(
    _ thread: UInt16, _ operation: UInt16, next: UInt16, switched: Bool = false, frame: UInt64 = 0
  ) -> concourse_exploring_event {
    var event = concourse_exploring_event()
    (event.thread, event.operation, event.next, event.choices) = (thread, operation, next, 2)
    event.flags = switched ? UInt8(CONCOURSE_EXPLORING_SWITCHED) : 0
    event.frames.0 = frame
    event.frame_count = 1
    return event
  }

  @Test("how a run ended decides what it is")
  func verdicts() {
    let running = CONCOURSE_EXPLORING_RUNNING
    #expect(Self.result(running).verdict(hasStepLimit: false) == .passed)
    #expect(Self.result(running, status: 3 << 8).verdict(hasStepLimit: false) == .failed(.status(3)))
    #expect(Self.result(running, status: 4).verdict(hasStepLimit: false) == .failed(.signal(4)))
    #expect(
      Self.result(CONCOURSE_EXPLORING_DEADLOCK, status: nil).verdict(hasStepLimit: false)
        == .failed(.deadlock))
    #expect(Self.result(CONCOURSE_EXPLORING_RACE, status: nil).verdict(hasStepLimit: false) == .failed(.race))
    #expect(Self.result(CONCOURSE_EXPLORING_HANG, status: nil).verdict(hasStepLimit: false) == .failed(.hang))
    var late = Self.result(running, status: nil)
    late.isLate = true
    guard case .unusable = late.verdict(hasStepLimit: false) else {
      Issue.record("a run that does not end is not refused")
      return
    }
    let limited = Self.result(CONCOURSE_EXPLORING_STEP_LIMIT, status: nil)
    #expect(limited.verdict(hasStepLimit: true) == .failed(.stepLimit))
    for outcome in [
      CONCOURSE_EXPLORING_NOT_STARTED, CONCOURSE_EXPLORING_SPINNING, CONCOURSE_EXPLORING_BLOCKED_UNSEEN,
      CONCOURSE_EXPLORING_TOO_MANY_THREADS, CONCOURSE_EXPLORING_WAITS_FOR_OUTSIDE,
      CONCOURSE_EXPLORING_STEP_LIMIT,
      concourse_exploring_outcome(99),
    ] {
      guard case .unusable = Self.result(outcome, status: nil).verdict(hasStepLimit: false) else {
        Issue.record("\(outcome.rawValue) is not refused")
        return
      }
    }
  }

  @Test("a story has who stopped, who ran instead and what it did, and the end")
  func story() {
    let result = Self.result(CONCOURSE_EXPLORING_RUNNING, status: 1 << 8) { result in
      var worker = concourse_exploring_thread()
      worker.is_engine = 1
      result.threads = [concourse_exploring_thread(), worker, concourse_exploring_thread()]
      result.events = [
        Self.event(0, 261, next: 0),
        Self.event(0, 283, next: 2, switched: true, frame: 100),
        Self.event(1, 3, next: 2),
        Self.event(2, 18, next: 2, frame: 200),
        Self.event(2, 18, next: ScheduleSwitch.time, switched: true, frame: 300),
        Self.event(2, 50, next: 2, frame: 400),
      ]
    }
    let story = FailureStory(result, .status(1)) { points in
      points.map { ["line \($0.addresses[0]), step \($0.step ?? 0)"] }
    }
    #expect(
      story.switches == [
        FailureStory.Switch(
          stopped: .init(
            thread: "the main thread", operation: "dispatch_group_wait", places: ["line 100, step 2"]),
          instead: .init(
            thread: "thread 2", operation: "pthread_mutex_lock", places: ["line 200, step 4"], number: 2),
          next: "thread 2 ran instead"),
        FailureStory.Switch(
          stopped: .init(
            thread: "thread 2", operation: "pthread_mutex_lock", places: ["line 300, step 5"], number: 2),
          instead: nil,
          next: "the clock was advanced"),
      ])
    #expect(
      story.ends == [.init(thread: "thread 2", operation: "exit", places: ["line 400, step 6"], number: 2)])
  }

  @Test("a race has its two accesses")
  func race() {
    var result = Self.result(CONCOURSE_EXPLORING_RACE, status: nil)
    var (later, former) = (concourse_exploring_access(), concourse_exploring_access())
    (later.size, later.writes, later.thread, later.frame_count, later.frames.0) = (4, 1, 2, 1, 100)
    // The number is the program's: only eight are there.
    (former.size, former.is_atomic, former.frame_count, former.frames.0) = (1, 1, 900, 200)
    result.header.accesses = (later, former)
    let accesses = FailureStory.accesses(of: result) { $0.map { ["line \($0[0]), \($0.count)"] } }
    #expect(
      accesses == [
        "write of 4 bytes, thread 2: line 100, 1", "atomic read of 1 byte, the main thread: line 200, 8",
      ])
    var story = FailureStory(result, .race) { $0.map { _ in [] } }
    story.accesses = accesses
    let lines = ExploreText.failure(FoundFailure(Schedule(seed: 1), .race, result), story)
    #expect(
      Array(lines.suffix(2)) == [
        "  one access: write of 4 bytes, thread 2: line 100, 1",
        "  the other:  atomic read of 1 byte, the main thread: line 200, 8",
      ])
  }

  @Test("the text has the failure, the output and two lines for each switch")
  func text() {
    var result = Self.result(CONCOURSE_EXPLORING_RUNNING, status: 1 << 8)
    result.output = Array("one of two visits is lost\u{1B}[2J\n".utf8)
    result.events = [Self.event(0, 20, next: 1, switched: true), Self.event(1, 18, next: 1)]
    var schedule = Schedule(seed: 1)
    schedule.switches = [ScheduleSwitch(thread: 0, next: 1, point: 5)]
    var found = FoundFailure(schedule, .status(1), result)
    let story = FailureStory(result, .status(1)) { $0.map { _ in ["f()  a.swift:3", "g()  a.swift:9"] } }
    #expect(
      ExploreText.failure(found, story) == [
        "the program ended with status 1",
        "  | one of two visits is lost?[2J",
        "it needs 1 switch:",
        "  1. stopped: the main thread, pthread_mutex_unlock: f()  a.swift:3, in g()  a.swift:9",
        "     thread 1 ran instead: pthread_mutex_lock: f()  a.swift:3, in g()  a.swift:9",
        "  at the end: thread 1, pthread_mutex_lock: f()  a.swift:3, in g()  a.swift:9",
      ])
    found.isInterrupted = true
    #expect(ExploreText.failure(found, nil).last == "interrupted; so far it needs 1 switch")
    found.repeats = false
    #expect(ExploreText.failure(found, nil).last?.contains("did not repeat") == true)
  }

  @Test("threads of a deadlock have the names of the story, and what they wait for")
  func waits() {
    let result = Self.result(CONCOURSE_EXPLORING_DEADLOCK, status: nil) { result in
      result.threads = ([41, 42, 43] as [UInt32]).map { id in
        var thread = concourse_exploring_thread()
        (thread.id, thread.operation) = (id, 33)
        thread.state = UInt8(id == 43 ? CONCOURSE_EXPLORING_RUNNABLE : CONCOURSE_EXPLORING_WAITING)
        return thread
      }
    }
    var story = FailureStory(result, .deadlock) { $0.map { $0.thread == 1 ? ["f()  a.swift:3"] : ["main"] } }
    let names: [UInt32: String] = [41: "the main thread", 42: "worker 1"]
    let text = FailurePlaces.named("waits for thread 42, and thread 4 for thread 41", names)
    #expect(text == "waits for worker 1, and thread 4 for the main thread")
    story.add(FailurePlaces.Waits(activities: [1: "waits for a semaphore"], lines: ["queue a is held"]))
    #expect(
      ExploreText.failure(FoundFailure(Schedule(seed: 1), .deadlock, result), story).suffix(3) == [
        "  at the end: the main thread, futex wait: main",
        "  at the end: thread 1, waits for a semaphore: f()  a.swift:3", "  queue a is held",
      ])
  }

  @Test("the page has the switches, what the threads did, and why they did not run")
  func page() {
    let result = Self.result(CONCOURSE_EXPLORING_RUNNING, status: 1 << 8) { result in
      result.events = [
        Self.event(0, 16, next: 0), Self.event(0, 20, next: 1, switched: true), Self.event(1, 18, next: 1),
        Self.event(1, 33, next: 0), Self.event(0, 50, next: 0),
      ]
      result.events[3].flags = UInt8(CONCOURSE_EXPLORING_BLOCKS)
    }
    let page = ExplorePage.write(
      "program", result, result.events.map { $0.operation == 18 ? ["f()  a.swift:3"] : [] },
      reason: "it failed",
      lines: [("Switch 1", "stopped")])
    let text = String(decoding: page, as: UTF8.self)
    for part in [
      "\"reason\":\"it failed\"", "[\"Switch 1\",\"stopped\"]",
      "\"threads\":[\"the main thread 0\",\"thread 1\"]",
      "\"items\":5", "\"pthread_mutex_lock: f()  a.swift:3\"",
      "\"waitNames\":[\"SWITCH: stopped before pthread_mutex_unlock, thread 1 runs instead\",\"blocked in futex wait\"]",
    ] {
      #expect(text.contains(part), "\(part)")
    }
  }

  @Test("of long output the beginning and the end are shown")
  func output() {
    let lines = (1...50).map { "line \($0)" }
    let text = Array(lines.joined(separator: "\n").utf8)
    #expect(ExploreText.output(text) == lines.prefix(10) + ["… 30 lines"] + lines.suffix(10))
    #expect(ExploreText.output([]).isEmpty)
  }

  @Test("the figures name what was run twice and what did not come to rest")
  func figures() {
    var figures = ExplorationFigures()
    (figures.schedules, figures.steps, figures.seconds) = (4, 80, 1.26)
    #expect(
      ExploreText.figures(figures, ExploreOptions())
        == "4 schedules, 1.3 s, 20 decisions each, strategy in turn, seed 1")
    (figures.repeated, figures.unfinished) = (2, 3)
    #expect(
      ExploreText.figures(figures, ExploreOptions()).hasSuffix(", 2 run twice, 3 did not come to rest"))
  }

  @Test("the bound of PCT: threads, times decisions to the power of the depth less one")
  func bound() {
    #expect(ExploreText.bound(threads: 4, steps: 100, depth: 1) == 4)
    #expect(ExploreText.bound(threads: 4, steps: 100, depth: 3) == 40_000)
    var figures = ExplorationFigures()
    (figures.threads, figures.mostSteps) = (4, 100)
    #expect(ExploreText.boundLine(figures, depth: 2).hasSuffix("at least 1 in 400"))
  }

  @Test("a difference is told with its first events, and with what may cause it")
  func leaks() {
    let difference = Exploration.Difference(schedule: Schedule(seed: 1))
    let leaks = UInt64(CONCOURSE_EXPLORING_LEAK_PROCESS_ID | CONCOURSE_EXPLORING_LEAK_CHILD_PROCESS)
    #expect(
      ExploreText.leaks(difference, leaks, ("a", nil)) == [
        "two runs of schedule 0 differed: something is not controlled", "  the first event that differs: a",
        "  the program uses its process id, another process",
      ])
    #expect(ExploreText.leaks(difference, 0, (nil, nil)).count == 1)
  }

  @Test("the first event that differs between two runs")
  func difference() {
    let events = [Self.event(0, 18, next: 0), Self.event(0, 20, next: 1), Self.event(1, 18, next: 1)]
    #expect(Exploration.firstDifference(events, events) == nil)
    var other = events
    other[1].next = 2
    #expect(Exploration.firstDifference(events, other)?.second?.next == 2)
    let shorter = Exploration.firstDifference(events, Array(events.prefix(2)))
    #expect(shorter?.first?.thread == 1)
    #expect(shorter?.second == nil)
  }

  @Test("says how to repeat the schedule of a test")
  func foreignToken() {
    var token = ScheduleToken(program: 7, build: 0, seed: 1, isRealTime: false, switches: [])
    #expect(
      ExploreText.foreign(token, than: "swift")
        == "the token is of a test; repeat it with CONCOURSE_REPLAY=\(token.text) swift test --filter TEST")
    token.build = 3
    #expect(ExploreText.foreign(token, than: "swift") == "the token is of another program than swift")
  }

  @Test("the line that repeats a schedule can be pasted into a shell, and has the options that decide")
  func repetition() {
    var options = ExploreOptions()
    func bytes(_ words: String...) -> [[UInt8]] { words.map { Array($0.utf8) } }
    #expect(
      ExploreText.repetition("04ab", bytes("./p", "two words", "it's", ""), options)
        == "repeat it: concourse explore --replay 04ab -- ./p 'two words' 'it'\\''s' ''")
    (options.findsRaces, options.steps, options.library) = (true, 900, "a b.so")
    #expect(
      ExploreText.repetition("a;b.token", bytes("p", "*", "x=1"), options)
        == "repeat it: concourse explore --races --steps 900 --library 'a b.so' --replay 'a;b.token' -- p '*' x=1"
    )
  }

  @Test(
    "each word of that line is for a shell the word that was given, and the line is shown as it is",
    .enabled(if: access("/bin/bash", X_OK) == 0, "needs bash"))
  func quotedWords() throws {
    let words: [[UInt8]] = [
      // An apostrophe with a mark above it, and one that is followed by an invisible joiner.
      Array("it'\u{301}s".utf8), Array("'\u{200D}'".utf8), Array("a\u{202E}b\u{AD}".utf8),
      Array("\u{1B}[2J\r\nline\ttab\u{7F}7\\n".utf8), Array("\u{2028}\u{85}é€".utf8), [],
      Array("!$(x) `y` \\ \"z\"".utf8), [0x61, 0xFF, 0x37, 0x27, 0x5C], [0xC3, 0x0A, 0xA9],
    ]
    let line = ExploreText.repetition("04ab", words, ExploreOptions())
    #expect(ForeignText.line(line) == line)
    #expect(ExploreText.quoted("it'\u{301}s") == "'it'\\''\u{301}s'")
    #expect(ExploreText.quoted("a\tb\u{1B}7") == "$'a\\tb\\0337'")
    let quoted = words.map { ExploreText.quoted($0) }.joined(separator: " ")
    let folder = try TemporaryFolder()
    let script = try folder.write(Array("printf '%s\\0' \(quoted)\n".utf8), to: "script")
    let output = try #require(popen("/bin/bash '\(script)'", "r"))
    var bytes: [UInt8] = []
    while case let byte = fgetc(output), byte != EOF { bytes.append(UInt8(byte)) }
    #expect(pclose(output) == 0)
    #expect(bytes == words.flatMap { $0 + [0] })
  }

  @Test("only what has the digits of a token, and enough of them, counts as a token and not as a file")
  func token() throws {
    let token = ScheduleToken(program: 1, build: 2, seed: 0, isRealTime: false, switches: [])
    #expect(ScheduleToken.canBeToken(token.text))
    #expect(!ScheduleToken.canBeToken("concourse-explore.token"))
    #expect(!ScheduleToken.canBeToken("race"))
  }
}

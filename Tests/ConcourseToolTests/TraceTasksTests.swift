import Glibc
import Testing

@testable import ConcourseRecording
@testable import ConcourseTool

@Suite("The tasks at the end of a trace")
struct TraceTasksTests {
  private func summary(_ counts: [TaskInfo.State: Int], _ places: [TaskSummary.Place] = []) -> TaskSummary {
    var summary = TaskSummary()
    summary.counts = TaskCounts(
      counts.flatMap { state, number in
        (0..<number).map { _ in
          TaskInfo(address: 0, id: 1, state: state, priority: 0, basePriority: 0, isCancelled: false)
        }
      })
    summary.places = places
    return summary
  }

  private func place(_ count: Int, _ state: TaskInfo.State, _ sentence: String, _ place: String?)
    -> TaskSummary.Place
  {
    .init(count: count, state: state, activity: sentence, sentence: sentence, place: place)
  }

  @Test("the numbers, and the largest places of tasks that wait")
  func text() {
    let tasks = TasksAtEnd(
      summary(
        [.running: 500, .suspended: 413, .enqueued: 7, .completed: 9],
        [
          place(500, .running, "run", "work()  Work.swift:1"),
          place(400, .suspended, "await a continuation", "Pool.lease()  Pool.swift:88"),
          place(12, .suspended, "await a stream", "read()  Read.swift:3"),
          place(1, .suspended, "task 8 \"reader\nDeadlock: forged\" awaits a stream", nil),
          place(5, .enqueued, "wait for a thread", nil), place(2, .enqueued, "wait for actor Bank", nil),
        ]))
    #expect(
      tasks?.lines == [
        "500 running, 7 enqueued, 413 suspended",
        "400 await a continuation at Pool.lease()  Pool.swift:88",
        "12 await a stream at read()  Read.swift:3", "task 8 \"reader?Deadlock: forged\" awaits a stream",
        "7 more at 2 other places",
      ])
    #expect(tasks?.text.hasPrefix("Tasks at the end of the recording: 500 running, 7 enqueued, ") == true)
    #expect(TasksAtEnd(summary([.running: 3, .completed: 1, .created: 2])) == nil)
    #expect(TasksAtEnd(.none) == nil)
  }

  @Test("tasks that wait for one another come first")
  func deadlock() {
    var tasks = summary([.suspended: 2], [place(2, .suspended, "await a task", nil)])
    tasks.deadlock = "deadlock: 2 tasks wait for one another"
    #expect(
      TasksAtEnd(tasks)?.lines == [
        "deadlock: 2 tasks wait for one another", "2 suspended", "2 await a task",
      ])
  }

  @Test("JSON is an object with them, or without")
  func json() throws {
    let reader = try RecordingReader(BytesInMemory(RecordingBuilder.sample.bytes))
    reader.poll()
    let recording = reader.recording()
    let tasks = TasksAtEnd(summary([.suspended: 1], [place(1, .suspended, "\"</script>", nil)]))
    let fixture = try ReportFixture()
    for tasks in [nil, tasks] {
      let bytes = try TraceFormat.json.write(recording, tasks) { "f\($0)" }
      let json = try fixture.json(String(decoding: bytes, as: UTF8.self))
      let about = try #require(json["otherData"] as? [String: String])
      #expect(about["lost events"] != nil)
      #expect(about[TasksAtEnd.title] == tasks.map { _ in "1 suspended; \"</script>" })
    }
  }
}

/// `concourse trace` of a program whose tasks wait.
@Suite(
  "concourse trace: tasks", .enabled(if: getenv("CONCOURSE_SANITIZER") == nil), .timeLimit(.minutes(10)))
struct TraceTasksProgramTests {
  private let fixture: ReportFixture

  init() throws { fixture = try ReportFixture() }

  private static let expected = "25 await a continuation at Suspended.Pool.lease()  Suspended.swift:"

  @Test("a running process: the page and the command say where its tasks wait")
  func process() throws {
    let program = Examined(try fixture.spawn(fixture.waits, ["ticking"]))
    program.program.waitForOutput("ready")
    _ = try fixture.report(on: program.program) { $0.contains("25 tasks await a continuation") }
    let folder = try TemporaryFolder()
    let page = folder.path + "/trace.html"
    let result = try fixture.spawn(
      fixture.command, ["trace", "--seconds", "0.5", "-o", page, program.id]
    ).wait()
    #expect(result.ending == .exit(0), "\(result.complaint)")
    let line = try #require(
      result.complaint.split(separator: "\n").first { $0.contains(TasksAtEnd.title) }, "\(result.complaint)")
    #expect(line.contains(" suspended; " + Self.expected) && line.contains(" more at "), "\(line)")
    let text = String(decoding: try #require(FileContents.read(page)), as: UTF8.self)
    #expect(text.contains(TasksAtEnd.title) && text.contains(Self.expected))
  }

  @Test("a program that goes on after the recording, and one that ends with it")
  func program() throws {
    let folder = try TemporaryFolder()
    let trace = folder.path + "/trace.json"
    // Before its end a busy machine may not have come as far as the tasks' waits.
    for seconds in [2, 10, 60, 240] {
      let traced = try fixture.spawn(
        fixture.command, ["trace", "--seconds", "\(seconds)", "-o", trace, "--", fixture.waits, "ticking"],
        environment: ["TMPDIR=\(folder.path)"])
      // A guard against a hang. The file is there once the trace has been written.
      for _ in 0..<40_000 where FileContents.read(trace)?.last != UInt8(ascii: "\n") { usleep(10_000) }
      kill(traced.identifier, SIGTERM)
      let result = try traced.wait()
      #expect(result.ending == .exit(128 + SIGTERM), "\(result.complaint)")
      let text = String(decoding: try #require(FileContents.read(trace)), as: UTF8.self)
      unlink(trace)
      guard result.complaint.contains(Self.expected) || seconds == 240 else { continue }
      #expect(text.contains(TasksAtEnd.title) && text.contains(Self.expected), "\(result.complaint)")
      // Its job has the task's number; the recording itself has names only of tasks that submit or wait.
      #expect(text.contains(#""name":"task \"waiter\" ("#))
      break
    }
    let ended = try fixture.spawn(fixture.command, ["trace", "-o", trace, fixture.waits, "tasks"]).wait()
    #expect(ended.ending == .exit(0) && !ended.complaint.contains(TasksAtEnd.title), "\(ended.complaint)")
  }
}

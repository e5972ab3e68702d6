import Foundation
import Glibc
import Testing

@testable import ConcourseTool

/// What `concourse report` shows of tasks that no thread runs.
@Suite(
  "concourse report: tasks", .enabled(if: getenv("CONCOURSE_SANITIZER") == nil), .timeLimit(.minutes(10)))
struct TaskReportTests {
  private let fixture: ReportFixture

  init() throws { fixture = try ReportFixture() }

  private static let summary = "TASKS     1 running, 1 enqueued, 29 suspended, 1 ended\n"

  /// Tests/ReportProbe, once each task waits.
  private func start() throws -> Examined {
    let program = Examined(try fixture.spawn(fixture.waits, ["suspended"]))
    program.program.waitForOutput("ready")
    _ = try fixture.report(on: program.program) { $0.contains(Self.summary) && $0.contains("25 tasks await") }
    return program
  }

  /// The part about tasks, with the places' lines joined to those before them.
  private func section(_ text: String) -> [String] {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    let section = lines.drop { !$0.hasPrefix("TASKS") }.prefix { !$0.isEmpty }
    return section.reduce(into: [String]()) { rows, line in
      let words = line.drop { $0 == " " }
      if words.hasPrefix("at ") || line.hasPrefix("    ") && !words.hasPrefix("task ") {
        rows[rows.count - 1] += " " + words
      } else {
        rows.append(String(line))
      }
    }
  }

  private func expectPlaces(
    _ text: String, hasClock: Bool = true, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let rows = section(text)
    func expect(_ activity: String, _ place: String) {
      let found = rows.contains { $0.contains(activity) && $0.contains(" at " + place) }
      #expect(found, "\(activity) at \(place):\n\(text)", sourceLocation: sourceLocation)
    }
    expect("25 tasks await a continuation", "Suspended.Pool.lease()  Suspended.swift:")
    expect("\"parent\" awaits a task group of 2 children", "closure #1 in Suspended.family()")
    expect("\"waiter\" awaits task ", "closure #5 in Suspended.run()")
    let end = hasClock ? " that ends in 27 h " : " at "
    expect("\"sleeper\" awaits a sleep" + end, "closure #6 in Suspended.run()")
    expect("\"reader?]0;OWNED", "closure #7 in Suspended.run()")
    expect("awaits a stream", "closure #7 in Suspended.run()")
    #expect(text.utf8.allSatisfy { $0 != 0x1B }, sourceLocation: sourceLocation)
  }

  @Test("a line for each place, also of a stopped process")
  func places() throws {
    let program = try start()
    let text = try fixture.report([program.id]).text
    expectPlaces(text)
    let auditor = section(text).first { $0.contains("\"auditor\" runs, and thread ") }
    #expect(auditor?.contains("is in pause") ?? false, "\(text)")
    let customer = section(text).first { $0.contains("\"customer\" waits for actor Bank, which thread ") }
    #expect(customer?.contains("\"auditor\" at closure #10 in Suspended.run()") ?? false, "\(text)")

    kill(program.program.identifier, SIGSTOP)
    expectPlaces(try fixture.report(on: program.program) { $0.contains(", stopped") })
  }

  @Test("when sleeps end, by each function for it")
  func sleeps() throws {
    let program = Examined(try fixture.spawn(fixture.waits, ["sleepers", "100"]))
    let text = try fixture.report(on: program.program, options: ["--tasks"]) {
      $0.contains("TASKS     106 suspended")
        && section($0).count { $0.contains("awaits a sleep that ends in ") } == 105
    }
    let rows = section(text)
    // They sleep for 1 h 56 min 40 s and so on; the machine may be slow.
    for (name, end) in [
      ("nanoseconds", "1 h "), ("duration", "3 h "), ("continuous", "4 h "), ("suspending", "5 h "),
      ("again", "7 h "),
    ] {
      #expect(
        rows.contains { $0.contains("\"\(name)\"") && $0.contains("awaits a sleep that ends in \(end)") },
        "\(name):\n\(text)")
    }
    #expect(rows.count { $0.contains("awaits a sleep that ends in 6 h ") } == 100, "\(text)")
  }

  @Test("the tree of all tasks")
  func tree() throws {
    let program = try start()
    let text = try fixture.report(["--tasks", program.id]).text
    let rows = section(text)
    #expect(rows.count == 33, "\(text)")
    let parent = try #require(rows.firstIndex { $0.contains("\"parent\" (") })
    #expect(rows[parent].contains("raised from low"), "\(text)")
    let children = rows[(parent + 1)...].prefix(3)
    #expect(
      children.allSatisfy { $0.hasPrefix("    task ") && $0.contains("Suspended.Pool.lease()") }, "\(text)")
    #expect(children.first?.contains(", async let) awaits a continuation") ?? false, "\(text)")
    #expect(children.dropFirst().map { $0.contains("\"child ") } == [true, true], "\(text)")
    // The callers, the innermost first.
    let request = try #require(rows.first { $0.contains("\"request 0\" (") })
    let functions = ["Suspended.Pool.lease()", "Suspended.request()", "closure #1 in Suspended.run()"]
    let places = functions.map { request.range(of: "at " + $0)?.lowerBound }
    #expect(
      !places.contains(nil) && places.compactMap { $0 }.sorted() == places.compactMap { $0 }, "\(request)")
    #expect(
      rows.contains { $0.contains("\"waiter\" (") && $0.contains("cancelled) awaits task ") }, "\(text)")
    let all = try fixture.report(["--tasks", "--all", program.id]).text
    #expect(all.contains("AsyncStream.Iterator.next(isolation:)"), "\(all)")
  }

  @Test("JSON has the places, and with an option all tasks")
  func json() throws {
    let program = try start()
    let short = try fixture.json(try fixture.report(["--json", program.id]).text)
    let places = try #require(short["taskPlaces"] as? [[String: Any]])
    #expect(places.first?["count"] as? Int == 25 && places.first?["state"] as? String == "suspended")
    #expect(short["tasks"] is NSNull && short["tasksProblem"] is NSNull)
    let long = try fixture.json(try fixture.report(["--json", "--tasks", program.id]).text)
    let tasks = try #require(long["tasks"] as? [[String: Any]])
    func task(_ name: String) throws -> [String: Any] {
      try #require(tasks.first { $0["name"] as? String == name })
    }
    let parent = try #require(try task("parent")["number"] as? Int)
    let waiter = try task("waiter")
    let awaited = try #require(waiter["awaits"] as? [String: Any])
    #expect(awaited["kind"] as? String == "task" && awaited["task"] as? Int == parent)
    #expect(waiter["isCancelled"] as? Bool == true)
    let child = try task("child 0")
    #expect(child["parent"] as? Int == parent && child["kind"] as? String == "group")
    let customer = try #require(try task("customer")["awaits"] as? [String: Any])
    #expect(customer["kind"] as? String == "executor" && customer["type"] as? String == "Bank")
    #expect(customer["threads"] as? [Int] == [try #require(try task("auditor")["thread"] as? Int)])
  }

  @Test("a runtime with another layout of tasks: one line, and the rest of the report")
  func layout() throws {
    let mapped = try #require(
      FileContents.read("/proc/self/maps").map { String(decoding: $0, as: UTF8.self) })
    let library = try #require(
      mapped.split(separator: "\n").first { $0.hasSuffix("/libswift_Concurrency.so") }?
        .split(separator: " ").last.map(String.init))
    let folder = try TemporaryFolder()
    var bytes = try #require(FileContents.read(library))
    let address = try #require(
      try ElfImage(path: library).variable(named: "_swift_concurrency_debug_internal_layout_version"))
    // The segment that has it: its place in the file, and its address.
    let table = Int(try #require(bytes.number(at: 32, as: UInt64.self)))
    let segments = (0..<Int(try #require(bytes.number(at: 56, as: UInt16.self)))).map { table + $0 * 56 }
    func word(_ segment: Int, _ place: Int) -> UInt64 { bytes.number(at: segment + place)! }
    let segment = try #require(
      segments.first {
        bytes.number(at: $0, as: UInt32.self) == 1 && address >= word($0, 16)
          && address - word($0, 16) < word($0, 32)
      })
    let place = Int(word(segment, 8) + address - word(segment, 16))
    #expect(bytes.number(at: place) == SwiftRuntime.layout)
    bytes[place] = 9
    try folder.write(bytes, to: "libswift_Concurrency.so", mode: 0o755)
    let program = Examined(
      try fixture.spawn(
        fixture.waits, ["suspended"], environment: ["LD_LIBRARY_PATH=\(folder.path):\(library.dropLastPart)"])
    )
    program.program.waitForOutput("ready")
    let text = try fixture.report([program.id]).text
    #expect(text.contains("TASKS     the tasks of this Swift runtime (layout 9, "), "\(text)")
    #expect(text.contains("are unknown to this command\n") && text.contains("THREADS   "), "\(text)")
    let json = try fixture.json(try fixture.report(["--json", "--tasks", program.id]).text)
    #expect((json["tasksProblem"] as? String)?.contains("layout 9") ?? false)
    #expect((json["tasks"] as? [Any])?.isEmpty ?? false)
  }

  @Test("a program without tasks has no such section")
  func none() throws {
    let program = Examined(try fixture.spawn(fixture.waits, []))
    program.program.waitForOutput("ready")
    let text = try fixture.report(["--tasks", program.id]).text
    #expect(text.contains("THREADS") && !text.contains("TASKS"), "\(text)")
  }

  /// A program of Examples/Sources/broken: the first line, and the first detail with its place.
  @Test(
    "a broken program with tasks: the cause comes first",
    arguments: [
      (
        "task-cycle", "Deadlock: 2 tasks wait for one another",
        "\"fetch tea\" awaits a task group of 2 children",
        "closure #1 in Prices.Cache.fetch(_:)", "deadlock"
      ),
      (
        "lost-continuation", "All 10 tasks are suspended, and nothing is left that could resume one",
        "10 tasks await a continuation", "Connections.lease()", "stalledTasks"
      ),
      (
        "endless-stream", "A task is suspended, and nothing is left that could resume it",
        "\"display\" awaits a stream", "closure #2 in Sensors.start()", "stalledTasks"
      ),
      (
        "held-actor", "\"auditor\" blocks its thread and holds actor Accounts: 5 tasks wait behind it",
        "is in clock_nanosleep, for at least ", "Accounts.audit(_:)", "heldActor"
      ),
      (
        "blocking-tasks", "40 tasks block their threads, for at least ", "39 tasks waiting for a semaphore",
        "Journal.write(_:)", "blockedTasks"
      ),
    ])
  func broken(name: String, cause: String, detail: String, place: String, kind: String) throws {
    let program = Examined(try fixture.spawn(fixture.broken, [name]))
    func joined(_ text: String) -> String {
      text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }
    let text = try fixture.report(on: program.program) { text in
      let head = joined(String(text.components(separatedBy: "\n\n")[0]))
      return head.prefix(100 + cause.count).contains(cause) && head.contains(detail)
    }
    let head = joined(text.components(separatedBy: "\n\n")[0])
    #expect(head.contains("at \(place)"), "\(text)")
    // A thread that ends just then lets the second look differ.
    _ = try fixture.report(on: program.program, options: ["--json"]) { $0.contains("\"kind\": \"\(kind)\"") }
    // A stopped process is judged alike, unless only a look for some time tells.
    guard kind != "heldActor" else { return }
    kill(program.program.identifier, SIGSTOP)
    _ = try fixture.report(on: program.program) { $0.contains(", stopped") && joined($0).contains(cause) }
  }

  @Test("memory that changes while it is read is survived")
  func torn() throws {
    let program = try start()
    var made = 0
    for seed in 1...12 as ClosedRange<UInt64> {
      var process = try TargetProcess.live(program.program.identifier)
      process = TargetProcess(
        id: process.id, name: process.name, memory: TornMemory(process, seed: seed), regions: process.regions,
        threads: process.threads, now: process.now)
      guard let report = try? Report.make(of: process) else { continue }
      made += 1
      for showsTasks in [false, true] {
        #expect(!ReportText.text(report, showsAll: true, showsTasks: showsTasks, isColoured: false).isEmpty)
        #expect(!ReportJSON.text(report, showsTasks: showsTasks).isEmpty)
      }
    }
    #expect(made > 0)
  }

  @Test(
    "a core dump", .enabled(if: ReportFixture.writesCores, "the kernel writes cores elsewhere"))
  func core() throws {
    let folder = try TemporaryFolder()
    let shell = "ulimit -c unlimited; cd '\(folder.path)' && exec '\(fixture.waits)' suspended"
    let program = try fixture.spawn("/bin/sh", ["-c", shell])
    _ = try fixture.report(on: program) { $0.contains(Self.summary) && $0.contains("25 tasks await") }
    kill(program.identifier, SIGABRT)
    #expect(try program.wait().ending == .signal(SIGABRT))
    let names = try #require(try? FileManager.default.contentsOfDirectory(atPath: folder.path))
    let name = try #require(names.first { $0.hasPrefix("core") }, "\(names)")
    let text = try fixture.report(["--core", folder.path + "/" + name]).text
    #expect(text.contains(Self.summary), "\(text)")
    expectPlaces(text, hasClock: false)
  }
}

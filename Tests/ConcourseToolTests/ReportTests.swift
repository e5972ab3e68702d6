import Foundation
import Glibc
import Testing

@testable import ConcourseTool

/// `concourse report`, run as a program on programs that hang or are slow. Under a sanitizer their memory is not what
/// the command expects: it has terabytes of shadow, and the sanitizer's own waits.
@Suite("concourse report", .enabled(if: getenv("CONCOURSE_SANITIZER") == nil), .timeLimit(.minutes(10)))
struct ReportTests {
  let fixture: ReportFixture

  init() throws { fixture = try ReportFixture() }

  private func start(_ name: String, environment: [String] = []) throws -> Examined {
    Examined(try fixture.spawn(fixture.broken, [name], environment: environment))
  }

  @Test("a deadlock over three queues: its threads, what each holds and waits for, and where")
  func deadlock() throws {
    let program = try start("deadlock")
    let text = try fixture.report(on: program.program) {
      $0.hasPrefix("Deadlock: 3 threads wait for one another")
    }
    for (held, wanted) in [("alice", "bob"), ("bob", "carol"), ("carol", "alice")] {
      #expect(text.contains("holds \"account.\(held)\", waits for queue \"account.\(wanted)\""), "\(text)")
    }
    #expect(text.contains("transfer(to:)  Transfers.swift:"), "\(text)")
    let place = "Concourse \(ConcourseTool.version) is in \(fixture.broken)"
    #expect(text.contains(place), "\(text)")
    #expect(text.split(separator: "\n").allSatisfy { $0.count <= 100 || $0.hasSuffix(place) })

    let report = try fixture.json(try fixture.report(["--json", program.id]).text)
    #expect((report["process"] as? [String: Any])?["version"] as? String == ConcourseTool.version)
    let cycles = try #require(report["cycles"] as? [[Any]])
    #expect(cycles.map(\.count) == [6])
    let verdicts = try #require(report["verdicts"] as? [[String: Any]])
    #expect(verdicts.map { $0["kind"] as? String } == ["deadlock"])
    #expect((verdicts[0]["threads"] as? [Int])?.count == 3)
    let queues = try #require(report["queues"] as? [[String: Any]])
    let alice = try #require(queues.first { $0["label"] as? String == "account.alice" })
    #expect((alice["holders"] as? [Int])?.count == 1)
    #expect((alice["waiters"] as? [Int])?.count == 1)
  }

  @Test("a starved pool: all threads sleep in the same place")
  func starved() throws {
    let program = try start("starved-pool", environment: ["CONCOURSE_MAX_THREADS=32"])
    let text = try fixture.report(on: program.program) {
      $0.hasPrefix("The pool is starved: ") && $0.contains("clock_nanosleep")
        && $0.contains("limit of 32 threads")
    }
    #expect(text.contains("answer(request:)  Requests.swift:"), "\(text)")
  }

  @Test("a queue that is never resumed")
  func suspended() throws {
    let program = try start("never-resumed")
    let text = try fixture.report(on: program.program) { $0.contains("250 items wait") }
    #expect(
      text.hasPrefix("Queue \"log\" is suspended (once) and has not been resumed: 250 items wait\n"),
      "\(text)")
  }

  @Test("a slow barrier, the items behind it and the thread that waits in sync")
  func barrier() throws {
    let program = try start("slow-barrier")
    let text = try fixture.report(on: program.program) {
      $0.contains("21 items wait behind it") && $0.contains("is in clock_nanosleep")
        && $0.contains("price(of:)")
    }
    #expect(text.hasPrefix("A barrier holds queue \"catalogue\": 21 items wait behind it\n"), "\(text)")
    #expect(text.contains("is in clock_nanosleep"), "\(text)")
    #expect(text.contains("download()  Catalogue.swift:"), "\(text)")
    #expect(text.contains("price(of:)  Catalogue.swift:"), "\(text)")
  }

  @Test("a busy hierarchy of short items is not stuck")
  func healthy() throws {
    let program = Examined(try fixture.spawn(fixture.waits, ["healthy"]))
    for _ in 0..<5 {
      let text = try fixture.report(on: program.program) {
        $0.contains("\"hierarchy\"") || $0.contains("right")
      }
      #expect(text.hasPrefix("Nothing is stuck: "), "\(text)")
    }
  }

  @Test(
    "a queue that is resumed again and again, threads that wait for short answers, and queues with work are not stuck",
    arguments: ["pausing", "answering", "working", "workloop"])
  func healthyAtTwoLooks(_ kind: String) throws {
    let program = Examined(
      try fixture.spawn(fixture.waits, [kind], environment: ["CONCOURSE_MAX_THREADS=24"]))
    program.program.waitForOutput("ready")
    for _ in 0..<8 {
      let text = try fixture.report([program.id]).text
      #expect(text.hasPrefix("Nothing is stuck: "), "\(text)")
    }
  }

  @Test("the thread of the engine's that receives signals is not blocked")
  func receiver() throws {
    let program = Examined(try fixture.spawn(fixture.waits, ["receiving"]))
    program.program.waitForOutput("ready")
    func hasReceiver() -> Bool {
      ProcFile.numbers(in: "/proc/\(program.id)/task").contains { thread in
        ProcFile.read("/proc/\(program.id)/task/\(thread)/comm") == "concourse-sig\n"
      }
    }
    // A guard against a hang.
    for _ in 0..<6000 where !hasReceiver() { usleep(5000) }
    try #require(hasReceiver())
    let text = try fixture.report(on: program.program) { $0.contains("THREADS   1 blocked") }
    #expect(!text.contains("concourse-sig"), "\(text)")
  }

  /// Comparing each thread with each object took 29 seconds of processor time.
  @Test(
    "a thousand threads among sixty thousand objects, each thread at its own",
    .enabled(if: getenv("CONCOURSE_SANITIZER") == nil))
  func many() throws {
    let program = Examined(try fixture.spawn(fixture.waits, ["many", "20000"]))
    program.program.waitForOutput("ready")
    let limited = ["-c", "ulimit -t 20; exec \"$0\" report \"$1\"", fixture.command, "\(program.id)"]
    let result = try fixture.spawn("/bin/sh", limited).wait()
    #expect(result.ending == .exit(0))
    #expect(result.text.contains("(waits), each waits"), "\(result.text)")
  }

  @Test("a process whose main thread has ended goes on, and is read through another thread")
  func endedMainThread() throws {
    let program = Examined(try fixture.spawn(fixture.waits, ["ended-main"]))
    program.program.waitForOutput("ready")
    let text = try fixture.report(on: program.program) { $0.contains("waits in sync") }
    #expect(
      text.hasPrefix("An item holds queue \"com.example.after-main\": 1 item waits behind it"), "\(text)")
    #expect(text.contains("EndedMain.swift:"), "\(text)")
    #expect(!text.contains("(main thread)"), "\(text)")
  }

  @Test("items that a concurrent queue has admitted are counted in its target's list")
  func admitted() throws {
    let program = Examined(try fixture.spawn(fixture.waits, ["admitted"]))
    program.program.waitForOutput("ready")
    let report = try fixture.json(try fixture.report(["--json", program.id]).text)
    let queues = try #require(report["queues"] as? [[String: Any]])
    let target = try #require(queues.first { $0["label"] as? String == "hierarchy" })
    #expect(target["items"] as? Int == 5)
  }

  @Test("the queues that one item holds are one cause, with a duration and a place")
  func held() throws {
    let program = Examined(try fixture.spawn(fixture.waits, ["held"]))
    // On a busy machine the worker still starts other workers when the first report is made.
    let text = try fixture.report(on: program.program) {
      $0.hasPrefix("An item holds queue") && $0.contains(" is running, at the same item for at least ")
        && ($0.contains("neverEnds()  Hierarchy.swift:") || $0.contains("compute(_:)  Hierarchy.swift:"))
    }
    let causes = text.prefix { $0 != "P" }.split(separator: "\n").filter { $0.hasPrefix("An item holds") }
    #expect(causes.count == 1, "\(text)")
    #expect(text.contains(" is running, at the same item for at least "), "\(text)")
    #expect(
      text.contains("neverEnds()  Hierarchy.swift:") || text.contains("compute(_:)  Hierarchy.swift:"),
      "\(text)")
  }

  @Test("a workloop that an item holds, with items of three classes behind it")
  func heldWorkloop() throws {
    let program = Examined(try fixture.spawn(fixture.waits, ["held-workloop"]))
    let cause = "An item holds queue \"workloop\": 9 items wait behind it"
    let text = try fixture.report(on: program.program) { $0.hasPrefix(cause) }
    #expect(text.hasPrefix(cause), "\(text)")
  }

  /// As in a container: the process knows its threads by other numbers than this one does.
  @Test(
    "a process in a namespace of its own",
    .enabled(if: ReportFixture.canMakeNamespaces, "namespaces need a privilege"))
  func namespace() throws {
    let outer = Examined(
      try fixture.spawn("/usr/bin/unshare", ["--pid", "--fork", "--kill-child", fixture.waits, "held"]))
    let children = "/proc/\(outer.id)/task/\(outer.id)/children"
    var child: pid_t?
    for _ in 0..<600 where child == nil {
      child = (FileContents.read(children) ?? []).split(separator: UInt8(ascii: " ")).first
        .flatMap { pid_t(String(decoding: $0, as: UTF8.self)) }
      usleep(50_000)
    }
    let process = try #require(child)
    var text = ""
    for _ in 0..<600 where !text.hasPrefix("An item holds queue") {
      text = try fixture.report(["\(process)"]).text
      usleep(50_000)
    }
    #expect(text.hasPrefix("An item holds queue"), "\(text)")
    #expect(text.contains("Its threads are named as in its own namespace: 1 is \(process) here."), "\(text)")
  }

  @Test("a program whose file has been removed since it began, as by an upgrade")
  func removed() throws {
    let folder = try TemporaryFolder()
    let copy = try folder.copy(fixture.broken, to: "removed")
    let program = Examined(try fixture.spawn(copy, ["deadlock"]), from: folder)
    _ = try fixture.report(on: program.program) { $0.hasPrefix("Deadlock: 3 threads") }
    try #require(unlink(copy) == 0)
    let text = try fixture.report(["\(program.id)"]).text
    #expect(text.hasPrefix("Deadlock: 3 threads wait for one another"), "\(text)")
    #expect(text.contains("transfer(to:)  "), "\(text)")
  }

  @Test("an actor that computes on the main queue")
  func mainQueue() throws {
    let program = try start("busy-main-queue")
    let text = try fixture.report(on: program.program) {
      $0.hasPrefix("An item holds the main queue: ") && $0.contains("Thumbnails.swift:")
    }
    #expect(text.contains("the main thread is running"), "\(text)")
    #expect(text.contains("Thumbnails.swift:"), "\(text)")
  }

  @Test("a stopped process: the same report, and it stays stopped")
  func stopped() throws {
    let program = try start("deadlock")
    _ = try fixture.report(on: program.program) { $0.hasPrefix("Deadlock: 3 threads") }
    kill(program.program.identifier, SIGSTOP)
    let text = try fixture.report(on: program.program) { $0.contains(", stopped") }
    #expect(text.hasPrefix("Deadlock: 3 threads wait for one another"), "\(text)")
    #expect(text.contains("transfer(to:)  Transfers.swift:"), "\(text)")
    let stat = String(decoding: try #require(FileContents.read("/proc/\(program.id)/stat")), as: UTF8.self)
    #expect(stat.contains(") T "))
  }

  @Test(
    "a core dump, whole and damaged",
    .enabled(if: ReportFixture.writesCores, "the kernel writes cores elsewhere"))
  func core() throws {
    let folder = try TemporaryFolder()
    let shell = "ulimit -c unlimited; cd '\(folder.path)' && exec '\(fixture.broken)' deadlock"
    let program = try fixture.spawn("/bin/sh", ["-c", shell])
    _ = try fixture.report(on: program) { $0.hasPrefix("Deadlock: 3 threads") }
    kill(program.identifier, SIGABRT)
    #expect(try program.wait().ending == .signal(SIGABRT))
    let names = try #require(try? FileManager.default.contentsOfDirectory(atPath: folder.path))
    let name = try #require(names.first { $0.hasPrefix("core") }, "\(names)")
    let core = folder.path + "/" + name

    let result = try fixture.report(["--core", core])
    #expect(result.ending == .exit(0), "\(result.complaint)")
    #expect(result.text.hasPrefix("Deadlock: 3 threads wait for one another\n"), "\(result.text)")
    #expect(result.text.contains("transfer(to:)  Transfers.swift:"), "\(result.text)")
    #expect(result.text.contains("core dump after signal 6"), "\(result.text)")

    let cut = folder.path + "/cut"
    try #require(Glibc.link(core, cut) == 0)
    try #require(truncate(cut, 100_000) == 0)
    try expectRefusal(["--core", cut], saying: "\(cut) is damaged: ")
  }

  /// The thread that has found the deadlock is awake: it traps.
  @Test(
    "the core dump of a process that has trapped because of a deadlock names it, with the place of each thread",
    .enabled(if: ReportFixture.writesCores, "the kernel writes cores elsewhere"))
  func coreOfDeadlock() throws {
    let folder = try TemporaryFolder()
    let run = { (command: String) throws -> String in
      let shell =
        "ulimit -c unlimited; export CONCOURSE_DEADLOCK=trap; cd '\(folder.path)' && exec \(command)"
      let ended = try fixture.spawn("/bin/sh", ["-c", shell]).wait()
      #expect(ended.ending == .signal(SIGILL), "\(ended.complaint)")
      let names = try #require(try? FileManager.default.contentsOfDirectory(atPath: folder.path))
      let name = try #require(names.first { $0.hasPrefix("core") }, "\(names)")
      defer { unlink(folder.path + "/" + name) }
      return try fixture.report(["--core", folder.path + "/" + name]).text
    }
    let queues = try run("'\(fixture.broken)' deadlock")
    #expect(queues.hasPrefix("Deadlock: 3 threads wait for one another\n"), "\(queues)")
    let places = queues.split(separator: "\n").prefix(9).filter {
      $0.contains("transfer(to:)  Transfers.swift:22")
    }
    #expect(places.count == 3, "\(queues)")
    for (kind, object) in [("group", "a group"), ("work-item", "a work item"), ("once", "a once body")] {
      let text = try run("'\(fixture.waits)' deadlock \(kind)")
      #expect(text.hasPrefix("Deadlock: 2 threads wait for one another\n"), "\(text)")
      #expect(text.contains("holds \"held\", waits for \(object)"), "\(text)")
      #expect(text.contains("waits for queue \"held\""), "\(text)")
    }
  }

  private func expectRefusal(
    _ arguments: [String], saying text: String, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    try fixture.report(arguments).expectRefusal(saying: text, sourceLocation: sourceLocation)
  }

  @Test("one line for what cannot be read, with the status of the other commands")
  func refusals() throws {
    // Process ids end far below.
    try expectRefusal(["2000000000"], saying: "no process 2000000000")
    try expectRefusal(["none"], saying: "'none' is not the id of a process")
    try expectRefusal([], saying: "no process given")
    try expectRefusal(["--wrong", "1"], saying: "unknown option '--wrong'")
    try expectRefusal(["--core", "/no/such/core"], saying: "/no/such/core: No such file or directory")
    try expectRefusal(["--core", fixture.command], saying: "\(fixture.command) is not a core dump")
    try expectRefusal(["--core", #filePath], saying: "\(#filePath) is not a core dump")
    let other = Examined(try fixture.spawn("/bin/sleep", ["1000"]))
    try expectRefusal([other.id], saying: "process \(other.id) (")
    #expect(try fixture.report([other.id]).complaint.hasSuffix("does not run on Concourse\n"))
  }

  @Test("a library of before the pool had shards has one")
  func oldRecord() throws {
    // Without the last word.
    let program = try fixture.probe(changing: 4, to: 0x70)
    let process = try TargetProcess.live(program.program.identifier)
    #expect(try InspectionRecord.find(in: process, MappedImage.all(of: process)).shards == 1)
    #expect(try fixture.report([program.id]).text.contains("\n  concourse "))
  }

  @Test("another layout of what the library exports is refused")
  func layout() throws {
    let program = try fixture.probe(changing: 0, to: 77)
    try expectRefusal(
      [program.id], saying: "process \(program.id) (probe) runs on another version of Concourse")
  }

  @Test(
    "the process of another user is refused",
    .enabled(if: ReportFixture.canBecomeOther, "needs root and setpriv"))
  func permission() throws {
    let program = Examined(try fixture.spawn(fixture.waits, []))
    program.program.waitForOutput("ready")
    let result = try fixture.runAsOther(["report", program.id])
    #expect(result.ending == .exit(125))
    #expect(result.complaint.contains("not permitted"), "\(result.complaint)")
    #expect(result.complaint.split(separator: "\n").count == 1)
  }

  @Test("memory that changes while it is read is survived")
  func tornMemory() throws {
    let program = Examined(try fixture.spawn(fixture.waits, []))
    program.program.waitForOutput("ready")
    let process = try TargetProcess.live(program.program.identifier)
    for seed in 0..<24 as Range<UInt64> {
      let torn = TargetProcess(
        id: process.id, name: process.name, memory: TornMemory(process, seed: seed), regions: process.regions,
        threads: process.threads, now: process.now)
      guard let report = try? Report.make(of: torn) else { continue }
      #expect(!ReportText.text(report, showsAll: true, isColoured: false).isEmpty)
      #expect(!ReportJSON.text(report).isEmpty)
    }
  }

  @Test("an item that begins after its queue was read has a holder")
  func beginsMeanwhile() throws {
    let program = Examined(try fixture.spawn(fixture.waits, []))
    program.program.waitForOutput("ready")
    let process = try TargetProcess.live(program.program.identifier)
    let record = try InspectionRecord.find(in: process, MappedImage.all(of: process))
    func held(_ snapshot: EngineSnapshot) throws -> QueueInfo {
      try #require(snapshot.queues.values.first { $0.label == "held" })
    }
    var known = try held(EngineReader.read(process, record))
    while known.holders.isEmpty || known.items == 0 { known = try held(EngineReader.read(process, record)) }
    let before = TargetProcess(
      id: process.id, name: process.name, memory: EarlierMemory(process, unowned: known.place.word),
      regions: process.regions, threads: process.threads, now: process.now)
    #expect(try held(EngineReader.read(before, record)).holders == known.holders)
  }

  @Test("lists without end cost no more than the report's budget")
  func endlessLists() throws {
    let program = Examined(try fixture.spawn(fixture.waits, ["busy", "paused"]))
    program.program.waitForOutput("ready")
    let process = try TargetProcess.live(program.program.identifier)
    let record = try InspectionRecord.find(in: process, MappedImage.all(of: process))
    let memory = try EndlessMemory(process, record)
    let endless = TargetProcess(
      id: process.id, name: process.name, memory: memory, regions: process.regions, threads: process.threads,
      now: process.now)
    let snapshot = try EngineReader.read(endless, record, links: LinkBudget(1000))
    #expect(snapshot.links.left == 0)
    let heldBack = snapshot.queues.values.map(\.heldBack)
    #expect(heldBack.count { $0 > 0 } > 0 && heldBack.reduce(0, +) <= 1000)
  }

  @Test("the bands of all shards are added up, and a damaged table hides no other shard")
  func shards() throws {
    let program = Examined(try fixture.spawn(fixture.waits, []))
    program.program.waitForOutput("ready")
    // The counts stay what they are.
    kill(program.program.identifier, SIGSTOP)
    var process = try TargetProcess.live(program.program.identifier)
    while process.threads.contains(where: { $0.state != "T" && $0.state != "t" }) {
      usleep(1_000)
      process = try TargetProcess.live(program.program.identifier)
    }
    var record = try InspectionRecord.find(in: process, MappedImage.all(of: process))
    #expect(record.shards == 1)
    let one = try EngineReader.read(process, record)
    #expect(one.bands.map(\.name) == ["concourse", "concourse-ut", "concourse-bg"])

    let memory = try ShardedMemory(process, record)
    let sharded = TargetProcess(
      id: process.id, name: process.name, memory: memory, regions: process.regions, threads: process.threads,
      now: process.now)
    record.roots = ShardedMemory.table
    record.shards = 2
    let two = try EngineReader.read(sharded, record)
    #expect(two.bands.map(\.name) == one.bands.map(\.name))
    for (kind, (before, after)) in zip(one.bands, two.bands).enumerated() {
      var counts = before.counts
      counts.add(BandWord(bits: ShardedMemory.counters))
      #expect(after.counts == counts)
      #expect(after.counts.threads - before.counts.threads == 4)
      #expect(after.activeLimit == before.activeLimit + ShardedMemory.allowance)
      // The list of the shard's utility root has an entry, and the batch of a worker of its default band has two.
      #expect(after.waiting == before.waiting + [2, 1, 0][kind])
    }
    func items(_ snapshot: EngineSnapshot) -> Int {
      snapshot.queues.values.reduce(0) { $0 + ($1.kind == .global ? $1.items : 0) }
    }
    #expect(items(two) == items(one) + 3)

    // The table has no more than two.
    record.shards = InspectionRecord.mostShards
    #expect(try EngineReader.read(sharded, record).bands.map(\.counts) == two.bands.map(\.counts))
    memory.damageSecondShard()
    #expect(try EngineReader.read(sharded, record).bands.map(\.counts) == one.bands.map(\.counts))
  }

  @Test("how long a worker that computes has held its queue at least")
  func computing() throws {
    let program = Examined(try fixture.spawn(fixture.waits, ["computing"]))
    let line = program.program.waitForOutput(" ns\n")
    let begin = try #require(line.split(separator: " ").dropLast().last.flatMap { UInt64($0) })
    func time(_ text: String) throws -> UInt64? {
      let report = try fixture.json(text)
      let queues = try #require(report["queues"] as? [[String: Any]])
      let queue = try #require(queues.first { $0["label"] as? String == "com.example.outer" })
      let holder = try #require((queue["holders"] as? [Int])?.first)
      let threads = try #require(report["threads"] as? [[String: Any]])
      return (try #require(threads.first { $0["id"] as? Int == holder })["busyForAtLeast"] as? NSNumber)?
        .uint64Value
    }
    var first: UInt64?
    _ = try fixture.report(on: program.program, options: ["--json"]) { text in
      guard let found = try? time(text) else { return false }
      // A lower bound is never more than the truth.
      #expect(found <= UptimeClock.now - begin)
      first = first ?? found
      return found >= first! + 300_000_000
    }
    let text = try fixture.report([program.id]).text
    let lines = text.split(separator: "\n")
    func details(of label: String) throws -> Substring {
      let row = try #require(lines.firstIndex { $0.hasPrefix("  " + label) }, "\(text)")
      return lines[row + 1]
    }
    #expect(try details(of: "com.example.outer").contains("held for at least "), "\(text)")
    // This one it has taken later.
    #expect(try !details(of: "com.example.inner").contains("held for"), "\(text)")
  }

  @Test("the task of Swift Concurrency that a thread runs, and its priority")
  func tasks() throws {
    let program = Examined(try fixture.spawn(fixture.waits, ["jobs"]))
    let lines = program.program.waitForOutput("ready").split(separator: "\n")
    func number(_ label: String) throws -> Int {
      let line = lines.first { $0.hasPrefix(label) }
      return try #require(line.flatMap { Int($0.dropFirst(label.count + 1)) }, "\(lines)")
    }
    let (sleeping, computing) = try (number("sleeping"), number("computing"))
    let text = try fixture.report([program.id]).text
    #expect(text.contains("in an item of \"sleeping\", task \(sleeping) (high)\n"), "\(text)")
    #expect(text.contains("in an item of \"computing\", task \(computing) (low)\n"), "\(text)")
    let threads = try #require(
      try fixture.json(try fixture.report(["--json", program.id]).text)["threads"] as? [[String: Any]])
    let tasks = threads.compactMap { $0["task"] as? [String: Int] }
    #expect(Set(tasks) == [["number": sleeping, "priority": 25], ["number": computing, "priority": 17]])
    #expect(tasks.count == 2)
  }

  @Test("each kind of wait and of event")
  func waits() throws {
    let program = Examined(try fixture.spawn(fixture.waits, []))
    program.program.waitForOutput("ready")
    let wanted = [
      "in-group": "group", "in-semaphore": "semaphore", "in-time-out": "semaphore", "in-item": "workItem",
      "in-once": "pause", "behind-once": "once", "in-loop": "parallelLoop", "in-read": "read",
      "has-mutex": "pause",
      "in-mutex": "mutex", "in-sync": "sync", "in-nested-sync": "sync", "in-main-sync": "sync",
    ]
    func waits(_ text: String) throws -> [String: String] {
      let threads = try #require(try fixture.json(text)["threads"] as? [[String: Any]])
      let pairs = threads.map { ($0["name"] as? String ?? "", $0["wait"] as? String ?? "") }
      return Dictionary(pairs) { first, _ in first }.filter { wanted[$0.key] != nil }
    }
    let text = try fixture.report(on: program.program, options: ["--json"]) { (try? waits($0)) == wanted }
    let report = try fixture.json(text)
    let threads = try #require(report["threads"] as? [[String: Any]])
    func thread(_ name: String) throws -> [String: Any] {
      try #require(threads.first { $0["name"] as? String == name })
    }
    #expect(try thread("in-time-out")["hasTimeout"] as? Bool == true)
    #expect(try thread("in-group")["waitsFor"] as? String == "a group with 1 enter without leave")
    #expect(try thread("in-nested-sync")["waitsFor"] as? String == "queue \"held\", the target of \"nested\"")
    #expect(try #require(thread("in-semaphore")["blockedFor"] as? Int) > 0)

    let queues = try #require(report["queues"] as? [[String: Any]])
    func queue(_ label: String) throws -> [String: Any] {
      try #require(queues.first { $0["label"] as? String == label })
    }
    #expect((try queue("held")["waiters"] as? [Int])?.count == 2)
    #expect(try queue("wide")["class"] as? String == "utility")
    #expect(try queue("wide")["kind"] as? String == "concurrent")
    #expect(try queue("nested")["targetLabel"] as? String == "held")
    #expect(try queue("a label of more than fifteen bytes")["items"] as? Int == 0)
    #expect(try queue("com.apple.main-thread")["items"] as? Int == 1)

    let sources = try #require(report["sources"] as? [[String: Any]])
    let timer = try #require(sources.first { $0["kind"] as? String == "timer" })
    let due = try #require(timer["dueIn"] as? Int)
    #expect(due > 4_000_000_000_000 && due < 5_100_000_000_000)
    #expect(sources.contains { $0["kind"] as? String == "read" })
    let timers = try #require(report["timers"] as? [String: Any])
    #expect(timers["set"] as? Int == 2)
    let channels = try #require(report["channels"] as? [[String: Any]])
    #expect(channels.contains { $0["open"] as? Int == 1 && $0["unfinishedOperations"] as? Int == 1 })
  }
}

/// The memory of a process of which some words of the heap and of the stacks are replaced.
final class TornMemory: TargetMemory {
  private let process: TargetProcess
  private let seed: UInt64
  /// One word of so many is replaced.
  private let rarity: UInt64

  init(_ process: TargetProcess, seed: UInt64) {
    (self.process, self.seed) = (process, seed)
    rarity = [5, 50, 500][Int(seed % 3)]
  }

  func populated(_ region: MappedRegion) -> [Range<UInt64>] { process.memory.populated(region) }

  func read(_ address: UInt64, into bytes: UnsafeMutableRawBufferPointer) -> Bool {
    guard process.memory.read(address, into: bytes) else { return false }
    // The files' own memory says where everything is.
    guard let region = process.region(of: address), region.isWritable, !region.path.hasPrefix("/") else {
      return true
    }
    for offset in stride(from: 0, to: bytes.count - 7, by: 8) {
      // The same word is torn at each read.
      var hash = (address &+ UInt64(offset)) &* 0x9E37_79B9_7F4A_7C15 ^ seed &* 0xBF58_476D_1CE4_E5B9
      hash = (hash ^ hash >> 31) &* 0x94D0_49BB_1331_11EB
      guard (hash >> 8) % rarity == 0 else { continue }
      let replacements: [UInt64] = [0, 1, .max, .max - 3, 1 << 63, hash, hash >> 32, address &+ 64]
      bytes.storeBytes(of: replacements[Int(hash & 7)], toByteOffset: offset, as: UInt64.self)
    }
    return true
  }
}

/// The memory of a process in which a queue had no owner when it was first read.
private final class EarlierMemory: TargetMemory {
  private let process: TargetProcess
  private let state: UInt64
  private var isRead = false

  init(_ process: TargetProcess, unowned state: UInt64) { (self.process, self.state) = (process, state) }

  func populated(_ region: MappedRegion) -> [Range<UInt64>] { process.memory.populated(region) }

  func read(_ address: UInt64, into bytes: UnsafeMutableRawBufferPointer) -> Bool {
    guard process.memory.read(address, into: bytes) else { return false }
    if address == state, bytes.count == 8, !isRead {
      isRead = true
      bytes.storeBytes(of: bytes.load(as: UInt64.self) & ~0x7F_FFFF, as: UInt64.self)
    }
    return true
  }
}

/// The memory of a process in which each queue has held back items without end.
private final class EndlessMemory: TargetMemory {
  private let process: TargetProcess
  private let heldBack: Set<UInt64>
  private static let node: UInt64 = 0x1000

  init(_ process: TargetProcess, _ record: InspectionRecord) throws {
    self.process = process
    let types = EngineTypes(record.types, in: process.memory)
    let (extras, offset) = try (
      types.offset("DispatchObject", "extrasReference"), types.offset("QueueExtras", "heldBack")
    )
    heldBack = Set(
      try EngineReader.read(process, record).queues.keys.compactMap {
        process.memory.word($0 + extras).flatMap { $0 == 0 ? nil : $0 + offset }
      })
  }

  func populated(_ region: MappedRegion) -> [Range<UInt64>] { process.memory.populated(region) }

  func read(_ address: UInt64, into bytes: UnsafeMutableRawBufferPointer) -> Bool {
    guard address == Self.node || heldBack.contains(address), bytes.count == 8 else {
      return process.memory.read(address, into: bytes)
    }
    bytes.storeBytes(of: Self.node, as: UInt64.self)
    return true
  }
}

/// The memory of a process with a second shard of the pool, at addresses that the process does not use.
private final class ShardedMemory: TargetMemory {
  /// The table of roots.
  static let table: UInt64 = 0x1000
  /// Of each band of the second shard: an active worker that searches, and three parked ones.
  static let counters: UInt64 = 4 << 48 | 3 << 32 | 1 << 16 | 1
  static let allowance = 5

  private let process: TargetProcess
  private var bytes = [UInt8](repeating: 0, count: 0x4000)

  init(_ process: TargetProcess, _ record: InspectionRecord) throws {
    self.process = process
    let types = EngineTypes(record.types, in: process.memory)
    // After the two tables: three nodes and a worker's record, whose other bytes are 0.
    let (node, batch, worker) = (Self.table + 256, [Self.table + 320, Self.table + 384], Self.table + 512)
    set(batch[1], at: batch[0])
    set(batch[0] | 3, at: worker + (try types.offset("WorkerRecord", "batch")))
    var end = Self.table + 1024
    func copy(_ type: String, at address: UInt64) throws -> UInt64 {
      let size = try #require(types[type]).size
      let object = try #require(process.memory.bytes(at: address, count: size))
      let place = end
      bytes.replaceSubrange(Int(place - Self.table)..<Int(place - Self.table) + object.count, with: object)
      end += UInt64(object.count + 15 & ~15)
      return place
    }
    let (bandOffset, listOffset) = try (types.offset("RootQueue", "band"), types.offset("RootQueue", "list"))
    var bands: [UInt64: UInt64] = [:]
    for level in 0..<6 as Range<UInt64> {
      let root = try #require(process.memory.word(record.roots + level * 8))
      set(root, at: Self.table + level * 8)
      let band = try #require(process.memory.word(root + bandOffset))
      if bands[band] == nil {
        let ours = try copy("Band", at: band)
        set(Self.counters, at: ours + (try types.offset("Band", "counters")))
        set(UInt64(Self.allowance), at: ours + (try types.offset("Band", "allowance")))
        set(bands.isEmpty ? worker : 0, at: ours + (try types.offset("Band", "newestRecord")))
        bands[band] = ours
      }
      let ours = try copy("RootQueue", at: root)
      set(bands[band]!, at: ours + bandOffset)
      set(level == 2 ? node : 0, at: ours + listOffset)
      set(ours, at: Self.table + 48 + level * 8)
    }
  }

  func damageSecondShard() {
    let garbage: [UInt64] = [.max, 0, 8, Self.table, .max - 7, 1 << 63]
    for (level, word) in garbage.enumerated() {
      set(word, at: Self.table + 48 + UInt64(level) * 8)
    }
  }

  private func set(_ word: UInt64, at address: UInt64) {
    bytes.withUnsafeMutableBytes {
      $0.storeBytes(of: word, toByteOffset: Int(address - Self.table), as: UInt64.self)
    }
  }

  func populated(_ region: MappedRegion) -> [Range<UInt64>] { process.memory.populated(region) }

  func read(_ address: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Bool {
    guard address >= Self.table, address < Self.table + UInt64(bytes.count) else {
      return process.memory.read(address, into: buffer)
    }
    let offset = Int(address - Self.table)
    guard buffer.count <= bytes.count - offset else { return false }
    buffer.copyBytes(from: bytes[offset..<offset + buffer.count])
    return true
  }
}

import Concourse
import ConcourseCluster
import Glibc
import Synchronization
import Testing

/// Many small jobs while workers and servers are killed again and again; `Cluster/Scripts/test --long` runs it. The
/// environment says how many: CONCOURSE_CLUSTER_JOBS and CONCOURSE_CLUSTER_KILLS.
///
/// Three workers in processes of their own end by SIGKILL, some seconds after their start, whatever they do at that moment.
/// Beside them, one server after the other is killed and started again. Each start and each end of a handler is a record,
/// which the worker appends to a file that all workers share: the file is the order in which things happened, and
/// outlives the workers.
@Suite(.enabled(if: environmentNumber("CONCOURSE_CLUSTER_JOBS") != nil), .timeLimit(.minutes(240)))
struct LongTests {
  private static let kills = environmentNumber("CONCOURSE_CLUSTER_KILLS") ?? 1_000

  /// What has happened until now.
  private final class Progress: Sendable {
    struct State {
      /// Whether all jobs have been stored.
      var areStored = false
      var isDone = false
      var killedWorkers = 0
      var killedServers = 0
      var kills: Int { killedWorkers + killedServers }
    }
    private let guarded = Mutex(State())
    var state: State { guarded.withLock { $0 } }
    func change(_ body: (inout State) -> Void) { guarded.withLock { body(&$0) } }
  }

  /// How many items of a queue run in one worker at the same time.
  private static let width = 16

  /// What a worker must know.
  struct Work: Codable, Sendable {
    var addresses: [String]
    var path: String

    enum Kind: UInt32, CaseIterable { case concurrent, keyed, serial }

    func queue(_ kind: Kind, on cluster: Cluster) -> ClusterQueue<Int> {
      var options = ClusterQueueOptions()
      options.patience = .seconds(5)
      // The workers die by no fault of the items.
      options.attempts = 1_000_000
      return ClusterQueue(
        label: "long-\(kind)", attributes: kind == .serial ? [] : .concurrent, options: options, on: cluster)
    }
  }

  /// Something that has happened to an item.
  private struct Record {
    enum Event: UInt32 { case start, end }
    var event: Event
    var kind: Work.Kind
    var number: Int
    var worker: pid_t
  }

  /// The file of records.
  private final class Records: Sendable {
    private let file: Int32

    init(_ path: String) { file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0o600) }
    deinit { close(file) }

    func append(_ event: Record.Event, _ kind: Work.Kind, _ number: Int) throws {
      let words = [event.rawValue, kind.rawValue, UInt32(number), UInt32(getpid())]
      let written = words.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
      if written != 16 { throw Failed("a record was not written: \(errno)") }
    }

    func all() throws -> [Record] {
      let size = Int(lseek(file, 0, SEEK_END))
      var words = [UInt32](repeating: 0, count: size / 4)
      let read = words.withUnsafeMutableBytes { pread(file, $0.baseAddress, $0.count, 0) }
      guard read == size, size % 16 == 0 else { throw Failed("the records cannot be read: \(errno)") }
      var records: [Record] = []
      records.reserveCapacity(words.count / 4)
      for index in stride(from: 0, to: words.count, by: 4) {
        guard let event = Record.Event(rawValue: words[index]),
          let kind = Work.Kind(rawValue: words[index + 1])
        else { throw Failed("record \(index / 4) cannot be read") }
        records.append(
          Record(event: event, kind: kind, number: Int(words[index + 2]), worker: pid_t(words[index + 3])))
      }
      return records
    }
  }

  /// Which key an item has.
  private static func key(of number: Int) -> String { "\(number % 7)" }

  @Test func killedWorkersAndServersLoseNothing() async throws {
    let jobs = try #require(environmentNumber("CONCOURSE_CLUSTER_JOBS"))
    let servers = try await TestServers.start(3)
    defer { servers.stop() }
    let work = Work(addresses: servers.addresses, path: servers.file("records"))
    let records = Records(work.path)
    let cluster = try await Cluster.connect(servers: servers.addresses, timeout: .seconds(600))
    let counts: [Work.Kind: Int] = [.concurrent: jobs - jobs / 50, .keyed: jobs / 100, .serial: jobs / 100]
    let progress = Progress()
    let start = ContinuousClock.now

    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<3 {
        group.addTask {
          while !progress.state.isDone {
            await Self.worker(work)
            progress.change { $0.killedWorkers += 1 }
          }
        }
      }
      group.addTask {
        var index = 0
        // The rest needs servers that agree on a leader.
        while !(progress.state.areStored && progress.state.kills >= Self.kills) {
          try await Task.sleep(for: .milliseconds(.random(in: 0...2_000)))
          servers.kill(index)
          progress.change { $0.killedServers += 1 }
          try await Task.sleep(for: .milliseconds(.random(in: 0...1_000)))
          try await servers.restart(index)
          // Otherwise two of three would be missing when the next one is killed, and nothing would go on. A server of version
          // 2.9.10 may never get the state of a queue that is idle.
          try await servers.untilCurrent(index) { progress.state.isDone }
          index = (index + 1) % 3
        }
      }
      group.addTask {
        try await withThrowingTaskGroup(of: Void.self) { submissions in
          for (kind, count) in counts {
            submissions.addTask {
              try await Self.submit(kind, count, to: work.queue(kind, on: cluster), progress)
            }
          }
          try await submissions.waitForAll()
        }
        progress.change { $0.areStored = true }
        for kind in Work.Kind.allCases {
          let queue = work.queue(kind, on: cluster)
          try await eventually { try await queue.pendingCount() == 0 }
        }
        progress.change { $0.isDone = true }
      }
      try await group.waitForAll()
    }
    await cluster.shutdown()

    let all = try records.all()
    var doubled: [Work.Kind: Int] = [:]
    var (lostInAll, faultsInAll) = (0, 0)
    for (kind, count) in counts {
      let (lost, extra, faults) = Self.judge(all.filter { $0.kind == kind }, count, kind)
      #expect(lost.isEmpty, "\(kind): \(lost.count) lost: \(lost.prefix(10))")
      #expect(faults.isEmpty, "\(kind): out of order: \(faults.prefix(10))")
      doubled[kind] = extra
      (lostInAll, faultsInAll) = (lostInAll + lost.count, faultsInAll + faults.count)
    }
    let (byWorkers, byServers) = (progress.state.killedWorkers, progress.state.killedServers)
    // A worker that dies may have finished as many items without an acknowledgement as run there. A server that dies may
    // take as many acknowledgements of three workers with it, and as many answers to submissions as are in flight.
    let bound = byWorkers * 2 * Self.width + byServers * (3 * 2 * Self.width + Self.inFlight)
    let total = doubled.values.reduce(0, +)
    #expect(total <= bound, "\(doubled)")
    print(
      """
      \(jobs) jobs under \(byWorkers) kills of workers and \(byServers) of servers, in \
      \((ContinuousClock.now - start).components.seconds) s: \(lostInAll) lost, \(faultsInAll) out of order; completed twice: \
      \(doubled.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key) \($0.value)" }.joined(separator: ", "))
      """)
  }

  private static let inFlight = 64

  /// Runs a worker in a process of its own until it is killed.
  private static func worker(_ work: Work) async {
    await #expect(processExitsWith: .signal(SIGKILL)) { [work = work as Work] in
      // If the servers cannot be reached, it does not stay either.
      alarm(600)
      let records = Records(work.path)
      let cluster = try await Cluster.connect(servers: work.addresses, timeout: .seconds(500))
      for kind in Work.Kind.allCases {
        _ = try await work.queue(kind, on: cluster).handle(width: LongTests.width) { number in
          try records.append(.start, kind, number)
          try records.append(.end, kind, number)
        }
      }
      DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(.random(in: 0...4_000))) {
        raise(SIGKILL)
      }
      await Gate().pass()
    }
  }

  /// Items of the concurrent queue are submitted many at a time. Those that have an order have an id each, and one follows
  /// the other, so that a submission that is repeated is stored once.
  private static func submit(
    _ kind: Work.Kind, _ count: Int, to queue: ClusterQueue<Int>, _ progress: Progress
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<count {
        // The kills are spread over all jobs.
        if number % 100 == 0 {
          try await eventually { progress.state.kills * count >= (number - 100) * Self.kills }
        }
        switch kind {
        case .concurrent:
          if number >= inFlight { try await group.next() }
          group.addTask { try await queue.async(number) }
        case .keyed: try await queue.async(number, key: key(of: number), id: "\(number)")
        case .serial: try await queue.async(number, id: "\(number)")
        }
      }
      try await group.waitForAll()
    }
  }

  /// - Returns: The items that have never come to an end; how many ends are too many; and the items that started for the
  ///   first time before the one before them had ended.
  private static func judge(_ records: [Record], _ count: Int, _ kind: Work.Kind) -> ([Int], Int, [Int]) {
    var (ends, hasStarted) = (Array(repeating: 0, count: count), Array(repeating: false, count: count))
    var faults: [Int] = []
    let step = kind == .keyed ? 7 : 1
    for record in records {
      switch record.event {
      case .start where !hasStarted[record.number]:
        hasStarted[record.number] = true
        let before = record.number - step
        if kind != .concurrent, before >= 0, ends[before] == 0 { faults.append(record.number) }
      case .start: break
      case .end: ends[record.number] += 1
      }
    }
    return (ends.indices.filter { ends[$0] == 0 }, ends.reduce(0) { $0 + max(0, $1 - 1) }, faults)
  }
}

/// A number from the environment.
func environmentNumber(_ name: String) -> Int? { getenv(name).flatMap { Int(String(cString: $0)) } }

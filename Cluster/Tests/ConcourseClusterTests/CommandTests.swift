import ConcourseCluster
import Glibc
import Testing

/// The command `concourse-cluster`, in a process of its own.
@Suite(.timeLimit(.minutes(10))) struct CommandTests {
  private struct Outcome {
    let status: Int32
    let lines: [String]
    let complaint: String
    /// The most bytes that it had in memory.
    let memory: Int
  }

  private func run(_ arguments: [String], environment: [String] = []) throws -> Outcome {
    var path = [UInt8](repeating: 0, count: 4_096)
    let length = readlink("/proc/self/exe", &path, path.count)
    guard length > 0 else { throw Failed("no path of the tests: \(errno)") }
    let folder = String(decoding: path[..<length], as: UTF8.self).split(separator: "/").dropLast()
    let program = "/" + folder.joined(separator: "/") + "/concourse-cluster"
    var template = Array(
      "\(getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp")/command-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw Failed("no temporary folder: \(errno)") }
    let files = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer { if let remover = try? spawn(["rm", "-rf", files]) { waitpid(remover, nil, 0) } }
    let process = try spawn(
      ["sh", "-c", "exec env \"$@\" >\(files)/output 2>\(files)/complaint", "sh"] + environment + [program]
        + arguments)
    var status: Int32 = 0
    var usage = rusage()
    wait4(process, &status, 0, &usage)
    let output = try text(of: "\(files)/output").split(separator: "\n").map { String($0) }
    return Outcome(
      status: status & 0x7f == 0 ? status >> 8 : -1, lines: output,
      complaint: try text(of: "\(files)/complaint"), memory: usage.ru_maxrss << 10)
  }

  private func text(of path: String) throws -> String {
    guard let file = fopen(path, "r") else { throw Failed("\(path) cannot be read: \(errno)") }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 100_000)
    return String(decoding: bytes[..<fread(&bytes, 1, bytes.count, file)], as: UTF8.self)
  }

  /// The queue is serial and has attempts of its own; the command knows neither.
  @Test func failedItemsAreListedPutBackAndDiscarded() async throws {
    let servers = try await TestServers.shared.value.addresses
    let cluster = try await Cluster.connect(servers: servers)
    let label = EngineKind.servers.label()
    var options = ClusterQueueOptions()
    options.attempts = 2
    options.retryDelay = .milliseconds(1)
    let queue = ClusterQueue<[Int]>(label: label, options: options, on: cluster)
    let (log, mended) = (Log<[Int]>(), Log<Bool>())
    _ = try await queue.handle { item in
      log.append(item)
      if mended.all.isEmpty { throw Failed("no eyes\nin \(item)") }
    }
    try await queue.async([1], id: "the first")
    for number in 2...4 { try await queue.async([number]) }
    try await eventually { try await queue.failedItems().count == 4 }
    let numbers = try await queue.failedItems().map { "\($0.number)" }
    let list = ["--servers", servers.joined(separator: ","), label]

    var outcome = try run(["failed"] + list)
    #expect(outcome.status == 0 && outcome.complaint == "", "\(outcome)")
    try #require(outcome.lines.count == 5)
    #expect(outcome.lines[0].hasPrefix("number  attempts  bytes  put aside"))
    let words = outcome.lines[1].split(separator: " ")
    #expect(words[0] == numbers[0] && words[1] == "2" && words[2] == "3")
    #expect(outcome.lines[1].contains("  the first  ") && outcome.lines[1].hasSuffix("no eyes in [1]"))
    outcome = try run(["failed"] + list + ["--after", numbers[0], "--count", "2"])
    #expect(outcome.lines.dropFirst().map { $0.split(separator: " ")[0] } == numbers[1...2].map { $0[...] })

    mended.append(true)
    outcome = try run(["put-back"] + list + [numbers[1]])
    #expect(outcome.status == 0 && outcome.lines == ["put back: 1"], "\(outcome)")
    #expect(await log.until(9).last == [2])
    // One that is not there does not keep the others.
    outcome = try run(["discard"] + list + [numbers[1], numbers[2]])
    #expect(outcome.status == 1 && outcome.lines == ["discarded: 1"], "\(outcome)")
    #expect(outcome.complaint.contains("no failed item of number \(numbers[1])"))
    outcome = try run(["put-back"] + list + ["--all"])
    #expect(outcome.status == 0 && outcome.lines == ["put back: 2"], "\(outcome)")
    #expect(await log.until(11).suffix(2) == [[1], [4]])
    #expect(try await queue.failedItems().isEmpty)
    #expect(try run(["failed"] + list).lines.count == 1)
    await cluster.shutdown()
  }

  /// The command needs the bytes of one item at a time, however many there are.
  @Test func listOfLargeItemsNeedsLittleMemory() async throws {
    let servers = try await TestServers.start(1)
    defer { servers.stop() }
    let cluster = try await Cluster.connect(servers: servers.addresses, replicas: 1, timeout: .seconds(300))
    var options = ClusterQueueOptions()
    options.attempts = 1
    let queue = ClusterQueue<String>(label: "many", options: options, on: cluster)
    let item = String(repeating: "x", count: 1_000_000)
    for _ in 1...60 { try await queue.async(item) }
    _ = try await queue.handle { _ in throw Failed("no eyes") }
    try await eventually { try await queue.pendingCount() == 0 }
    let few = try run(["failed", "--servers", servers.addresses[0], "many", "--count", "5"])
    let all = try run(["failed", "--servers", servers.addresses[0], "many"])
    #expect((few.lines.count, all.lines.count) == (6, 61))
    #expect(all.memory - few.memory < 20_000_000, "\(few.memory) and \(all.memory) bytes")
    print("memory of 5 and 60 items: \(few.memory >> 20) and \(all.memory >> 20) MiB")
    await cluster.shutdown()
  }

  /// The server takes shorter messages by now, so it refuses one of the items.
  @Test func itemThatIsRefusedDoesNotKeepTheOthers() async throws {
    let servers = try await TestServers.start(1)
    defer { servers.stop() }
    let cluster = try await Cluster.connect(servers: servers.addresses, replicas: 1, timeout: .seconds(300))
    var options = ClusterQueueOptions()
    options.attempts = 1
    let queue = ClusterQueue<String>(label: "large", options: options, on: cluster)
    let registration = try await queue.handle { _ in throw Failed("no eyes") }
    for item in ["a", String(repeating: "b", count: 200_000), "c"] { try await queue.async(item) }
    try await eventually { try await queue.failedItems().count == 3 }
    registration.cancel()
    await registration.drained()
    let numbers = try await queue.failedItems().map { "\($0.number)" }
    servers.kill(0)
    try servers.configure(0, "max_payload: 100000")
    try await servers.restart(0)
    let list = ["--servers", servers.addresses[0], "large"]
    var outcome = try run(["put-back"] + list + [numbers[1], numbers[2]])
    #expect(outcome.status == 1 && outcome.lines == ["put back: 1"], "\(outcome)")
    #expect(
      outcome.complaint.hasPrefix("concourse-cluster: put-back \(numbers[1]): an item for cluster queue"))
    outcome = try run(["put-back"] + list + ["--all"])
    #expect(outcome.status == 1 && outcome.lines == ["put back: 1"], "\(outcome)")
    #expect(outcome.complaint.split(separator: "\n").count == 1)
    // It can be discarded.
    outcome = try run(["discard"] + list + ["--all"])
    #expect(outcome.status == 0 && outcome.lines == ["discarded: 1"], "\(outcome)")
    try await eventually { try await queue.pendingCount() == 2 }
    await cluster.shutdown()
  }

  @Test func credentialsAreInTheEnvironment() async throws {
    let servers = try await TestServers.start(
      1, authorization: "authorization { user: \"me\", password: \"secret\" }")
    defer { servers.stop() }
    let cluster = try await Cluster.connect(
      servers: servers.addresses, credentials: .password(user: "me", password: "secret"), replicas: 1)
    let queue = ClusterQueue<Int>(label: "guarded", on: cluster)
    #expect(try await queue.failedItems().isEmpty)
    let address = "CONCOURSE_CLUSTER_SERVERS=\(servers.addresses[0])"
    var outcome = try run(
      ["discard", "guarded", "--all"],
      environment: [address, "CONCOURSE_CLUSTER_USER=me", "CONCOURSE_CLUSTER_PASSWORD=secret"])
    #expect(outcome.status == 0 && outcome.lines == ["discarded: 0"], "\(outcome)")
    outcome = try run(["failed", "guarded"], environment: [address])
    #expect(outcome.status == 1 && outcome.lines.isEmpty, "\(outcome)")
    #expect(outcome.complaint.hasPrefix("concourse-cluster: the cluster refuses the credentials"))
    await cluster.shutdown()
  }

  @Test func whatIsWrongIsSaidInOneLine() async throws {
    let servers = try await TestServers.shared.value.addresses.joined(separator: ",")
    func complains(_ arguments: [String], _ status: Int32, _ text: String) throws {
      let outcome = try run(arguments)
      #expect(outcome.status == status && outcome.lines.isEmpty, "\(outcome)")
      #expect(outcome.complaint.hasPrefix("concourse-cluster: ") && outcome.complaint.contains(text))
      #expect(outcome.complaint.split(separator: "\n").count == 1)
    }
    try complains([], 2, "see concourse-cluster --help")
    try complains(["faild", "x"], 2, "unknown command \"faild\"")
    try complains(["failed", "x"], 2, "--servers is missing")
    try complains(["failed", "--servers", servers], 2, "the label of a queue is missing")
    try complains(["failed", "--servers", servers, "x", "--all"], 2, "no option --all")
    try complains(["discard", "--servers", servers, "x"], 2, "needs the numbers of items, or --all")
    try complains(["discard", "--servers", servers, "x", "one"], 2, "needs a number, not \"one\"")
    try complains(["failed", "--servers"], 2, "--servers needs a value")
    let long = String(repeating: "x", count: 201)
    try complains(["failed", "--servers", servers, long], 2, "a label that long")
    try complains(["failed", "--servers", servers, "no such queue"], 1, "these servers have no such queue")
    let nowhere = "nats://127.0.0.1:1"
    try complains(["failed", "--servers", nowhere, "x"], 1, "no server of the cluster can be reached")
    let help = try run(["--help"])
    #expect(help.status == 0 && help.lines[0].hasPrefix("usage: concourse-cluster failed"))
  }
}

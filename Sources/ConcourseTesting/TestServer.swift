import CConcourseTesting
import CTracing
import Glibc

/// A process of the test program that makes a child for each schedule.
final class TestServer {
  private let file: ExploringFile
  private let output: Int32
  private let socket: Int32
  private let process: pid_t
  private(set) var symbols = ExplorationSymbols(base: 0)

  /// The test makes threads before it comes to the exploration.
  struct HasThreads: Error {}

  /// - Parameters:
  ///   - arguments: What makes the test program run one test.
  ///   - name: The exploration of that test.
  ///   - isEarly: Whether each schedule begins with the process, and not with the exploration.
  init(arguments: [String], name: String, isEarly: Bool) throws {
    let library = try ExploringLibrary.path()
    output = tracing_memory_file()
    var sockets: [Int32] = [-1, -1]
    guard output >= 0,
      let file = ExploringFile(switches: ExploringFile.mostSwitches, events: ExploringFile.mostEvents),
      socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &sockets) == 0
    else { throw ExplorationError("no memory or no descriptors: \(String(cString: strerror(errno)))") }
    self.file = file
    socket = sockets[0]
    process = try Self.start(
      arguments,
      Self.environment(
        library: library,
        name:
          "\(Character(UnicodeScalar(UInt8(isEarly ? CONCOURSE_TESTING_EARLY : CONCOURSE_TESTING_LATE))))\(name)"
      ),
      descriptors: [
        (sockets[1], CONCOURSE_TESTING_SOCKET), (file.descriptor, CONCOURSE_TESTING_FILE),
        (output, CONCOURSE_TESTING_OUTPUT),
      ])
    close(sockets[1])
    var answer: UInt8 = 0
    let count = Self.retry { read(socket, &answer, 1) }
    if count == 1, Int(answer) == CONCOURSE_TESTING_READY {
      var base: UInt64 = 0
      guard Self.retry({ recv(socket, &base, 8, Int32(MSG_WAITALL)) }) == 8 else {
        throw ExplorationError("the process that runs schedules has ended")
      }
      symbols = ExplorationSymbols(base: base)
      return
    }
    if count == 1, Int(answer) == CONCOURSE_TESTING_HAS_THREADS { throw HasThreads() }
    let output = String(decoding: written, as: UTF8.self)
    throw ExplorationError(
      Self.refusal(count == 1 ? Int(answer) : 0, library) + (output.isEmpty ? "" : "\n\(output)"))
  }

  deinit {
    close(socket)
    close(output)
    while waitpid(process, nil, 0) < 0 && errno == EINTR {}
  }

  private static func refusal(_ answer: Int, _ library: String) -> String {
    switch answer {
    case CONCOURSE_TESTING_WITHOUT_LIBRARY: "\(library) was not loaded"
    case CONCOURSE_TESTING_OTHER_DISPATCH:
      "the test program contains a Dispatch of its own, as with the product Concourse; explore what uses the toolchain's"
    case CONCOURSE_TESTING_OTHER_VERSION: "\(library) is of another version"
    default: "the test, alone in a process with \(library), does not come to the exploration"
    }
  }

  /// Runs one schedule.
  func run(_ schedule: Schedule) throws -> ScheduleResult {
    file.prepare(schedule)
    concourse_testing_move_here(process)
    ftruncate(output, 0)
    lseek(output, 0, SEEK_SET)
    var request: UInt8 = 1
    var status: Int32 = 0
    guard Self.retry({ send(socket, &request, 1, Int32(MSG_NOSIGNAL)) }) == 1,
      Self.retry({ recv(socket, &status, 4, Int32(MSG_WAITALL)) }) == 4, status != -1
    else { throw ExplorationError("the process that runs schedules has ended") }
    let header = file.header
    let events = file.events(header.event_count)
    return ScheduleResult(
      status: status, header: header, made: file.made(header.made_count), firstEvent: events.first,
      events: events.events, threads: file.threads(header.thread_count), output: written)
  }

  private static func retry(_ call: () -> Int) -> Int {
    while true {
      let result = call()
      if result >= 0 || errno != EINTR { return result }
    }
  }

  /// What the test has printed, at most 64 KiB.
  private var written: [UInt8] {
    // SAFETY: `pread` writes at most that, and says how many.
    [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, filled in
      filled = max(0, pread(output, buffer.baseAddress, buffer.count, 0))
    }
  }

  // MARK: The beginning

  private static func environment(library: String, name: String) -> [String] {
    let changed = [
      "LD_PRELOAD": [library, ConcourseTesting.environment("LD_PRELOAD") ?? ""].filter { !$0.isEmpty }.joined(
        separator: ":"),
      CONCOURSE_TESTING_VARIABLE: name,
      // Else each child looks up the functions that it calls.
      "LD_BIND_NOW": "1",
      "SWIFT_DETERMINISTIC_HASHING": "1",
      // A trap would start the program that prints backtraces.
      "SWIFT_BACKTRACE": "enable=no",
    ]
    var entries = changed.map { "\($0.key)=\($0.value)" }.sorted()
    var next = environ
    while let entry = next.pointee {
      let text = String(cString: entry)
      if changed[String(text.prefix { $0 != "=" })] == nil { entries.append(text) }
      next += 1
    }
    return entries
  }

  private static func start(
    _ arguments: [String], _ environment: [String], descriptors: [(Int32, Int)]
  ) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for (own, new) in descriptors { posix_spawn_file_actions_adddup2(&actions, own, Int32(new)) }
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // Threads of Dispatch block signals.
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    guard let program = realpath("/proc/self/exe", nil) else {
      throw ExplorationError("the test program's file is not known")
    }
    defer { free(program) }
    let words = ([String(cString: program)] + arguments).map { strdup($0) } + [nil]
    let variables = environment.map { strdup($0) } + [nil]
    defer { for string in words + variables { free(string) } }
    let former = concourse_testing_fix_addresses()
    defer { concourse_testing_leave_addresses(former) }
    var process: pid_t = 0
    let error = posix_spawn(&process, program, &actions, &attributes, words, variables)
    guard error == 0 else {
      throw ExplorationError("the test program cannot be started: \(String(cString: strerror(error)))")
    }
    return process
  }
}

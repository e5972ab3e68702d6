import Glibc
import TailKit
import Testing

/// A run of the built program, whose output can be waited for.
final class TailRun {
  private(set) var output: Bytes = []
  private(set) var errors: Bytes = []
  let process: pid_t
  private var outputPipe: Int32
  private var errorPipe: Int32
  private var status: Int32?
  /// Where `waitForOutput` has got to.
  private var consumed = 0

  /// The program that the package manager put beside this test's own executable.
  static let program: String = {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let length = readlink("/proc/self/exe", &buffer, buffer.count)
    let me = String(decoding: buffer.prefix(max(0, length)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return me.split(separator: "/").dropLast().reduce("") { $0 + "/" + $1 } + "/tail-many"
  }()

  /// Starts the program in the directory.
  /// - Parameter command: the words before the arguments.
  init(_ arguments: [String], in logs: LogDirectory, through command: [String] = [TailRun.program]) throws {
    // Named pipes: the program opens its ends by name, so no other test's program can inherit them.
    let outside = LogDirectory()
    let pipes = ["output", "errors"].map { name in
      #expect(mkfifo(outside.path(name), 0o600) == 0)
      return open(outside.path(name), O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    }
    (outputPipe, errorPipe) = (pipes[0], pipes[1])
    // The shell's part is to change the directory, for which posix_spawn has no portable way.
    let words = ["/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", logs.root] + command + arguments

    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 1, outside.path("output"), O_WRONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 2, outside.path("errors"), O_WRONLY, 0)

    // Whatever this process does about signals, the program starts with the usual settings.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    for signal in [SIGINT, SIGTERM, SIGUSR1, SIGPIPE] { sigaddset(&signals, signal) }
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    // SAFETY: copies of the words, which live until the end of this initializer, when they are freed.
    var argv: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
    argv.append(nil)
    defer {
      for word in argv { free(word) }
    }
    var process = pid_t()
    let failure = posix_spawn(&process, argv[0]!, &actions, &attributes, argv, environ)
    self.process = process
    try #require(failure == 0, "posix_spawn")
  }

  deinit {
    if status == nil {
      kill(process, SIGKILL)
      waitpid(process, nil, 0)
    }
    for pipe in [outputPipe, errorPipe] where pipe >= 0 { close(pipe) }
  }

  var outputText: String { String(decoding: output, as: UTF8.self) }
  var errorText: String { String(decoding: errors, as: UTF8.self) }

  /// Waits until the output goes on with this text, and with no other.
  func expect(_ text: String, _ location: SourceLocation = #_sourceLocation) {
    let wanted = Bytes(text.utf8)
    wait(location) { $0.output.count >= $0.consumed + wanted.count }
    let next = output.dropFirst(consumed).prefix(wanted.count)
    #expect(String(decoding: next, as: UTF8.self) == text, sourceLocation: location)
    consumed += wanted.count
  }

  /// Waits until the output contains this text.
  func expectSomewhere(_ text: String, _ location: SourceLocation = #_sourceLocation) {
    wait(location) { $0.outputText.contains(text) }
  }

  /// Waits for a message.
  func expectMessage(_ text: String, _ location: SourceLocation = #_sourceLocation) {
    wait(location) { $0.errorText.contains("tail-many: " + text + "\n") }
  }

  /// Asks for the line of numbers until it is as wanted. The program must have been heard of before: else it
  /// may not listen yet, and the signal would be its end.
  /// - Returns: the last one.
  @discardableResult
  func expectStatus(
    reading: Bool = true, _ location: SourceLocation = #_sourceLocation, until isWanted: (Status) -> Bool
  ) -> Status {
    let start = ContinuousClock.now
    while true {
      let asked = errors.count
      send(SIGUSR1)
      var found: Status?
      let isThere = wait(location, readingOutput: reading) { run in
        found = Status(run.errors.dropFirst(asked))
        return found != nil
      }
      guard isThere, let found else { return Status(numbers: [0, 0, 0, 0, 0, 0]) }
      if isWanted(found) { return found }
      guard start.duration(to: .now) < .seconds(30) else {
        Issue.record("the numbers never become what is wanted: \(found)", sourceLocation: location)
        return found
      }
      // Not faster than something can have changed.
      var polls = [pollfd(fd: outputPipe, events: reading ? Int16(POLLIN) : 0, revents: 0)]
      poll(&polls, 1, 2)
    }
  }

  func send(_ signal: Int32) { #expect(kill(process, signal) == 0) }

  /// Nobody reads the output any more.
  func closeOutput() {
    close(outputPipe)
    outputPipe = -1
  }

  /// Does something again and again, for half a minute at most, until the program ends its messages, as it does when
  /// it ends.
  func untilEnd(_ body: () -> Void) {
    for _ in 0..<1000 where errorPipe >= 0 {
      body()
      var polls = [pollfd(fd: errorPipe, events: Int16(POLLIN), revents: 0)]
      if poll(&polls, 1, 30) > 0 { read(&errorPipe, into: &errors) }
    }
  }

  /// Reads all that comes, and returns the exit status when the program has ended.
  func end(readingOutput: Bool = true, _ location: SourceLocation = #_sourceLocation) -> Int32 {
    wait(location, readingOutput: readingOutput) { $0.errorPipe < 0 && (!readingOutput || $0.outputPipe < 0) }
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0 && errno == EINTR {}
    self.status = status
    // A shell's way to tell a death by signal.
    return status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
  }

  /// Reads what comes until the condition holds; gives up when nothing at all has come for 30 seconds.
  @discardableResult
  private func wait(
    _ location: SourceLocation, readingOutput: Bool = true, until condition: (TailRun) -> Bool
  ) -> Bool {
    while !condition(self) {
      var polls = [pollfd(fd: errorPipe, events: Int16(POLLIN), revents: 0)]
      if readingOutput { polls.append(pollfd(fd: outputPipe, events: Int16(POLLIN), revents: 0)) }
      guard polls.contains(where: { $0.fd >= 0 }), poll(&polls, nfds_t(polls.count), 30_000) > 0 else {
        Issue.record(
          "nothing more comes; output so far: \(outputText.suffix(2000)); messages: \(errorText.suffix(2000))",
          sourceLocation: location)
        return false
      }
      if polls[0].revents != 0 { read(&errorPipe, into: &errors) }
      if readingOutput, polls[1].revents != 0 { read(&outputPipe, into: &output) }
    }
    return true
  }

  private func read(_ pipe: inout Int32, into all: inout Bytes) {
    var buffer = Bytes(repeating: 0, count: 1 << 16)
    let count = Glibc.read(pipe, &buffer, buffer.count)
    if count > 0 {
      all += buffer[..<count]
    } else if count == 0 {
      close(pipe)
      pipe = -1
    }
  }
}

/// The line of numbers that SIGUSR1 asks for.
struct Status {
  let followed: Int, withoutName: Int, waitedFor: Int, lines: Int, bytes: Int, pending: Int

  init(numbers: [Int]) {
    (followed, withoutName, waitedFor) = (numbers[0], numbers[1], numbers[2])
    (lines, bytes, pending) = (numbers[3], numbers[4], numbers[5])
  }

  init?(_ text: some Sequence<UInt8>) {
    let lines = String(decoding: Array(text), as: UTF8.self).split(
      separator: "\n", omittingEmptySubsequences: false)
    guard let line = lines.dropLast().first(where: { $0.hasSuffix(" not yet written") }) else { return nil }
    let numbers = line.split { !$0.isNumber }.compactMap { Int($0) }
    guard numbers.count == 6 else { return nil }
    self.init(numbers: numbers)
  }
}

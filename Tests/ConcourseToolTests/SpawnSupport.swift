import Glibc
import Testing

/// A program that a test has started.
final class SpawnedProgram {
  enum Ending: Equatable {
    case exit(Int32)
    case signal(Int32)
  }

  struct Result {
    var ending: Ending
    var output: [UInt8]
    var complaint: String
    var text: String { String(decoding: output, as: UTF8.self) }

    /// Expects a refusal of our command: its status, one line of complaint that begins so, and no output.
    func expectRefusal(saying text: String, sourceLocation: SourceLocation = #_sourceLocation) {
      #expect(ending == .exit(125), sourceLocation: sourceLocation)
      #expect(output.isEmpty, sourceLocation: sourceLocation)
      #expect(complaint.hasPrefix("concourse: " + text), "\(complaint)", sourceLocation: sourceLocation)
      #expect(complaint.split(separator: "\n").count == 1, sourceLocation: sourceLocation)
    }
  }

  let identifier: pid_t
  private var outputs: [Int32]
  private var collected: [[UInt8]] = [[], []]

  /// - Parameters:
  ///   - arguments: those after the program's name, as bytes.
  ///   - input: the descriptor that becomes its standard input.
  init(_ path: String, _ arguments: [[UInt8]], environment: [String], input: Int32) throws {
    outputs = []
    var writers: [Int32] = []
    defer { for writer in writers { close(writer) } }
    for _ in 0..<2 {
      var ends: [Int32] = [0, 0]
      // A pair of sockets, unlike a pipe, can be made such that no other test's program inherits it.
      try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
      outputs.append(ends[0])
      writers.append(ends[1])
    }
    var actions = posix_spawn_file_actions_t()
    try #require(posix_spawn_file_actions_init(&actions) == 0)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, input, 0)
    posix_spawn_file_actions_adddup2(&actions, writers[0], 1)
    posix_spawn_file_actions_adddup2(&actions, writers[1], 2)
    // The program must not inherit descriptors of other tests.
    for descriptor: Int32 in 3..<256 { posix_spawn_file_actions_addclose(&actions, descriptor) }
    // Tests run on threads that block signals, which a program would inherit.
    var attributes = posix_spawnattr_t()
    try #require(posix_spawnattr_init(&attributes) == 0)
    defer { posix_spawnattr_destroy(&attributes) }
    var (none, all) = (sigset_t(), sigset_t())
    sigemptyset(&none)
    sigfillset(&all)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    let words = ([Array(path.utf8)] + arguments).map(Self.terminated) + [nil]
    let variables = environment.map { Self.terminated(Array($0.utf8)) } + [nil]
    defer { for word in words + variables { word?.deallocate() } }
    var started: pid_t = 0
    let failure = posix_spawn(&started, path, &actions, &attributes, words, variables)
    try #require(failure == 0, "\(path): \(String(cString: strerror(failure)))")
    identifier = started
  }

  deinit { for output in outputs where output >= 0 { close(output) } }

  private static func terminated(_ bytes: [UInt8]) -> UnsafeMutablePointer<CChar>? {
    let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count + 1)
    for (index, byte) in bytes.enumerated() { copy[index] = CChar(bitPattern: byte) }
    copy[bytes.count] = 0
    return copy
  }

  /// Returns once the program has written `text` on standard output, or has closed it.
  /// - Returns: what it has written.
  @discardableResult
  func waitForOutput(_ text: String) -> String {
    while true {
      let written = String(decoding: collected[0], as: UTF8.self)
      if written.contains(text) || outputs[0] < 0 { return written }
      collect()
    }
  }

  /// Reads the available bytes of both outputs; waits for bytes or an end.
  /// - Returns: false if none has come for `patience` milliseconds.
  @discardableResult
  private func collect(_ patience: Int32 = -1) -> Bool {
    var watched = outputs.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    let ready = poll(&watched, nfds_t(watched.count), patience)
    guard ready > 0 else { return ready < 0 }
    for index in outputs.indices where watched[index].revents != 0 {
      var bytes = [UInt8](repeating: 0, count: 65536)
      let count = read(outputs[index], &bytes, bytes.count)
      if count > 0 {
        collected[index] += bytes[..<count]
      } else if count == 0 || errno != EINTR {
        close(outputs[index])
        outputs[index] = -1
      }
    }
    return true
  }

  /// Waits for its end. Every program must be waited for: the testing library waits for any child of the process, and comes
  /// no further while there is one that has ended and is not its own.
  /// - Parameter patience: after how many milliseconds without output it is killed; for ever by default.
  func wait(patience: Int32 = -1) throws -> Result {
    while outputs.contains(where: { $0 >= 0 }) {
      if !collect(patience) { kill(identifier, SIGKILL) }
    }
    var status: Int32 = 0
    while waitpid(identifier, &status, 0) < 0 { try #require(errno == EINTR) }
    let signal = status & 0x7F
    return Result(
      ending: signal == 0 ? .exit(status >> 8 & 0xFF) : .signal(signal), output: collected[0],
      complaint: String(decoding: collected[1], as: UTF8.self))
  }
}

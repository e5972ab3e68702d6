// Shared by the tests of channels.

import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

/// A file that is removed with the value.
final class TemporaryFile: Sendable {
  let path: String
  let descriptor: Int32

  /// - Parameter bytes: its contents; the position is at the start.
  init(_ bytes: [UInt8] = []) {
    var template = Array("/tmp/concourse-io-XXXXXX".utf8CString)
    descriptor = mkstemp(&template)
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    precondition(descriptor >= 0)
    var written = 0
    while written < bytes.count {
      let count = bytes.withUnsafeBytes {
        write(descriptor, $0.baseAddress! + written, bytes.count - written)
      }
      precondition(count > 0)
      written += count
    }
    lseek(descriptor, 0, SEEK_SET)
  }

  deinit {
    close(descriptor)
    unlink(path)
  }

  /// Its contents.
  var bytes: [UInt8] {
    let reader = open(path, O_RDONLY)
    defer { close(reader) }
    var status = stat()
    fstat(reader, &status)
    var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
    let count = read(reader, &bytes, bytes.count)
    return Array(bytes.prefix(count))
  }
}

/// Two connected descriptors, closed with the value unless closed before.
final class Ends: @unchecked Sendable {
  // SAFETY (@unchecked Sendable): the thread that runs the test closes; others only use the numbers.
  private(set) var reader: Int32
  private(set) var writer: Int32

  init(_ ends: [Int32]) { (reader, writer) = (ends[0], ends[1]) }

  static func pipe() -> Ends {
    var ends: [Int32] = [0, 0]
    precondition(Glibc.pipe(&ends) == 0)
    return Ends(ends)
  }

  static func sockets() -> Ends {
    var ends: [Int32] = [0, 0]
    precondition(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
    return Ends(ends)
  }

  static func terminal() -> Ends {
    let master = open("/dev/ptmx", O_RDWR | O_NOCTTY)
    // TIOCSPTLCK and TIOCGPTN, which the Glibc module lacks.
    var (lock, number): (Int32, Int32) = (0, 0)
    precondition(ioctl(master, 0x4004_5431, &lock) == 0 && ioctl(master, 0x8004_5430, &number) == 0)
    let slave = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY)
    precondition(slave >= 0)
    return Ends([slave, master])
  }

  func closeReader() {
    if reader >= 0 { close(reader) }
    reader = -1
  }

  func closeWriter() {
    if writer >= 0 { close(writer) }
    writer = -1
  }

  func send(_ text: String) {
    #expect(text.withCString { write(writer, $0, text.utf8.count) } == text.utf8.count)
  }

  deinit {
    closeReader()
    closeWriter()
  }
}

/// One call of a handler.
struct Call: Equatable {
  let done: Bool
  let bytes: [UInt8]?
  let error: Int32

  init(_ done: Bool, _ bytes: [UInt8]?, _ error: Int32 = 0) {
    (self.done, self.bytes, self.error) = (done, bytes, error)
  }
  init(_ done: Bool, _ text: String, _ error: Int32 = 0) { self.init(done, Array(text.utf8), error) }
}

/// The calls of one operation's handler.
final class Calls: Sendable {
  let queue: DispatchQueue
  private let recorded = Shared<[Call]>([])
  private let ended = DispatchSemaphore(value: 0)
  private let called = DispatchSemaphore(value: 0)
  private let running = Tally()

  init(_ queue: DispatchQueue = DispatchQueue(label: "handlers")) { self.queue = queue }

  /// The handler to pass.
  var handler: (Bool, DispatchData?, Int32) -> Void {
    { [self] done, data, error in
      dispatchPrecondition(condition: .onQueue(queue))
      #expect(running.add() == 1)
      #expect(all.last?.done != true)
      recorded.change { $0.append(Call(done, data.map { Array($0) }, error)) }
      running.add(-1)
      called.signal()
      if done { ended.signal() }
    }
  }

  var all: [Call] { recorded.value }

  /// Waits for the last call, and returns all.
  func finished() -> [Call] {
    #expect(comes(ended))
    return all
  }

  /// Waits for the next call, and returns all until then.
  func next() -> [Call] {
    #expect(comes(called))
    return all
  }

  /// All bytes that were delivered.
  var bytes: [UInt8] { all.flatMap { $0.bytes ?? [] } }
}

/// A channel whose cleanup is recorded.
final class TestChannel: Sendable {
  let io: DispatchIO
  private let cleaned: DispatchSemaphore
  private let errors: Shared<[Int32]>
  let queue: DispatchQueue

  private init(_ make: (DispatchQueue, @escaping (Int32) -> Void) -> DispatchIO) {
    let (queue, cleaned, errors) = (
      DispatchQueue(label: "channel"), DispatchSemaphore(value: 0), Shared<[Int32]>([])
    )
    (self.queue, self.cleaned, self.errors) = (queue, cleaned, errors)
    io = make(queue) { error in
      dispatchPrecondition(condition: .onQueue(queue))
      errors.change { $0.append(error) }
      cleaned.signal()
    }
  }

  convenience init(_ type: DispatchIO.StreamType, _ descriptor: Int32) {
    self.init { DispatchIO(type: type, fileDescriptor: descriptor, queue: $0, cleanupHandler: $1) }
  }

  convenience init(_ type: DispatchIO.StreamType, path: String, _ flags: Int32) {
    self.init {
      DispatchIO(type: type, path: path, oflag: flags, mode: 0o600, queue: $0, cleanupHandler: $1)!
    }
  }

  convenience init(_ type: DispatchIO.StreamType, _ other: TestChannel) {
    self.init { DispatchIO(type: type, io: other.io, queue: $0, cleanupHandler: $1) }
  }

  /// Whether the cleanup handler has been called.
  var isCleaned: Bool { !errors.value.isEmpty }

  /// Waits for the cleanup handler.
  /// - Returns: its error argument.
  func cleanup() -> Int32 {
    #expect(comes(cleaned))
    #expect(errors.value.count == 1)
    return errors.value.last ?? -1
  }

  func read(_ length: Int = .max, at offset: Int = 0, _ calls: Calls = Calls()) -> Calls {
    io.read(offset: off_t(offset), length: length, queue: calls.queue, ioHandler: calls.handler)
    return calls
  }

  func write(_ bytes: [UInt8], at offset: Int = 0, _ calls: Calls = Calls()) -> Calls {
    io.write(offset: off_t(offset), data: bytesData(bytes), queue: calls.queue, ioHandler: calls.handler)
    return calls
  }

  /// Closes it, and waits for the cleanup handler.
  func end() {
    io.close()
    #expect(cleanup() == 0)
  }
}

func bytesData(_ bytes: [UInt8]) -> DispatchData { bytes.withUnsafeBytes { DispatchData(bytes: $0) } }

/// Bytes that depend on their position.
func pattern(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) } }

extension FilePolicy {
  /// Runs `body` with files read and written this way.
  static func with<Result>(_ policy: FilePolicy, _ body: () -> Result) -> Result {
    let before = current
    current = policy
    defer { current = before }
    return body()
  }
}

extension SystemScript {
  /// Runs `body` while a system call is refused.
  static func refusing<Result>(
    _ call: SystemCall, with error: Int32, times: Int = .max, after spared: Int = 0, _ body: () -> Result
  ) -> Result {
    refuse(call, with: error, times: times, after: spared)
    defer { clear() }
    return body()
  }
}

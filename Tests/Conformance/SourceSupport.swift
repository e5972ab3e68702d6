// What the tests of sources, data and I/O share: pairs of descriptors, temporary files, and a record
// of the calls of a handler.

import Glibc
import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

/// The two ends of a pipe or of a pair of sockets, each closed at most once.
final class Ends: Sendable {
  /// The end that is read: a pipe's read end, or the first of two sockets.
  let near: Int32
  /// The end that is written: a pipe's write end, or the second of two sockets.
  let far: Int32
  private let open = Shared((near: true, far: true))

  init(_ pair: [Int32]) {
    near = pair[0]
    far = pair[1]
  }

  func closeNear() {
    open.change {
      if $0.near { close(near) }
      $0.near = false
    }
  }

  func closeFar() {
    open.change {
      if $0.far { close(far) }
      $0.far = false
    }
  }

  /// Writes so many bytes, whose values count up, at the far end. False if they did not fit.
  @discardableResult
  func send(_ count: Int = 1) -> Bool {
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
    return write(far, bytes, count) == count
  }

  /// Reads up to so many bytes at the near end.
  @discardableResult
  func receive(_ limit: Int = 1) -> Int { take(limit, from: near) }
}

/// Reads up to so many bytes; negative after a failure.
@discardableResult
func take(_ limit: Int, from descriptor: Int32) -> Int {
  var buffer = [UInt8](repeating: 0, count: limit)
  return read(descriptor, &buffer, limit)
}

/// Makes a pipe for the body and closes what is left of it afterwards.
func withPipe<Result>(_ body: (Ends) throws -> Result) throws -> Result {
  var pair: [Int32] = [-1, -1]
  try #require(pipe(&pair) == 0)
  return try withEnds(pair, body)
}

/// Makes a connected pair of sockets for the body and closes what is left of it afterwards.
func withSockets<Result>(datagrams: Bool = false, _ body: (Ends) throws -> Result) throws -> Result {
  var pair: [Int32] = [-1, -1]
  let type = Int32((datagrams ? SOCK_DGRAM : SOCK_STREAM).rawValue)
  try #require(socketpair(AF_UNIX, type, 0, &pair) == 0)
  return try withEnds(pair, body)
}

private func withEnds<Result>(_ pair: [Int32], _ body: (Ends) throws -> Result) rethrows -> Result {
  let ends = Ends(pair)
  defer {
    ends.closeNear()
    ends.closeFar()
  }
  return try body(ends)
}

/// Makes an empty directory for the body and removes it, with the files in it, afterwards.
func withDirectory<Result>(_ body: (String) throws -> Result) throws -> Result {
  var template = Array("/tmp/conformance.XXXXXX".utf8CString)
  try #require(mkdtemp(&template) != nil)
  let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  defer {
    for name in names(in: path) { unlink(path + "/" + name) }
    rmdir(path)
  }
  return try body(path)
}

/// Makes a file with these bytes, open for reading and writing at its beginning, for the body.
func withFile<Result>(_ bytes: [UInt8] = [], _ body: (Int32, String) throws -> Result) throws -> Result {
  try withDirectory { directory in
    let path = directory + "/file"
    let descriptor = open(path, O_RDWR | O_CREAT, 0o600)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    try #require(write(descriptor, bytes, bytes.count) == bytes.count)
    try #require(lseek(descriptor, 0, SEEK_SET) == 0)
    return try body(descriptor, path)
  }
}

/// The names in a directory, without the two that every directory has.
func names(in path: String) -> [String] {
  guard let directory = opendir(path) else { return [] }
  defer { closedir(directory) }
  var names = [String]()
  while let entry = readdir(directory) {
    let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
      pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
    }
    if name != "." && name != ".." { names.append(name) }
  }
  return names
}

/// How many descriptors the process has open.
func openDescriptors() -> Int { names(in: "/proc/self/fd").count }

/// Whether calls on the descriptor do not block.
func isNonBlocking(_ descriptor: Int32) -> Bool { fcntl(descriptor, F_GETFL) & O_NONBLOCK != 0 }

func makeNonBlocking(_ descriptor: Int32) {
  _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
}

/// The data of each call of an event handler, and a signal for each call.
final class Calls: Sendable {
  private let seen = Shared([UInt]())
  private let came = DispatchSemaphore(value: 0)

  var data: [UInt] { seen.value }
  var count: Int { seen.value.count }
  var sum: UInt { seen.value.reduce(0, &+) }

  func record(_ data: UInt) {
    seen.change { $0.append(data) }
    came.signal()
  }

  /// Whether one more call came in time; each call satisfies one caller.
  func comes() -> Bool { came.comes() }

  /// Whether the data of all calls add up to this in time.
  func reaches(_ sum: UInt) -> Bool {
    while self.sum < sum {
      guard came.comes() else { return false }
    }
    return true
  }
}

/// The object behind a source. It is Sendable; the protocols' existential types are not.
func object(_ source: any DispatchSourceProtocol) -> DispatchSource {
  source as! DispatchSource
}

/// Cancels an active source, not cancelled yet, and waits for its cancel handler, after which nothing of
/// it runs and its descriptor may be closed.
@discardableResult
func retire(_ source: any DispatchSourceProtocol) -> Bool {
  let done = DispatchSemaphore(value: 0)
  source.setCancelHandler { done.signal() }
  source.cancel()
  return done.comes()
}

/// Sets a cancel handler before the source is activated. For sources whose handlers cancel them.
func cancellation(of source: any DispatchSourceProtocol) -> DispatchSemaphore {
  let done = DispatchSemaphore(value: 0)
  source.setCancelHandler { done.signal() }
  return done
}

/// Gives events that must NOT be delivered time to arrive: other descriptors and other queues
/// have theirs delivered meanwhile. Returns false if those got lost, or if there is no pipe to be had.
func kernelHadItsTurn() -> Bool {
  let turn = try? withPipe { pipe in
    let calls = Calls()
    let source = DispatchSource.makeReadSource(fileDescriptor: pipe.near)
    source.setEventHandler {
      pipe.receive()
      calls.record(1)
    }
    source.activate()
    defer { retire(source) }
    for _ in 0..<5 {
      pipe.send()
      guard calls.comes() else { return false }
    }
    return othersHadTheirTurn()
  }
  return turn ?? false
}

/// Waits until an instant has passed. For what is measured against the clock; not a way to wait for
/// another thread.
func pass(_ instant: DispatchTime) {
  let never = DispatchSemaphore(value: 0)
  while DispatchTime.now() < instant { _ = never.wait(timeout: instant) }
}

/// The nanoseconds from one instant to a later one.
func nanoseconds(from start: DispatchTime, to end: DispatchTime) -> Int {
  Int(end.uptimeNanoseconds) - Int(start.uptimeNanoseconds)
}

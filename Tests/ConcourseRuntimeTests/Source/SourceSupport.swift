// Shared by the tests of sources.

import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

/// The data of each call of a source's handler.
final class Reports: Sendable {
  private let calls = Shared<[UInt]>([])
  private let came = DispatchSemaphore(value: 0)

  /// Call in the event handler, with its data.
  func note(_ data: UInt) {
    calls.change { $0.append(data) }
    came.signal()
  }

  var all: [UInt] { calls.value }

  /// All bits.
  var union: UInt { all.reduce(0, |) }

  func forget() { calls.change { $0 = [] } }

  /// Waits until all of `bits` have been reported.
  func comes(_ bits: UInt) -> Bool {
    while union & bits != bits {
      guard ConcourseRuntimeTests.comes(came) else { return false }
    }
    return true
  }
}

/// The descriptor of a file of memfd_create, which the module of glibc does not declare.
func memoryFile(isSealable: Bool = false) -> Int32 {
  typealias Create = @convention(c) (UnsafePointer<CChar>, UInt32) -> Int32
  // SAFETY: the type that sys/mman.h declares. 1: MFD_CLOEXEC.
  return unsafeBitCast(dlsym(nil, "memfd_create"), to: Create.self)("file", isSealable ? 3 : 1)
}

/// A source with its own queue that records its reports.
final class WatchedSource {
  let source: DispatchSource
  let reports = Reports()
  let queue = DispatchQueue(label: "watched")
  private var isCancelled = false

  init(_ source: DispatchSource) {
    self.source = source
    source.setTarget(queue: queue)
    // SAFETY: unowned, since the handler would keep the source; it is cancelled before its release.
    source.setEventHandler { [unowned source, reports] in reports.note(source.core.data) }
    source.activate()
  }

  /// Watches a file. Where it must be polled, that happens each 40 ms.
  static func onFile(
    _ descriptor: Int32, _ mask: DispatchSource.FileSystemEvent = .all, hub: InotifyHub = .shared
  ) throws -> WatchedSource {
    let backend = try FileSystemBackend.make(
      descriptor: descriptor, mask: mask, hub: hub, pause: 40_000_000
    ).get()
    return WatchedSource(
      DispatchSource(
        SourceCore(
          kind: .fileSystemObject, handle: UInt(descriptor), mask: mask.rawValue, merging: .or, target: nil,
          backend: backend)))
  }

  /// Cancels and waits for the cancel handler.
  func cancel() {
    guard !isCancelled else { return }
    isCancelled = true
    let cancelled = DispatchSemaphore(value: 0)
    source.setCancelHandler { cancelled.signal() }
    source.cancel()
    #expect(comes(cancelled))
  }

  deinit { cancel() }

  /// Expects that `action` makes the source report `events`, and nothing else but what may come of the action
  /// before.
  func expects(
    _ events: DispatchSource.FileSystemEvent, afterwards late: DispatchSource.FileSystemEvent = [],
    sourceLocation: SourceLocation = #_sourceLocation, _ action: () -> Void
  ) {
    expects(bits: events.rawValue, besides: late.rawValue, sourceLocation, action)
  }

  /// Likewise.
  func expects(
    _ events: DispatchSource.ProcessEvent, sourceLocation: SourceLocation = #_sourceLocation,
    _ action: () -> Void
  ) {
    expects(bits: events.rawValue, sourceLocation, action)
  }

  /// Likewise.
  func expects(
    _ events: DispatchSource.MemoryPressureEvent, sourceLocation: SourceLocation = #_sourceLocation,
    _ action: () -> Void
  ) {
    expects(bits: events.rawValue, sourceLocation, action)
  }

  private func expects(
    bits: UInt, besides: UInt = 0, _ sourceLocation: SourceLocation, _ action: () -> Void
  ) {
    reports.forget()
    action()
    let came = reports.comes(bits)
    let all = reports.all.map { String($0, radix: 16) }
    #expect(
      came && reports.union & ~besides == bits, "\(all) for \(String(bits, radix: 16))",
      sourceLocation: sourceLocation)
  }
}

/// A read source that reads what it reports, and records the reports.
final class ReadingSource {
  let descriptor: Int32
  let source: DispatchSource
  private(set) weak var backend: ReadBackend?
  let reports = Reports()
  private let bytesRead = Tally()

  /// - Parameter descriptor: where inotify does not watch it, the source looks each 40 ms.
  init(_ descriptor: Int32, hub: InotifyHub) {
    self.descriptor = descriptor
    let backend = ReadBackend(descriptor, hub: hub, pause: 40_000_000)
    self.backend = backend
    source = DispatchSource(
      SourceCore(
        kind: .read, handle: UInt(descriptor), mask: 0, merging: .replace,
        target: DispatchQueue(label: "reading"), backend: backend))
    // SAFETY: unowned, since the handler would keep the source; it is cancelled before its release.
    source.setEventHandler { [unowned source, reports, bytesRead] in
      let data = source.core.data
      var buffer = [UInt8](repeating: 0, count: Int(data))
      bytesRead.add(read(descriptor, &buffer, buffer.count))
      reports.note(data)
    }
    source.activate()
  }

  /// Waits for as many reports in all as `expected` has, and for nothing else.
  func reports(_ expected: [UInt], sourceLocation: SourceLocation = #_sourceLocation) {
    let came = awaitValue { reports.all.count >= expected.count }
    #expect(came && reports.all == expected, sourceLocation: sourceLocation)
    #expect(bytesRead.value == Int(expected.reduce(0, +)), sourceLocation: sourceLocation)
  }

  /// Cancels and waits for the cancel handler.
  func cancel() {
    let cancelled = DispatchSemaphore(value: 0)
    source.setCancelHandler { cancelled.signal() }
    source.cancel()
    #expect(comes(cancelled))
  }
}

/// Unblocks a signal on the calling thread: a thread that a test makes inherits the mask of its maker.
func unblock(_ signal: Int32) {
  var set = sigset_t()
  sigemptyset(&set)
  sigaddset(&set, signal)
  pthread_sigmask(SIG_UNBLOCK, &set, nil)
}

/// A directory that is removed after the test, with its contents.
final class TemporaryDirectory {
  let path: String

  init() {
    var template = Array("\(P_tmpdir)/concourse-source-XXXXXX".utf8CString)
    // SAFETY: `mkdtemp` rewrites the six letters in place; the name is copied before the closure returns.
    path = template.withUnsafeMutableBufferPointer { String(cString: mkdtemp($0.baseAddress!)) }
  }

  deinit { remove(path) }

  private func remove(_ path: String) {
    if let directory = opendir(path) {
      while let entry = readdir(directory) {
        // SAFETY: the entry is alive until the next call of `readdir`; the name is copied.
        let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
          String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        if name != "." && name != ".." { remove(path + "/" + name) }
      }
      closedir(directory)
      rmdir(path)
    } else {
      unlink(path)
    }
  }

  func file(_ name: String) -> String { path + "/" + name }

  /// Opens a file for reading and writing, and creates it if necessary.
  func open(_ name: String) -> Int32 {
    let descriptor = Glibc.open(file(name), O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    #expect(descriptor >= 0)
    return descriptor
  }

  /// Creates a directory and opens it.
  func openDirectory(_ name: String) -> Int32 {
    mkdir(file(name), 0o700)
    let descriptor = Glibc.open(file(name), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    #expect(descriptor >= 0)
    return descriptor
  }

  /// Writes a file and creates its directories, replacing an existing file.
  func write(_ name: String, _ text: String) {
    for (index, letter) in name.enumerated() where letter == "/" {
      mkdir(file(String(name.prefix(index))), 0o700)
    }
    let descriptor = Glibc.open(file(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    #expect(Glibc.write(descriptor, text, text.utf8.count) == text.utf8.count)
    close(descriptor)
  }
}

/// A shell that runs a script; it reads what the test writes, and ends at the latest with this object.
final class Child {
  let identifier: pid_t
  /// Connected to its standard input and output.
  private let channel: Int32
  private var isReaped = false

  init(_ script: String) {
    var ends: [Int32] = [0, 0]
    #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_adddup2(&actions, ends[1], 0)
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
    var identifier: pid_t = 0
    let arguments = ["sh", "-c", script].map { word in word.withCString { strdup($0) } } + [nil]
    let failure = posix_spawn(&identifier, "/bin/sh", &actions, nil, arguments, environ)
    #expect(failure == 0)
    for argument in arguments { free(argument) }
    posix_spawn_file_actions_destroy(&actions)
    close(ends[1])
    self.identifier = identifier
    channel = ends[0]
  }

  /// A child that has ended and waits to be reaped.
  static func zombie() -> Child {
    let child = Child("exit 3")
    var found = siginfo_t()
    #expect(waitid(P_PID, id_t(child.identifier), &found, WEXITED | WNOWAIT) == 0)
    return child
  }

  func tell(_ text: String) { #expect(write(channel, text, text.utf8.count) == text.utf8.count) }

  /// Ends the child's input.
  func finish() { shutdown(channel, Int32(SHUT_WR)) }

  /// A number that the child prints.
  func readNumber() -> Int32 {
    var text = ""
    var byte = UInt8(0)
    while read(channel, &byte, 1) == 1, byte != UInt8(ascii: "\n") {
      text.append(Character(Unicode.Scalar(byte)))
    }
    return Int32(text) ?? -1
  }

  /// Reaps the child if it has ended: the exit code, or nil.
  func reapNow() -> Int32? {
    var status: Int32 = 0
    guard waitpid(identifier, &status, WNOHANG) == identifier else { return nil }
    isReaped = true
    return (status >> 8) & 0xff
  }

  func reap() {
    var status: Int32 = 0
    #expect(waitpid(identifier, &status, 0) == identifier)
    isReaped = true
  }

  deinit {
    close(channel)
    if !isReaped {
      kill(identifier, SIGKILL)
      waitpid(identifier, nil, 0)
    }
  }
}

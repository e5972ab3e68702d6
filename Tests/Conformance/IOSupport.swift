// What the tests of DispatchIO share: a record of an operation's handler calls, and of the cleanup of a
// channel.

import Glibc
import Testing

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

/// The calls of one operation's handler.
final class Operation: Sendable {
  struct Step: Sendable {
    let done: Bool
    /// The bytes, or nil if there was no data object.
    let bytes: [UInt8]?
    let error: Int32
  }

  private let seen = Shared([Step]())
  private let came = DispatchSemaphore(value: 0)
  private let finished = DispatchSemaphore(value: 0)
  private let overlap = Overlap()

  var steps: [Step] { seen.value }
  /// All bytes delivered, in order.
  var bytes: [UInt8] { steps.flatMap { $0.bytes ?? [] } }
  /// The steps that carry bytes.
  var pieces: [[UInt8]] { steps.compactMap(\.bytes).filter { !$0.isEmpty } }
  var error: Int32? { steps.last?.error }
  /// Exactly one call has done set, it is the last one, and no two overlapped.
  var isWellFormed: Bool {
    steps.last?.done == true && steps.dropLast().allSatisfy { !$0.done && $0.error == 0 }
      && overlap.peak == 1
  }

  func record(_ done: Bool, _ data: DispatchData?, _ error: Int32) {
    overlap.visit()
    seen.change { $0.append(Step(done: done, bytes: data.map { Array($0) }, error: error)) }
    came.signal()
    if done { finished.signal() }
  }

  /// Whether one more call came in time.
  func steps(_ count: Int) -> Bool {
    while steps.count < count { guard came.comes() else { return false } }
    return true
  }

  /// Whether the call with done set came in time; to be asked once.
  func ends() -> Bool { finished.comes() }
}

/// The calls of a channel's cleanup handler.
final class Cleanup: Sendable {
  private let seen = Shared([Int32]())
  private let came = DispatchSemaphore(value: 0)

  var errors: [Int32] { seen.value }

  func record(_ error: Int32) {
    seen.change { $0.append(error) }
    came.signal()
  }

  func comes() -> Bool { came.comes() }
}

/// Makes a channel on the descriptor for the body, closes it, and waits for its cleanup without error.
func withChannel(
  _ type: DispatchIO.StreamType, _ descriptor: Int32, on queue: DispatchQueue,
  _ body: (DispatchIO) throws -> Void
) rethrows {
  let cleanup = Cleanup()
  let channel = DispatchIO(type: type, fileDescriptor: descriptor, queue: queue) { cleanup.record($0) }
  defer {
    channel.close()
    #expect(cleanup.comes())
    #expect(cleanup.errors == [0])
  }
  try body(channel)
}

extension DispatchIO {
  /// Starts a read whose handler is recorded.
  func read(offset: off_t = 0, length: Int, on queue: DispatchQueue) -> Operation {
    let operation = Operation()
    read(offset: offset, length: length, queue: queue) { done, data, error in
      operation.record(done, data, error)
    }
    return operation
  }

  /// Starts a write whose handler is recorded.
  func write(offset: off_t = 0, _ bytes: [UInt8], on queue: DispatchQueue) -> Operation {
    let operation = Operation()
    write(offset: offset, data: data(bytes), queue: queue) { done, data, error in
      operation.record(done, data, error)
    }
    return operation
  }
}

/// The contents of a file.
func contents(of path: String) -> [UInt8] {
  let descriptor = open(path, O_RDONLY)
  guard descriptor >= 0 else { return [] }
  defer { close(descriptor) }
  var bytes = [UInt8]()
  var buffer = [UInt8](repeating: 0, count: 65_536)
  while true {
    let count = read(descriptor, &buffer, buffer.count)
    guard count > 0 else { return bytes }
    bytes += buffer[0..<count]
  }
}

/// `count` bytes that count up.
func counting(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0) } }

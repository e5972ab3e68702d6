internal import Glibc

/// Bytes to move with one system call.
struct Transfer {
  enum Outcome {
    case read(DispatchData)
    case wrote(Int)
    case endOfFile
    /// Nothing can be moved now.
    case wouldBlock
    case failure(Int32)
  }

  /// The offset that means the file's own position, which the transfer then moves.
  static let filePosition = -1

  /// The most bytes to move.
  let count: Int
  /// The place in the file.
  let offset: Int
  /// What to write, from its beginning; nil for a read.
  let data: DispatchData?

  /// How many pieces of memory one call writes.
  private static let mostVectors = 64
  /// How much one call writes to a file: an operation can be stopped between calls.
  private static let largestWrite = 4 << 20

  /// Moves bytes with one system call.
  /// - Returns: nil if the ring has accepted the request; `client` then gets the outcome.
  func perform(on file: OpenFile, for client: some TransferClient) -> Outcome? {
    if let data { return write(data, to: file, client) }
    switch file.road {
    case .readiness:
      guard let buffer = ReadBuffer.make(min(count, ReadBuffer.small)) else { return .failure(ENOMEM) }
      return buffer.outcome(of: System.read(file.descriptor, buffer.memory, buffer.capacity, offset))
    case .file:
      guard let buffer = ReadBuffer.make(min(count, ReadBuffer.large), forFile: true) else {
        return .failure(ENOMEM)
      }
      return readFile(file.descriptor, into: buffer, client)
    }
  }

  private func readFile(
    _ descriptor: Int32, into buffer: ReadBuffer, _ client: some TransferClient
  ) -> Outcome? {
    let policy = FilePolicy.current
    var takesNoTime = false
    if policy != .ring {
      let cached = System.readCached(descriptor, buffer.memory, buffer.capacity, offset)
      if cached > 0 { return buffer.outcome(of: cached) }
      // A negative result: the bytes are not in memory, or the file system cannot tell. So it is with tmpfs, whose bytes
      // are all in memory. 0: the end, where a plain read takes no time, or in Linux 5.9 and 5.10 bytes that are not in
      // memory.
      takesNoTime = cached == 0 || cached == -Int(EOPNOTSUPP) && System.hasSeals(descriptor)
    }
    if policy != .threads, !takesNoTime, let ring = CompletionRing.current {
      switch ring.submit(
        write: false, descriptor, buffer.memory, buffer.capacity, offset: offset,
        for: RingRequest(.read(buffer), client))
      {
      case .accepted: return nil
      case .refused: break
      }
    }
    var result = 0
    BlockedSection.run(.reading, nil) {
      result = System.read(descriptor, buffer.memory, buffer.capacity, offset)
    }
    return buffer.outcome(of: result)
  }

  private func write(
    _ data: DispatchData, to file: OpenFile, _ client: some TransferClient
  ) -> Outcome? {
    let count = min(count, Self.largestWrite)
    if file.road == .readiness { return .wrote(result: writeNow(data, count, to: file)) }
    if FilePolicy.current == .ring, let ring = CompletionRing.current {
      // Only the first region; the request keeps the data.
      let region = data.region(location: 0).data
      let length = min(count, region.count)
      let position = offset == Self.filePosition ? System.position(of: file.descriptor) : nil
      let submission = region.object.region.baseAddress.map {
        ring.submit(
          write: true, file.descriptor, $0, length, offset: offset,
          for: RingRequest(.write(region, count: length, file.descriptor, at: position), client))
      }
      switch submission {
      case .accepted?: return nil
      case .refused?, nil: break
      }
    }
    var result = 0
    BlockedSection.run(.writing, nil) { result = writeNow(data, count, to: file) }
    return .wrote(result: result)
  }

  private func writeNow(_ data: DispatchData, _ count: Int, to file: OpenFile) -> Int {
    withUnsafeTemporaryAllocation(of: iovec.self, capacity: Self.mostVectors) { vectors in
      var used = 0
      var left = count
      data.object.visitBytes { bytes in
        let length = min(bytes.count, left)
        vectors[used] = iovec(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: length)
        used += 1
        left -= length
        return left > 0 && used < Self.mostVectors
      }
      return System.write(
        file.descriptor, UnsafeMutableBufferPointer(rebasing: vectors[..<used]), offset)
    }
  }
}

/// Receives the outcome of a request to the ring.
protocol TransferClient: AnyObject, Sendable {
  /// Called on a thread that polls, with no lock held.
  func ringDidTransfer(_ outcome: Transfer.Outcome)
}

/// How files are read and written, as `CONCOURSE_IO` says.
enum FilePolicy: UInt8 {
  /// Reads take what the kernel has in memory, then use the ring. Writes block a worker.
  case automatic
  case ring, threads

  private static let inForce = Atomic<UInt8>(fromEnvironment.rawValue)

  /// The policy in force; tests set it.
  static var current: FilePolicy {
    // ORDERING: relaxed, both; a setting, which publishes nothing.
    get { FilePolicy(rawValue: inForce.load(ordering: .relaxed))! }
    set { inForce.store(newValue.rawValue, ordering: .relaxed) }
  }

  private static var fromEnvironment: FilePolicy {
    switch Process.environment("CONCOURSE_IO") {
    case nil, "auto", "": return .automatic
    case "uring": return .ring
    case "threads": return .threads
    case let other?:
      Trap.warn("CONCOURSE_IO=\(other) is neither auto, uring nor threads; going on with auto")
      return .automatic
    }
  }
}

extension Transfer.Outcome {
  /// The outcome of a write with this result.
  static func wrote(result: Int) -> Self {
    // A write of no bytes without an error is retried later.
    if result == 0 { return .wouldBlock }
    return result > 0 ? .wrote(result) : .failed(Int32(-result))
  }

  fileprivate static func failed(_ error: Int32) -> Self {
    error == EAGAIN || error == EWOULDBLOCK ? .wouldBlock : .failure(error)
  }
}

/// A request to the ring, and the memory that it lends the kernel. The ring retains it until the kernel has carried it
/// out.
private final class RingRequest: RingClient {
  enum Loan {
    case read(ReadBuffer)
    /// A stream's write has the file's position before it.
    case write(DispatchData, count: Int, _ descriptor: Int32, at: Int?)
  }

  private let loan: Loan
  private let client: any TransferClient

  init(_ loan: Loan, _ client: some TransferClient) {
    self.loan = loan
    self.client = client
  }

  func ringDidComplete(_ result: Int) {
    // Interrupted, or cancelled because the submitting thread has ended: the operation retries.
    let isToRepeat = result == -Int(EINTR) || result == -Int(ECANCELED)
    let result = isToRepeat ? -Int(EAGAIN) : result
    switch loan {
    case .read(let buffer): client.ringDidTransfer(buffer.outcome(of: result))
    case .write(_, let count, let descriptor, let position):
      if let position, result > 0 && result < count { Self.advance(descriptor, from: position, by: result) }
      client.ringDidTransfer(.wrote(result: result))
    }
  }

  /// Moves a file's position past what was written, unless it has moved. The kernel leaves it where it was if it has
  /// written a part and could not write the rest, as on a full disk. The next write would replace that part. A file that
  /// is appended to was written at its end.
  private static func advance(_ descriptor: Int32, from position: Int, by count: Int) {
    // Another call on the descriptor may be under way, and have the position locked.
    BlockedSection.run {
      guard position >= 0, System.position(of: descriptor) == position else { return }
      var (status, flags) = (stat(), System.flags(of: descriptor))
      let isAppended = flags >= 0 && Int32(flags) & O_APPEND != 0
      guard !isAppended || System.status(of: descriptor, &status) == 0 else { return }
      _ = System.setPosition(of: descriptor, to: isAppended ? Int(status.st_size) : position + count)
    }
  }
}

// SAFETY: everything is constant; the kernel owns the buffer until the request is complete.
extension RingRequest: @unchecked Sendable {}

// MARK: - Memory to read into

/// Memory to read into, which becomes data without being copied.
///
/// Large buffers are used again: fresh pages, cleared by the kernel, cost as much as reading a cached file does.
// SAFETY: the holder of the value owns the memory, and passes both on.
struct ReadBuffer: @unchecked Sendable {
  /// The most to read at once from a file…
  static let large = 1 << 20
  /// …and from a pipe or socket.
  static let small = 64 << 10
  /// A request for at least this much gets a large buffer. Data of at least this much stays in it; less is copied out.
  private static let worthLarge = large / 4
  /// The alignment of memory that a file may be read into without the kernel's cache (`O_DIRECT`)…
  fileprivate static let page = 4096
  /// …and what the length of such a read is divisible by.
  private static let sector = 512

  let memory: UnsafeMutableRawPointer
  /// How much may be read into it.
  let capacity: Int
  private let isLarge: Bool

  /// A buffer for at most `wanted` bytes; nil when the system has no memory.
  /// - Parameter forFile: whether memory for whole sectors must be aligned.
  static func make(_ wanted: Int, forFile: Bool = false) -> ReadBuffer? {
    if wanted >= worthLarge {
      guard let memory = LargeBuffers.take() else { return nil }
      return ReadBuffer(memory: memory, capacity: min(wanted, large), isLarge: true)
    }
    // Not aligned_alloc: the length need not be a multiple of the alignment.
    var memory: UnsafeMutableRawPointer?
    if !forFile || !wanted.isMultiple(of: sector) {
      memory = malloc(wanted)
    } else if posix_memalign(&memory, page, wanted) != 0 {
      return nil
    }
    guard let memory else { return nil }
    return ReadBuffer(memory: memory, capacity: wanted, isLarge: false)
  }

  /// The outcome of a read with this result. Consumes the buffer.
  func outcome(of result: Int) -> Transfer.Outcome {
    if result > 0 { return .read(data(result)) }
    if isLarge { LargeBuffers.put(memory) } else { free(memory) }
    return result == 0 ? .endOfFile : .failed(Int32(-result))
  }

  /// The first `count` bytes as data, which owns the memory from now on.
  private func data(_ count: Int) -> DispatchData {
    guard isLarge else {
      // If shrinking fails, the memory stays valid.
      let fitting = count < capacity ? realloc(memory, count) ?? memory : memory
      return DispatchData(
        bytesNoCopy: UnsafeRawBufferPointer(start: fitting, count: count), deallocator: .free)
    }
    // A few bytes are copied, so that they do not keep a large buffer.
    if count < Self.worthLarge, let copy = malloc(count) {
      copy.copyMemory(from: memory, byteCount: count)
      LargeBuffers.put(memory)
      return DispatchData(bytesNoCopy: UnsafeRawBufferPointer(start: copy, count: count), deallocator: .free)
    }
    return DispatchData(object: LargeDataBuffer(memory, count: count))
  }
}

/// Data in one of the large buffers.
// SAFETY: as its superclass; the address is constant.
private final class LargeDataBuffer: DataBuffer, @unchecked Sendable {
  private let memory: UnsafeMutableRawPointer

  init(_ memory: UnsafeMutableRawPointer, count: Int) {
    self.memory = memory
    super.init(adopting: UnsafeRawBufferPointer(start: memory, count: count), deallocator: nil)
  }

  deinit { LargeBuffers.put(memory) }
}

/// The large buffers that are not in use.
private enum LargeBuffers {
  /// How many are kept: as many as a reader and an equally fast handler use at a time.
  private static let limit = 8
  private static let lock = Lock(.largeBuffers)
  // SAFETY: GUARDED BY `lock`.
  private nonisolated(unsafe) static var kept: [UnsafeMutableRawPointer] = []

  static func take() -> UnsafeMutableRawPointer? {
    if let memory = lock.withLock({ kept.popLast() }) { return memory }
    return aligned_alloc(ReadBuffer.page, ReadBuffer.large)
  }

  static func put(_ memory: UnsafeMutableRawPointer) {
    let isKept = lock.withLock { () -> Bool in
      guard kept.count < limit else { return false }
      kept.append(memory)
      return true
    }
    if !isKept { free(memory) }
  }
}

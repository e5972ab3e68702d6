internal import CConcourse
internal import Glibc

/// One step of an operation: the system call that moves bytes.
enum FileTransfer {
  enum Outcome {
    case read(DispatchData)
    case wrote(Int)
    case endOfFile
    /// Nothing to be had without waiting.
    case wouldBlock
    case failure(Int32)
    /// The ring has the request: its client will be told.
    case pending
  }

  /// How many pieces of memory one call writes.
  private static let pieces = 64
  /// How much one call writes to a file: between calls an operation can be stopped.
  private static let largestWrite = 4 << 20

  /// Reads up to `count` bytes.
  /// - Parameters:
  ///   - offset: the place in the file, or -1 for its own position.
  ///   - request: what the ring is asked for, if it comes to that.
  static func read(_ file: OpenFile, _ count: Int, offset: Int, request: RingRequest) -> Outcome {
    switch file.road {
    case .readiness:
      guard let buffer = ReadBuffer.make(min(count, 64 << 10)) else { return .failure(ENOMEM) }
      return finish(buffer, readNow(file, buffer, offset))
    case .file:
      guard let buffer = ReadBuffer.make(min(count, ReadBuffer.large)) else { return .failure(ENOMEM) }
      return readFile(file, buffer, offset, request)
    }
  }

  private static func readFile(
    _ file: OpenFile, _ buffer: ReadBuffer, _ offset: Int, _ request: RingRequest
  ) -> Outcome {
    let policy = FilePolicy.current
    if policy != .ring {
      let cached = System.call(.read) {
        concourse_read_cached(file.descriptor, buffer.memory, UInt64(buffer.capacity), Int64(offset))
      }
      if cached >= 0 { return finish(buffer, cached) }
      // Not in memory, or a file system that cannot tell.
    }
    if policy != .threads, let ring = CompletionRing.current {
      request.begin(.read(buffer))
      switch ring.submit(
        write: false, file.descriptor, buffer.memory, buffer.capacity, offset: offset, for: request)
      {
      case .accepted: return .pending
      case .refused: request.forget()
      }
    }
    var result = 0
    BlockedSection.run { result = readNow(file, buffer, offset) }
    return finish(buffer, result)
  }

  private static func readNow(_ file: OpenFile, _ buffer: ReadBuffer, _ offset: Int) -> Int {
    System.call(.read) {
      System.result(
        offset < 0
          ? Glibc.read(file.descriptor, buffer.memory, buffer.capacity)
          : pread(file.descriptor, buffer.memory, buffer.capacity, offset))
    }
  }

  /// Makes an outcome of a read's result; the buffer is used up.
  static func finish(_ buffer: ReadBuffer, _ result: Int) -> Outcome {
    if result > 0 { return .read(buffer.data(result)) }
    buffer.discard()
    return result == 0 ? .endOfFile : outcome(ofFailure: Int32(-result))
  }

  /// Writes up to `count` bytes from the beginning of `data`.
  static func write(
    _ file: OpenFile, _ data: DispatchData, _ count: Int, offset: Int, request: RingRequest
  ) -> Outcome {
    let count = min(count, largestWrite)
    if file.road == .readiness { return finishWrite(writeNow(file, data, count, offset)) }
    if FilePolicy.current == .ring, let ring = CompletionRing.current {
      // The first region alone; the request keeps the data.
      let region = data.region(location: 0).data
      let length = min(count, region.count)
      request.begin(.write(region))
      let submission = region.object.region.baseAddress.map {
        ring.submit(write: true, file.descriptor, $0, length, offset: offset, for: request)
      }
      switch submission {
      case .accepted?: return .pending
      case .refused?, nil: request.forget()
      }
    }
    var result = 0
    BlockedSection.run { result = writeNow(file, data, count, offset) }
    return finishWrite(result)
  }

  private static func writeNow(_ file: OpenFile, _ data: DispatchData, _ count: Int, _ offset: Int) -> Int {
    withUnsafeTemporaryAllocation(of: iovec.self, capacity: pieces) { vectors in
      var used = 0
      var left = count
      data.object.visitBytes { bytes in
        let length = min(bytes.count, left)
        vectors[used] = iovec(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: length)
        used += 1
        left -= length
        return left > 0 && used < pieces
      }
      return System.call(.write) {
        System.result(
          offset < 0
            ? writev(file.descriptor, vectors.baseAddress, Int32(used))
            : pwritev(file.descriptor, vectors.baseAddress, Int32(used), offset))
      }
    }
  }

  static func finishWrite(_ result: Int) -> Outcome {
    // A file that takes nothing and names no reason is asked again later.
    if result == 0 { return .wouldBlock }
    return result > 0 ? .wrote(result) : outcome(ofFailure: Int32(-result))
  }

  private static func outcome(ofFailure error: Int32) -> Outcome {
    error == EAGAIN || error == EWOULDBLOCK ? .wouldBlock : .failure(error)
  }
}

/// An operation's one request to the ring, and the memory it lends the kernel.
final class RingRequest: RingClient {
  enum Loan {
    case read(ReadBuffer)
    case write(DispatchData)
  }

  /// OWNED BY the operation's step, or by the completion while the kernel has the request.
  private var loan: Loan?
  /// OWNED BY the same: kept while the kernel has the request.
  private var client: IOOperation?
  private unowned let operation: IOOperation

  init(for operation: IOOperation) { self.operation = operation }

  func begin(_ loan: Loan) {
    self.loan = loan
    client = operation
  }

  /// The kernel did not take it.
  func forget() { (loan, client) = (nil, nil) }

  /// Makes an outcome of the kernel's answer.
  func end(_ result: Int) -> FileTransfer.Outcome {
    defer { forget() }
    switch loan! {
    case .read(let buffer): return FileTransfer.finish(buffer, result)
    case .write: return FileTransfer.finishWrite(result)
    }
  }

  func ringDidComplete(_ result: Int) {
    let operation = client!
    // Interrupted, or called off since the thread that submitted it has ended: it is made again.
    let isToRepeat = result == -Int(EINTR) || result == -Int(ECANCELED)
    operation.didTransfer(end(isToRepeat ? -Int(EAGAIN) : result))
  }
}

// SAFETY: see the owners above; the kernel and the ring's lock order one owner after the other.
extension RingRequest: @unchecked Sendable {}

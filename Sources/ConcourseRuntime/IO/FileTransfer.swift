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
  ///   - operation: whom the ring tells, if it comes to that.
  static func read(_ file: OpenFile, _ count: Int, offset: Int, for operation: IOOperation) -> Outcome {
    switch file.road {
    case .readiness:
      guard let buffer = ReadBuffer.make(min(count, 64 << 10)) else { return .failure(ENOMEM) }
      return finish(buffer, readNow(file, buffer, offset))
    case .file:
      guard let buffer = ReadBuffer.make(min(count, ReadBuffer.large)) else { return .failure(ENOMEM) }
      return readFile(file, buffer, offset, operation)
    }
  }

  private static func readFile(
    _ file: OpenFile, _ buffer: ReadBuffer, _ offset: Int, _ operation: IOOperation
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
      switch ring.submit(
        write: false, file.descriptor, buffer.memory, buffer.capacity, offset: offset,
        for: RingRequest(.read(buffer), operation))
      {
      case .accepted: return .pending
      case .refused: break
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
    _ file: OpenFile, _ data: DispatchData, _ count: Int, offset: Int, for operation: IOOperation
  ) -> Outcome {
    let count = min(count, largestWrite)
    if file.road == .readiness { return finishWrite(writeNow(file, data, count, offset)) }
    if FilePolicy.current == .ring, let ring = CompletionRing.current {
      // The first region alone; the request keeps the data.
      let region = data.region(location: 0).data
      let length = min(count, region.count)
      let submission = region.object.region.baseAddress.map {
        ring.submit(
          write: true, file.descriptor, $0, length, offset: offset,
          for: RingRequest(.write(region), operation))
      }
      switch submission {
      case .accepted?: return .pending
      case .refused?, nil: break
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

/// An operation's request to the ring, and the memory it lends the kernel. The ring keeps it until it is
/// carried out; the operation, which it keeps, does not know it.
final class RingRequest: RingClient {
  enum Loan {
    case read(ReadBuffer)
    case write(DispatchData)
  }

  private let loan: Loan
  private let operation: IOOperation

  init(_ loan: Loan, _ operation: IOOperation) {
    self.loan = loan
    self.operation = operation
  }

  /// Makes an outcome of the kernel's answer.
  private func outcome(of result: Int) -> FileTransfer.Outcome {
    switch loan {
    case .read(let buffer): FileTransfer.finish(buffer, result)
    case .write: FileTransfer.finishWrite(result)
    }
  }

  func ringDidComplete(_ result: Int) {
    // Interrupted, or called off since the thread that submitted it has ended: it is made again.
    let isToRepeat = result == -Int(EINTR) || result == -Int(ECANCELED)
    operation.didTransfer(outcome(of: isToRepeat ? -Int(EAGAIN) : result))
  }
}

// SAFETY: everything is constant; the buffer is the completion's alone.
extension RingRequest: @unchecked Sendable {}

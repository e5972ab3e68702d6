internal import Glibc

/// The memory behind data, and how it is given back. Views and trees keep the buffers that they show alive.
///
/// A buffer made for appending has room after its last byte. An append claims that room first, then writes the claimed
/// bytes, once, before any object shows them. So copies of a value can grow in the same buffer without seeing one
/// another's bytes.
class DataBuffer: DataObject, @unchecked Sendable {  // SAFETY: as for `DataObject`; atomics.
  /// The longest buffer that short appends share, and that a `DataWriter` fills.
  static let largestShared = 64 << 10

  /// nil if a subclass gives the memory back.
  private let deallocator: DispatchData.Deallocator?
  private let capacity: Int
  /// How many bytes, from the start of the buffer, belong to some object.
  private let claimed: Atomic<Int>

  /// Takes over memory.
  init(adopting bytes: UnsafeRawBufferPointer, deallocator: DispatchData.Deallocator?) {
    self.deallocator = deallocator
    capacity = bytes.count
    claimed = Atomic(bytes.count)
    super.init(level: 0, start: bytes.baseAddress, count: bytes.count)
  }

  private init(memory: UnsafeMutableRawPointer, count: Int, capacity: Int) {
    deallocator = .free
    self.capacity = capacity
    claimed = Atomic(count)
    super.init(level: 0, start: memory, count: count)
  }

  deinit {
    deallocator?.release(UnsafeRawBufferPointer(start: start, count: capacity), of: self)
  }

  final override var piece: DataPiece { DataPiece(owner: self, start: start, count: count) }

  /// A buffer of `count` bytes that `fill` writes, with room for more up to `capacity`.
  /// - Returns: nil when the system has no memory.
  static func make(
    count: Int, capacity: Int, fill: (UnsafeMutableRawPointer) -> Void
  ) -> DataBuffer? {
    guard let memory = malloc(capacity) else { return nil }
    fill(memory)
    return DataBuffer(memory: memory, count: count, capacity: capacity)
  }

  /// The one empty buffer.
  static func makeEmpty() -> DataBuffer {
    DataBuffer(adopting: UnsafeRawBufferPointer(start: nil, count: 0), deallocator: .free)
  }

  /// Writes `bytes` at `end` if the claimed part of the buffer ends there and there is room.
  final func extend(from end: UnsafeRawPointer, by bytes: UnsafeRawBufferPointer) -> Bool {
    let offset = end - start!
    guard bytes.count <= capacity - offset else { return false }
    // ORDERING: relaxed; a claim hands out bytes that no thread has touched. What is written there is published with
    // the object that shows it, when that is passed on.
    guard
      claimed.compareExchange(
        expected: offset, desired: offset + bytes.count, ordering: .relaxed
      ).exchanged
    else { return false }
    // SAFETY: a buffer with room was allocated by `make`, and the claimed bytes are this caller's alone.
    UnsafeMutableRawPointer(mutating: end).copyMemory(from: bytes.baseAddress!, byteCount: bytes.count)
    return true
  }
}

extension DispatchData.Deallocator {
  /// Traps for a buffer that could not be given back this way.
  /// - Parameter call: what the client has called.
  func check(
    _ bytes: UnsafeRawBufferPointer, _ call: StaticString = "DispatchData(bytesNoCopy:deallocator: .unmap)"
  ) {
    guard case .unmap = self, bytes.count > 0 else { return }
    let address = UInt(bitPattern: bytes.baseAddress)
    if address % UInt(getpagesize()) != 0 {
      Trap.clientBug(
        608,
        "\(call): the buffer at 0x\(String(address, radix: 16)) does not begin with a page, so mmap did "
          + "not return it")
    }
  }

  /// Gives `bytes` back. Client code runs on its queue, never here.
  /// - Parameter buffer: the object that ends. A queue that has been set as its target replaces the closure's own, which
  ///   otherwise becomes that of the finalizer.
  func release(_ bytes: UnsafeRawBufferPointer, of buffer: DataBuffer? = nil) {
    // SAFETY: no object shows the buffer any more, and the client handed it over for this.
    switch self {
    case .free:
      Glibc.free(UnsafeMutableRawPointer(mutating: bytes.baseAddress))
    case .unmap:
      guard let base = bytes.baseAddress, bytes.count > 0 else { return }
      if munmap(UnsafeMutableRawPointer(mutating: base), bytes.count) != 0 {
        Trap.warn("munmap of a DispatchData's buffer of \(bytes.count) bytes failed: errno \(errno)")
      }
    case .custom(let asked, let block):
      let extras = buffer?.uncountedExtrasIfAny
      let last = extras.map { $0._withUnsafeGuaranteedRef { $0.lastQueue(orElse: asked) } } ?? asked
      let queue = last ?? DispatchQueue.global()
      if queue.hasThread { queue.asyncUnsafe(execute: block) }
    }
  }
}

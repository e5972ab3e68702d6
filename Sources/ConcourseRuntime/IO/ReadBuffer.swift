internal import Glibc

/// Memory to read into, which becomes data without being copied.
///
/// Large buffers are kept and used again: asking the system for fresh pages, and having them cleared,
/// costs as much as reading a cached file does.
// SAFETY: whoever holds the value owns the memory; it goes from hand to hand.
struct ReadBuffer: @unchecked Sendable {
  /// The most that is read at once.
  static let large = 1 << 20

  let memory: UnsafeMutableRawPointer
  /// How much may be read into it.
  let capacity: Int
  private let isLarge: Bool

  /// A buffer for at most `wanted` bytes; nil when the system has no memory.
  static func make(_ wanted: Int) -> ReadBuffer? {
    if wanted >= large / 4 {
      guard let memory = LargeBuffers.take() else { return nil }
      return ReadBuffer(memory: memory, capacity: min(wanted, large), isLarge: true)
    }
    guard let memory = malloc(wanted) else { return nil }
    return ReadBuffer(memory: memory, capacity: wanted, isLarge: false)
  }

  /// The first `count` bytes as data, which owns the memory from now on.
  func data(_ count: Int) -> DispatchData {
    guard isLarge else {
      // Shrinking cannot fail in a way that loses the memory.
      let fitting = count < capacity ? realloc(memory, count) ?? memory : memory
      return DispatchData(
        bytesNoCopy: UnsafeRawBufferPointer(start: fitting, count: count), deallocator: .free)
    }
    // Little in a large buffer: a copy keeps less memory than it would.
    if count < Self.large / 4, let copy = malloc(count) {
      copy.copyMemory(from: memory, byteCount: count)
      discard()
      return DispatchData(bytesNoCopy: UnsafeRawBufferPointer(start: copy, count: count), deallocator: .free)
    }
    return DispatchData(object: LargeDataBuffer(memory, count: count))
  }

  /// Gives the memory back unread.
  func discard() {
    if isLarge { LargeBuffers.put(memory) } else { free(memory) }
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

/// The large buffers that nobody uses at the moment.
private enum LargeBuffers {
  /// So many are kept: what a reader and a handler that works at the same speed have under way.
  private static let limit = 8
  private static let lock = Lock()
  // SAFETY: GUARDED BY `lock`.
  private nonisolated(unsafe) static var kept: [UnsafeMutableRawPointer] = []

  static func take() -> UnsafeMutableRawPointer? {
    if let memory = lock.withLock({ kept.popLast() }) { return memory }
    // Aligned to pages, for files that are read without the kernel's cache.
    return aligned_alloc(4096, ReadBuffer.large)
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

internal import Glibc

/// Data that is made byte by byte, of buffers that grow to a limit and are then left behind as regions, so
/// that nothing is ever copied twice or made much larger than needed.
///
/// When the system has no memory, what is written is dropped, and there is no result.
struct DataWriter: ~Copyable {
  /// How much room one call of `makeRoom` promises.
  static let promise = 8
  /// How long a buffer gets.
  private static let longest = 64 << 10

  private var done = DataObject.empty
  private var buffer: UnsafeMutablePointer<UInt8>?
  private var used = 0
  private var capacity = 0
  /// Whether the system had no memory: whatever else is written is for nothing.
  private(set) var hasFailed = false

  /// - Parameter estimate: how many bytes are going to be written, as far as that is known.
  init(estimate: Int) {
    capacity = min(max(estimate, 0) &+ DataWriter.promise, DataWriter.longest)
    buffer = DataWriter.allocate(capacity)
    if buffer == nil { fail() }
  }

  deinit { free(buffer) }

  /// Makes room for `promise` bytes, or for as many dropped ones.
  @inline(__always)
  mutating func makeRoom() {
    if used > capacity - DataWriter.promise { startBuffer() }
  }

  /// Writes a byte. There must be room for it.
  @inline(__always)
  mutating func put(_ byte: UInt8) {
    // SAFETY: `used` is below `capacity` after `makeRoom`; without a buffer nothing is written.
    buffer?[used] = byte
    used &+= 1
  }

  /// Where to write the next `count` bytes, at most `promise`: all of them, and before anything else is written.
  /// - Returns: nil when the system had no memory.
  @inline(__always)
  mutating func place(for count: Int) -> UnsafeMutablePointer<UInt8>? {
    makeRoom()
    guard let buffer else { return nil }
    defer { used &+= count }
    return buffer + used
  }

  /// The data. Nil if there was no memory for all of it.
  consuming func finish() -> DataObject? {
    leaveBuffer()
    return hasFailed ? nil : done
  }

  private mutating func startBuffer() {
    leaveBuffer()
    guard !hasFailed else { return }
    capacity = DataWriter.longest
    buffer = DataWriter.allocate(capacity)
    if buffer == nil { fail() }
  }

  /// Makes the bytes of the buffer a region of the result.
  private mutating func leaveBuffer() {
    defer { used = 0 }
    guard let full = buffer, used > 0, !hasFailed else { return }
    // What is left over is given back if it is worth the call.
    let kept = used < capacity / 2 ? realloc(full, used)?.assumingMemoryBound(to: UInt8.self) ?? full : full
    let region = DataBuffer(adopting: UnsafeRawBufferPointer(start: kept, count: used), deallocator: .free)
    buffer = nil
    capacity = 0
    let isOwned = isKnownUniquelyReferenced(&done)
    done = DataObject.join(done, isOwned: isOwned, region)
  }

  private mutating func fail() {
    hasFailed = true
    capacity = DataWriter.longest
  }

  private static func allocate(_ capacity: Int) -> UnsafeMutablePointer<UInt8>? {
    malloc(capacity)?.assumingMemoryBound(to: UInt8.self)
  }
}

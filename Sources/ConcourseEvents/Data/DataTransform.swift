internal import Glibc

/// The meaning of the bytes of some data, for `DataObject.transform`.
///
/// Matching C objects: `DISPATCH_DATA_FORMAT_TYPE_…`.
package enum DataFormat: Sendable, CaseIterable {
  /// Bytes that stand for themselves.
  case none
  /// Bytes in groups of five bits, as letters A–Z and digits 2–7.
  case base32
  /// The same with the digits 0–9 and the letters A–V, which sort as the bytes do.
  case base32hex
  /// Bytes in groups of six bits, as letters, digits, `+` and `/`.
  case base64
  /// Text in UTF-8.
  case utf8
  /// Text in UTF-16, the low byte of each unit first.
  case utf16le
  /// Text in UTF-16, the high byte of each unit first.
  case utf16be
  /// Text in the encoding that its byte order mark names; UTF-8 without one. Only for a source.
  case utfAny

  /// Formats of different kinds cannot be converted to one another.
  enum Kind {
    case bytes(BaseCode?)
    case text(TextCode?)
  }

  var kind: Kind {
    switch self {
    case .none: .bytes(nil)
    case .base32: .bytes(.base32)
    case .base32hex: .bytes(.base32hex)
    case .base64: .bytes(.base64)
    case .utf8: .text(.utf8)
    case .utf16le: .text(.utf16(.little))
    case .utf16be: .text(.utf16(.big))
    case .utfAny: .text(nil)
    }
  }
}

extension DataObject {
  /// The same content in another format.
  ///
  /// Converts bytes to base 32 or base 64 and back, and text from each UTF to each, but not bytes to text or back.
  /// Works region by region, without making the data contiguous. O(count).
  ///
  /// - Encoded bytes are written padded and without white space. Decoding needs full groups, the last of them padded if
  ///   necessary. It ignores spaces, tabs and line ends between characters, and bits of the last group that belong to
  ///   no byte; it does not take lower case for upper case.
  /// - Text in UTF-16 is written with a byte order mark, text in UTF-8 without; empty text is empty data in both. One
  ///   mark at the start of the source is not part of the text; further ones are characters.
  /// - `none` from `none`, and well-formed UTF-8 without a mark from UTF-8, give the same object.
  ///
  /// Matching C function: `dispatch_data_create_with_transform`.
  /// - Parameters:
  ///   - data: the data to transform.
  ///   - source: its format.
  ///   - target: the format of the result. Not `utfAny`.
  /// - Returns: nil when the data is malformed, the formats cannot be converted, or the system has no memory.
  package static func transform(
    _ data: DataObject, from source: DataFormat, to target: DataFormat
  ) -> DataObject? {
    switch (source.kind, target.kind) {
    case (.bytes(let source), .bytes(let target)):
      guard let bytes = source.map({ $0.decode(data) }) ?? data else { return nil }
      return target.map { $0.encode(bytes) } ?? bytes
    case (.text(let source), .text(let target?)):
      return TextCode.convert(data, from: source ?? .marked(in: data), to: target)
    case (.text, .text(nil)), (.bytes, .text), (.text, .bytes):
      return nil
    }
  }
}

extension DispatchData {
  /// As `DataObject.transform`.
  package func transformed(from source: DataFormat, to target: DataFormat) -> DispatchData? {
    DataObject.transform(object, from: source, to: target).map { DispatchData(object: $0) }
  }
}

/// Makes data byte by byte. A full buffer becomes a region of the result, so that no byte is copied twice and no
/// buffer is much larger than needed.
///
/// When the system has no memory, further bytes are dropped, and there is no result.
struct DataWriter: ~Copyable {
  /// How much room one call of `makeRoom` promises.
  static let promise = 8
  private var done = DataObject.empty
  private var buffer: UnsafeMutablePointer<UInt8>?
  private var used = 0
  private var capacity = 0
  /// Whether the system had no memory; everything written after that is dropped.
  private(set) var hasFailed = false

  /// - Parameter estimate: about how many bytes will be written.
  init(estimate: Int) {
    capacity = min(max(estimate, 0) &+ DataWriter.promise, DataBuffer.largestShared)
    buffer = DataWriter.allocate(capacity)
    if buffer == nil { fail() }
  }

  deinit { free(buffer) }

  /// Makes room for `promise` bytes, which are dropped after a failure.
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

  /// The place of the next `count` bytes, at most `promise`. The caller must write all of them before it calls again.
  /// - Returns: nil when the system had no memory.
  @inline(__always)
  mutating func place(for count: Int) -> UnsafeMutablePointer<UInt8>? {
    makeRoom()
    guard let buffer else { return nil }
    defer { used &+= count }
    return buffer + used
  }

  /// The data; nil if the system had no memory for all of it.
  consuming func finish() -> DataObject? {
    leaveBuffer()
    return hasFailed ? nil : done
  }

  private mutating func startBuffer() {
    leaveBuffer()
    guard !hasFailed else { return }
    capacity = DataBuffer.largestShared
    buffer = DataWriter.allocate(capacity)
    if buffer == nil { fail() }
  }

  /// Makes the bytes of the buffer a region of the result.
  private mutating func leaveBuffer() {
    defer { used = 0 }
    guard let full = buffer, used > 0, !hasFailed else { return }
    // A half-empty buffer is shrunk; less is not worth the call.
    let kept = used < capacity / 2 ? realloc(full, used)?.assumingMemoryBound(to: UInt8.self) ?? full : full
    let region = DataBuffer(adopting: UnsafeRawBufferPointer(start: kept, count: used), deallocator: .free)
    buffer = nil
    capacity = 0
    let isOwned = isKnownUniquelyReferenced(&done)
    done = DataObject.join(done, isOwned: isOwned, region)
  }

  private mutating func fail() {
    hasFailed = true
    capacity = DataBuffer.largestShared
  }

  private static func allocate(_ capacity: Int) -> UnsafeMutablePointer<UInt8>? {
    malloc(capacity)?.assumingMemoryBound(to: UInt8.self)
  }
}

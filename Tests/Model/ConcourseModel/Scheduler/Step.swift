/// The contents of one word, up to 16 bytes.
struct WordBits: Hashable {
  var low: UInt64
  var high: UInt64

  init(low: UInt64, high: UInt64) {
    self.low = low
    self.high = high
  }

  /// Reads an object of `size` bytes, 16 at most.
  init(_ bytes: UnsafeRawPointer, size: Int) {
    high = 0
    // SAFETY (all loads): `size` is the size of the object that `bytes` points to.
    switch size {
    case 1: low = UInt64(bytes.load(as: UInt8.self))
    case 2: low = UInt64(bytes.loadUnaligned(as: UInt16.self))
    case 4: low = UInt64(bytes.loadUnaligned(as: UInt32.self))
    case 8: low = bytes.loadUnaligned(as: UInt64.self)
    default:
      low = bytes.loadUnaligned(as: UInt64.self)
      high = bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
    }
  }

  init<Representation: BitwiseCopyable>(_ representation: Representation) {
    // SAFETY: the bytes of a plain value, of its own size.
    self = withUnsafeBytes(of: representation) { WordBits($0.baseAddress!, size: $0.count) }
  }

  /// The value of these bits.
  func value<Value: AtomicRepresentable>() -> Value {
    // SAFETY: the bits come from an atomic of the same type.
    withUnsafeBytes(of: (low, high)) {
      Value.decodeAtomicRepresentation($0.loadUnaligned(as: Value.AtomicRepresentation.self))
    }
  }

  var text: String {
    high == 0 ? "0x" + String(low, radix: 16) : "0x" + String(high, radix: 16) + ":" + String(low, radix: 16)
  }
}

/// One step of a coroutine: the operation, the word, and the place in the source.
struct Step {
  enum Kind: String {
    case load, store, update, failedUpdate, wait, failedWait, wake, read, write, look, spawn, pause
  }

  var kind: Kind
  var address: UInt
  var was: WordBits
  var now: WordBits
  var file: StaticString
  var line: UInt

  init(
    _ kind: Kind, at address: UInt, was: WordBits, is now: WordBits, file: StaticString, line: UInt
  ) {
    self.kind = kind
    self.address = address
    self.was = was
    self.now = now
    self.file = file
    self.line = line
  }

  func reading(_ bits: WordBits) -> Step {
    var step = self
    step.was = bits
    step.now = bits
    return step
  }

  /// Whether two such steps on one word commute.
  var isRead: Bool {
    switch kind {
    case .load, .failedUpdate, .failedWait, .read: true
    case .store, .update, .wait, .wake, .write, .look, .spawn, .pause: false
    }
  }

  var text: String {
    let place = "\(file):\(line)"
    switch kind {
    case .load, .failedUpdate, .failedWait: return "\(kind.rawValue) → \(was.text)  \(place)"
    case .store, .update: return "\(kind.rawValue) \(was.text) → \(now.text)  \(place)"
    case .wait, .wake, .read, .write, .look, .spawn, .pause: return "\(kind.rawValue)  \(place)"
    }
  }
}

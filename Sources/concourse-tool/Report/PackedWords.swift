/// The packed words of the engine as this command decodes them. The engine's own types have the tables of the bits; the
/// tests compare both.
struct QueueWord {
  let bits: UInt64
  /// The readers that are counted apart.
  var apart = 0

  var owner: UInt32 { UInt32(truncatingIfNeeded: bits & 0x7F_FFFF) }
  var readers: Int {
    let counted = Int(bits >> 24 & 0xFFF_FFFF)
    return counted < Self.standing / 2 ? counted : max(counted - Self.standing + apart, 0)
  }
  /// What is added to the readers while some are counted apart.
  private static let standing = 1 << 26
  var isPending: Bool { bits >> 52 & 1 != 0 }
  var isEnqueued: Bool { bits >> 53 & 1 != 0 }
  var isSuspended: Bool { bits >> 54 & 1 != 0 }
  var isInactive: Bool { bits >> 55 & 1 != 0 }
  var isNested: Bool { bits >> 57 & 1 != 0 }
  var isNarrow: Bool { bits >> 58 & 1 != 0 }
  var level: Int { Int(bits >> 60 & 7) }

  /// Whether it has items, or may not run them.
  var isOccupied: Bool { owner != 0 || readers > 0 || isPending || isEnqueued || isSuspended || isInactive }
}

/// The indicators of a queue whose readers are counted apart.
enum IndicatorWords {
  private static let stride = 128
  private static let most = 1 << 28

  /// The sum of the indicators at this address; 0 if there are none.
  static func sum(at address: UInt64, in memory: any TargetMemory) -> Int {
    guard address != 0, let number = memory.word(address), (1...1 << 13).contains(number),
      number.nonzeroBitCount == 1, let bytes = memory.bytes(at: address, count: (Int(number) + 1) * stride)
    else { return 0 }
    // A closed indicator has the lowest of all numbers.
    return (1...Int(number)).reduce(0) { sum, place in
      let indicator: Int = bytes.number(at: place * stride) ?? 0
      return (-most...most).contains(indicator) ? sum + indicator : sum
    }
  }
}

struct GroupWord {
  let bits: UInt64

  var entered: Int { Int(bits & 0x7FFF_FFFF) }
  var items: Int { Int(bits >> 32 & 0x7FFF_FFFF) }
}

struct BandWord {
  let bits: UInt64

  var active: Int { Int(bits & 0xFFFF) }
  var searching: Int { Int(bits >> 16 & 0xFFFF) }
  var parked: Int { Int(bits >> 32 & 0xFFFF) }
  var threads: Int { Int(bits >> 48 & 0xFFFF) }
}

/// The kinds of bands, from the most to the least urgent. Each shard of the pool has one of each.
enum BandKind: CaseIterable {
  case normal, utility, background

  /// The kind that serves a level.
  init(level: Int) {
    switch level {
    case 1: self = .background
    case 2: self = .utility
    default: self = .normal
    }
  }
}

/// The kinds of objects, as `ObjectKind` numbers them.
enum QueueKind: UInt8 {
  case global, serial, concurrent, workloop, main, runLoop

  var name: String {
    switch self {
    case .global: "global"
    case .serial: "serial"
    case .concurrent: "concurrent"
    case .workloop: "workloop"
    case .main: "main"
    case .runLoop: "run loop"
    }
  }

  /// Whether it keeps its items itself and runs them on a target.
  var isLane: Bool { self == .serial || self == .concurrent || self == .workloop }
}

/// Names of the quality-of-service levels by their numbers.
enum LevelNames {
  static let all = ["unspecified", "background", "utility", "default", "user-initiated", "user-interactive"]

  static func name(_ level: Int) -> String { all.indices.contains(level) ? all[level] : "level \(level)" }
}

/// The label of a queue: two words and the mark of what they are, a Swift string, the address of a C string, or its
/// characters.
enum LabelWords {
  private static let characters: UInt8 = 2

  static func text(at address: UInt64, in memory: any TargetMemory) -> String? {
    guard let bytes = memory.bytes(at: address, count: 17), let first: UInt64 = bytes.number(at: 0),
      let second: UInt64 = bytes.number(at: 8)
    else { return nil }
    if bytes[16] == characters { return String(decoding: bytes.prefix(16).prefix { $0 != 0 }, as: UTF8.self) }
    // The second word of a C string has no more than the mark of the case.
    if second & 0x0FFF_FFFF_FFFF_FFFF == 0 && second >> 60 < 0xE { return memory.text(at: first) }
    if second >> 61 & 1 != 0 {
      // Up to 15 bytes in the words themselves.
      let count = Int(second >> 56 & 0xF)
      return String(decoding: bytes[..<count], as: UTF8.self)
    }
    let count = Int(first & 0xFFFF_FFFF_FFFF)
    guard count < 1 << 16, let text = memory.bytes(at: second & 0x0FFF_FFFF_FFFF_FFFF + 32, count: count)
    else {
      return nil
    }
    return String(decoding: text, as: UTF8.self)
  }
}

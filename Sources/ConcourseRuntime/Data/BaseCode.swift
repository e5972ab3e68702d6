/// Bytes as printable characters, each of which stands for five or six bits; RFC 4648.
///
/// A group of characters stands for whole bytes. The last group may stand for fewer than the others, and is
/// then filled up with `=`.
struct BaseCode: Sendable {
  /// How many bits a character stands for, and how many characters and bytes a group has.
  ///
  /// There are two shapes. Loops over whole groups are compiled for each: they are inlined where the shape is
  /// a constant.
  struct Shape: Sendable, Equatable {
    let width: Int
    let characters: Int
    let bytes: Int

    static let five = Shape(width: 5, characters: 8, bytes: 5)
    static let six = Shape(width: 6, characters: 4, bytes: 3)

    /// What a character of a full group stands for.
    @inline(__always)
    func value(_ character: Int, of bits: UInt64) -> Int {
      Int(truncatingIfNeeded: bits &>> UInt64(width &* (characters &- 1 &- character))) & (1 &<< width &- 1)
    }
  }

  /// Characters or bytes that have not made a full group yet.
  struct Group {
    var bits: UInt64 = 0
    var count = 0
    /// Padding, which counts as characters do.
    var padding = 0
    /// A padded group has been written: no other may follow.
    var isLast = false
  }

  let shape: Shape
  let alphabet: [UInt8]
  /// What each character stands for, or one of the marks below.
  let values: [UInt8]

  static let padding = UInt8(ascii: "=")
  static let isPadding: UInt8 = 0xFD
  static let isSpace: UInt8 = 0xFE
  static let isForeign: UInt8 = 0xFF
  /// Set in all of these, and in no value of a character.
  static let marks: UInt8 = 0x80

  static let base32 = BaseCode("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", .five)
  static let base32hex = BaseCode("0123456789ABCDEFGHIJKLMNOPQRSTUV", .five)
  static let base64 = BaseCode("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", .six)

  private init(_ alphabet: String, _ shape: Shape) {
    self.shape = shape
    self.alphabet = Array(alphabet.utf8)
    var values = [UInt8](repeating: BaseCode.isForeign, count: 256)
    for (value, character) in alphabet.utf8.enumerated() { values[Int(character)] = UInt8(value) }
    // Encoded text is broken into lines in mail, some of them by CR LF.
    for space in " \t\r\n".utf8 { values[Int(space)] = BaseCode.isSpace }
    values[Int(BaseCode.padding)] = BaseCode.isPadding
    self.values = values
  }
}

/// Makes core dumps, which need not be of any process that could be.
struct CoreBuilder {
  var process: Int32 = 77
  var thread: UInt32 = 77
  var stackPointer: UInt64 = 0x50_0010
  /// The mapped file: its range, and where that begins in the file, in pages.
  var mapping: (start: UInt64, end: UInt64, page: UInt64) = (0x40_0000, 0x40_1000, 0)
  var mappedPath = "/x"
  var pageSize: UInt64 = 4096
  var signal: Int32 = 6
  /// What the kernel says about the signal: its code, and the sender or the address.
  var signalInformation: (code: Int32, origin: UInt64)?
  /// Memory: its address, its rights as in a program header, its bytes, and its size if that is another.
  var segments: [(address: UInt64, rights: UInt32, bytes: [UInt8], size: UInt64?)] = [
    (0x40_0000, 5, ElfBuilder(needed: ["libdispatch.so"]).bytes(), nil),
    (0x50_0000, 6, [UInt8](repeating: 0, count: 64), nil),
  ]

  /// An image with the engine's record, as it is before the process uses the runtime.
  static var engine: [UInt8] {
    var image = ElfBuilder().bytes()
    let notes =
      UInt32(10).littleBytes + UInt32(8).littleBytes + UInt32(2).littleBytes
      + Array("Concourse\0\0\0".utf8) + UInt64(8).littleBytes
    let record = UInt32(1).littleBytes + UInt32(56).littleBytes + [UInt8](repeating: 0, count: 48)
    // The second header becomes one of notes.
    image.replaceSubrange(120..<124, with: UInt32(4).littleBytes)
    image.replaceSubrange(136..<144, with: (ElfBuilder.loadAddress + UInt64(image.count)).littleBytes)
    image.replaceSubrange(160..<168, with: UInt64(notes.count).littleBytes)
    return image + notes + record
  }

  var bytes: [UInt8] {
    var status = [UInt8](repeating: 0, count: 336)
    status.replaceSubrange(12..<14, with: UInt16(signal).littleBytes)
    status.replaceSubrange(32..<36, with: thread.littleBytes)
    // rip and rsp
    status.replaceSubrange(112 + 16 * 8..<112 + 17 * 8, with: UInt64(0x40_0010).littleBytes)
    status.replaceSubrange(112 + 19 * 8..<112 + 20 * 8, with: stackPointer.littleBytes)
    var information = [UInt8](repeating: 0, count: 136)
    information.replaceSubrange(24..<28, with: process.littleBytes)
    information.replaceSubrange(40..<44, with: "name".utf8)
    var files =
      [1, pageSize, mapping.start, mapping.end, mapping.page].flatMap(\.littleBytes) + Array(mappedPath.utf8)
    files += [UInt8](repeating: 0, count: 4 - files.count % 4)
    var about: [UInt8] = []
    if let (code, origin) = signalInformation {
      let fields = signal.littleBytes + Int32(0).littleBytes + code.littleBytes + Int32(0).littleBytes
      about = Self.note(0x5349_4749, fields + origin.littleBytes)
    }
    let notes =
      Self.note(1, status) + Self.note(3, information) + about + Self.note(0x4649_4C45, files + [0, 0, 0, 0])

    var bytes: [UInt8] = [0x7F, 0x45, 0x4C, 0x46, 2, 1, 1] + [UInt8](repeating: 0, count: 9)
    bytes += UInt16(4).littleBytes + UInt16(62).littleBytes + UInt32(1).littleBytes + UInt64(0).littleBytes
    bytes += UInt64(64).littleBytes + UInt64(0).littleBytes + UInt32(0).littleBytes + UInt16(64).littleBytes
    bytes += UInt16(56).littleBytes + UInt16(segments.count + 1).littleBytes + [0, 0, 0, 0, 0, 0]
    var place = 64 + (segments.count + 1) * 56
    bytes += Self.header(4, 0, place, 0, notes.count, nil)
    place += notes.count
    for segment in segments {
      bytes += Self.header(1, segment.rights, place, segment.address, segment.bytes.count, segment.size)
      place += segment.bytes.count
    }
    return bytes + notes + segments.flatMap(\.bytes)
  }

  private static func note(_ type: UInt32, _ content: [UInt8]) -> [UInt8] {
    UInt32(5).littleBytes + UInt32(content.count).littleBytes + type.littleBytes
      + Array("CORE\0\0\0\0".utf8) + content
  }

  private static func header(
    _ type: UInt32, _ rights: UInt32, _ offset: Int, _ address: UInt64, _ count: Int, _ size: UInt64?
  ) -> [UInt8] {
    type.littleBytes + rights.littleBytes + UInt64(offset).littleBytes + address.littleBytes
      + UInt64(0).littleBytes + UInt64(count).littleBytes + (size ?? UInt64(count)).littleBytes
      + UInt64(1).littleBytes
  }
}

internal import Glibc

/// The symbols of an ELF file for 64 bits in this machine's byte order. A file that is damaged, or that is not the one
/// in memory, has none.
struct ModuleFile {
  struct Function {
    let name: String
    let start: UInt
    /// What was asked for.
    let address: UInt
  }

  private let file: ReadFile?
  private var segments: [(offset: UInt, size: UInt, address: UInt)] = []
  private var tables: [(type: UInt32, symbols: Range<UInt>, names: Range<UInt>)] = []
  /// The sections with DWARF's lines, by name.
  private var lineSections: [String: Range<UInt>] = [:]

  init(_ module: Module) {
    // The program's file may have been removed or replaced.
    let isProgram = ReadFile.link("/proc/self/exe") == module.path
    guard let file = ReadFile(isProgram ? "/proc/self/exe" : module.path), file.inode == module.inode,
      let header = file.bytes(at: 0, count: 64), header.starts(with: [0x7F, 0x45, 0x4C, 0x46, 2])
    else {
      self.file = nil
      return
    }
    self.file = file
    readSegments(header, file)
    readSections(header, file)
  }

  private mutating func readSegments(_ header: [UInt8], _ file: ReadFile) {
    guard let place: UInt = header.number(at: 32), let count: UInt16 = header.number(at: 56),
      let table = file.bytes(at: place, count: Int(count) * 56)
    else { return }
    for entry in stride(from: 0, to: table.count, by: 56) where table.number(at: entry, as: UInt32.self) == 1
    {
      segments.append(
        (table.number(at: entry + 8)!, table.number(at: entry + 32)!, table.number(at: entry + 16)!))
    }
  }

  private mutating func readSections(_ header: [UInt8], _ file: ReadFile) {
    guard let place: UInt = header.number(at: 40), let count: UInt16 = header.number(at: 60),
      let table = file.bytes(at: place, count: Int(count) * 64)
    else { return }
    let namesIndex: UInt16? = header.number(at: 62)
    func range(of index: Int) -> Range<UInt>? {
      guard index < Int(count), let start: UInt = table.number(at: index * 64 + 24),
        let size: UInt = table.number(at: index * 64 + 32), start < 1 << 40, size < 1 << 32
      else { return nil }
      return start..<start + size
    }
    let names = namesIndex.flatMap { range(of: Int($0)) }
    for index in 0..<Int(count) {
      let type: UInt32 = table.number(at: index * 64 + 4)!
      if type == 1, let names, let content = range(of: index),
        let name = file.text(at: UInt(table.number(at: index * 64, as: UInt32.self)!), in: names),
        LineTable.sections.contains(name)
      {
        // A compressed one counts as absent.
        if table.number(at: index * 64 + 8, as: UInt64.self)! & 0x800 == 0 { lineSections[name] = content }
        continue
      }
      // All symbols, or those that other modules see.
      guard type == 2 || type == 11, let symbols = range(of: index),
        let names = range(of: Int(table.number(at: index * 64 + 40, as: UInt32.self)!))
      else { continue }
      tables.append((type, symbols, names))
    }
    tables.sort { $0.type < $1.type }
  }

  /// The address, before the module was moved, of a byte of the file.
  func address(ofByte offset: UInt) -> UInt? {
    segments.first { offset >= $0.offset && offset - $0.offset < $0.size }
      .map { $0.address &+ (offset - $0.offset) }
  }

  /// The function that has this address.
  func function(at address: UInt) -> Function? {
    for table in tables {
      if let found = function(at: address, in: table.symbols, table.names) { return found }
    }
    return nil
  }

  /// File and line, as "main.swift:12", of the addresses of functions.
  func lines(of functions: [Function], until end: UInt64) -> [UInt: String] {
    guard let file else { return [:] }
    return LineTable(file, lineSections)?.lines(of: functions, until: end) ?? [:]
  }

  private func function(at address: UInt, in symbols: Range<UInt>, _ names: Range<UInt>) -> Function? {
    guard let file else { return nil }
    var place = symbols.lowerBound
    while place < symbols.upperBound {
      let count = min(65_536 * 24, Int(symbols.upperBound - place) / 24 * 24)
      guard count > 0, let piece = file.bytes(at: place, count: count) else { return nil }
      for entry in stride(from: 0, to: count, by: 24) where piece[entry + 4] & 0xF == 2 {
        let start: UInt = piece.number(at: entry + 8)!
        let size: UInt = piece.number(at: entry + 16)!
        guard address >= start, address - start < size else { continue }
        let name = UInt(piece.number(at: entry, as: UInt32.self)!)
        return file.text(at: name, in: names).map { Function(name: $0, start: start, address: address) }
      }
      place += UInt(count)
    }
    return nil
  }
}

/// A file that is read by offsets.
final class ReadFile {
  private let descriptor: Int32

  init?(_ path: String) {
    // A name that leads to a pipe must not block.
    descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    if descriptor < 0 { return nil }
  }

  deinit { close(descriptor) }

  var inode: UInt64? {
    var facts = stat()
    return fstat(descriptor, &facts) == 0 ? UInt64(facts.st_ino) : nil
  }

  static func link(_ path: String) -> String? {
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = bytes.withUnsafeMutableBytes {
      readlink(path, $0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count)
    }
    return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
  }

  /// At least one byte and at most `count`; nil at the end, or if they cannot be read.
  func someBytes(at offset: UInt, count: Int) -> [UInt8]? {
    guard offset < 1 << 63, count > 0 else { return nil }
    var got = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { bytes, initialized in
      repeat {
        got = pread(descriptor, bytes.baseAddress, count, off_t(offset))
      } while got < 0 && errno == EINTR
      initialized = max(got, 0)
    }
    return got > 0 ? bytes : nil
  }

  /// The text at an offset of a section, to the next zero; nil if that is outside, or there is nothing.
  func text(at offset: UInt, in section: Range<UInt>) -> String? {
    guard offset < UInt(section.count) else { return nil }
    let bytes = someBytes(
      at: section.lowerBound + offset, count: min(4096, section.count - Int(offset)))
    return bytes.flatMap { $0[0] == 0 ? nil : String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
  }

  /// Exactly `count` bytes.
  func bytes(at offset: UInt, count: Int) -> [UInt8]? {
    var bytes: [UInt8] = []
    while bytes.count < count {
      guard let more = someBytes(at: offset &+ UInt(bytes.count), count: count - bytes.count) else {
        return nil
      }
      bytes += more
    }
    return bytes
  }
}

extension [UInt8] {
  func number<Number: FixedWidthInteger>(at offset: Int, as type: Number.Type = Number.self)
    -> Number?
  {
    guard offset >= 0, offset <= count - MemoryLayout<Number>.size else { return nil }
    return withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: Number.self) }
  }
}

internal import CConcourse
internal import Glibc

/// Says where in the program a thread of this process that stands still has called the runtime: function, module, and
/// offset in the module's file.
///
/// Made for a process that is about to end in an unknown state. So it calls no other program, and takes no lock of the
/// loader, which a thread of the deadlock may have: modules come from /proc/self/maps, and names from the symbol tables
/// of their files. What is read is checked, and where something cannot be read, the text says less.
enum CallPlace {
  private static let mostFrames = 64
  /// Addresses that are shown of a program without symbols, whose frames may be the runtime's own.
  private static let mostUnknown = 8

  /// - Parameter frame: a frame of the runtime on the stack of that thread (`concourse_caller_frame`).
  /// - Returns: nil if nothing is known.
  static func description(from frame: UInt) -> String? {
    let modules = Module.all()
    var files: [String: ModuleFile] = [:]
    var own: String?
    var unknown: [String] = []
    for address in returnAddresses(from: frame) {
      // The call is before the address, which may be in the next function.
      guard let module = modules.first(where: { $0.range.contains(address - 1) }) else { continue }
      let name = module.name
      if own == nil { own = module.path }
      let isOwn = module.path == own
      if isOwn && name.hasPrefix("libdispatch.so") || isSystem(name) { continue }
      let file = files[module.path] ?? ModuleFile(module)
      files[module.path] = file
      let offset = file.address(ofByte: address - 1 - module.range.lowerBound + module.offset)
      let place = "\(name)+0x" + String(offset ?? address - 1 - module.range.lowerBound, radix: 16)
      guard let offset, let symbol = file.function(at: offset) else {
        if unknown.count < mostUnknown { unknown.append(place) }
        continue
      }
      if isOwn && isRuntime(symbol) || isThunk(symbol) { continue }
      if isOwn || unknown.isEmpty { return "\(demangled(symbol)) (\(place))" }
      return unknown.joined(separator: ", ")
    }
    return unknown.isEmpty ? nil : unknown.joined(separator: ", ")
  }

  /// The frames end where the chain of frame pointers does: at the latest in code that was compiled without them. The
  /// runtime's own frames have one, so the first address outside it is right.
  private static func returnAddresses(from frame: UInt) -> [UInt] {
    guard let memory = ReadFile("/proc/self/mem") else { return [] }
    var (found, frame) = ([UInt](), frame)
    while found.count < mostFrames, frame != 0, frame % 8 == 0,
      let words = memory.bytes(at: frame, count: 16),
      let next: UInt = words.number(at: 0), let address: UInt = words.number(at: 8), address > 1
    {
      found.append(address)
      guard next > frame, next - frame < 1 << 24 else { break }
      frame = next
    }
    return found
  }

  private static func isSystem(_ name: String) -> Bool {
    ["libswift", "libFoundation", "lib_Foundation", "libc.so", "ld-linux", "libBlocksRuntime"]
      .contains { name.hasPrefix($0) }
  }

  private static func isRuntime(_ symbol: String) -> Bool {
    [
      "$s16ConcourseRuntime", "$s15ConcourseEvents", "$s12ConcourseABI", "$s9Concourse", "concourse_",
      "dispatch_",
      "_dispatch_", "$ss", "swift_",
    ].contains { symbol.hasPrefix($0) }
  }

  /// A function of the compiler's between the program's and the runtime's.
  private static func isThunk(_ symbol: String) -> Bool {
    symbol.hasPrefix("$s") && (symbol.hasSuffix("TR") || symbol.hasSuffix("TRTA") || symbol.hasSuffix("TA"))
  }

  private static func demangled(_ symbol: String) -> String {
    guard symbol.hasPrefix("$s"), let text = symbol.withCString({ demangle($0, strlen($0), nil, nil, 0) })
    else {
      return symbol
    }
    defer { free(text) }
    return String(cString: text)
  }
}

@_silgen_name("swift_demangle")
private func demangle(
  _ name: UnsafePointer<CChar>?, _ length: Int, _ output: UnsafeMutablePointer<CChar>?,
  _ size: UnsafeMutablePointer<Int>?, _ flags: UInt32
) -> UnsafeMutablePointer<CChar>?

/// Code of a file in the memory of this process.
private struct Module {
  let range: Range<UInt>
  let offset: UInt
  let path: String
  let inode: UInt64

  var name: String {
    String(path[(path.lastIndex(of: "/").map { path.index(after: $0) } ?? path.startIndex)...])
  }

  static func all() -> [Module] {
    guard let file = ReadFile("/proc/self/maps") else { return [] }
    var text: [UInt8] = []
    while text.count < 1 << 24, let piece = file.someBytes(at: UInt(text.count), count: 65_536) {
      text += piece
    }
    return text.split(separator: UInt8(ascii: "\n")).compactMap {
      Module(line: String(decoding: $0, as: UTF8.self))
    }
  }

  /// `55d0-55e0 r-xp 00001000 fe:01 12345    /path`
  private init?(line: String) {
    let words = line.split(separator: " ", maxSplits: 5)
    guard words.count == 6, words[1].contains("x") else { return nil }
    let ends = words[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
    guard ends.count == 2, ends[0] < ends[1], let offset = UInt(words[2], radix: 16),
      let inode = UInt64(words[4])
    else { return nil }
    range = ends[0]..<ends[1]
    self.offset = offset
    self.inode = inode
    path = String(words[5].drop { $0 == " " })
  }
}

/// The symbols of an ELF file for 64 bits in this machine's byte order. A file that is damaged, or that is not the one
/// in memory, has none.
private struct ModuleFile {
  private let file: ReadFile?
  private var segments: [(offset: UInt, size: UInt, address: UInt)] = []
  private var tables: [(type: UInt32, symbols: Range<UInt>, names: Range<UInt>)] = []

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
    func range(of index: Int) -> Range<UInt>? {
      guard index < Int(count), let start: UInt = table.number(at: index * 64 + 24),
        let size: UInt = table.number(at: index * 64 + 32), start < 1 << 40, size < 1 << 32
      else { return nil }
      return start..<start + size
    }
    for index in 0..<Int(count) {
      let type: UInt32 = table.number(at: index * 64 + 4)!
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

  /// The name of the function that has this address.
  func function(at address: UInt) -> String? {
    for table in tables {
      if let name = function(at: address, in: table.symbols, table.names) { return name }
    }
    return nil
  }

  private func function(at address: UInt, in symbols: Range<UInt>, _ names: Range<UInt>) -> String? {
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
        guard name < UInt(names.count) else { return nil }
        let text = file.someBytes(at: names.lowerBound + name, count: min(4096, names.count - Int(name)))
        return text.map { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      }
      place += UInt(count)
    }
    return nil
  }
}

/// A file that is read by offsets.
private final class ReadFile {
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
  fileprivate func number<Number: FixedWidthInteger>(at offset: Int, as type: Number.Type = Number.self)
    -> Number?
  {
    guard offset >= 0, offset <= count - MemoryLayout<Number>.size else { return nil }
    return withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: Number.self) }
  }
}

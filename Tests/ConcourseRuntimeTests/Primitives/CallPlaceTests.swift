import Glibc
import Testing

@testable import ConcourseRuntime

/// The places in the message of a deadlock come from files that may have been stripped, replaced or damaged.
@Suite("The place of a call")
struct CallPlaceTests {
  private static let place = "module+0x2009"

  @Test("function, file, line, module and offset", arguments: [4, 5])
  func whole(version: UInt16) {
    let module = ModuleOnDisk(TinyModule(version: version))
    #expect(module.described == "called_from at program.c:11 (\(Self.place))")
  }

  @Test("a line of the runtime's code that has been inlined, and no line, give way to the caller's")
  func inlined() {
    var module = TinyModule(version: 5)
    module.rows = [(0, 1, 10), (4, 1, 20), (8, 2, 500)]
    #expect(ModuleOnDisk(module).described == "called_from at program.c:20 (\(Self.place))")
    module.rows = [(0, 1, 10), (4, 1, 20), (8, 1, 0)]
    #expect(ModuleOnDisk(module).described == "called_from at program.c:20 (\(Self.place))")
    module.rows = [(0, 2, 10), (8, 2, 500)]
    #expect(ModuleOnDisk(module).described == "called_from (\(Self.place))")
  }

  @Test("what is missing: lines, symbols, sections, the file")
  func missing() {
    var module = TinyModule(version: 4)
    module.names[".debug_line"] = ".other"
    #expect(ModuleOnDisk(module).described == "called_from (\(Self.place))")
    module = TinyModule(version: 5)
    module.flags[".debug_line"] = 0x800  // compressed
    #expect(ModuleOnDisk(module).described == "called_from (\(Self.place))")
    module = TinyModule(version: 5)
    module.types[".symtab"] = 0
    #expect(ModuleOnDisk(module).described == Self.place)
    module = TinyModule(version: 5)
    module.hasSections = false
    #expect(ModuleOnDisk(module).described == Self.place)

    let replaced = ModuleOnDisk(TinyModule(version: 5))
    replaced.becomeAnotherFile()
    #expect(replaced.described == "module+0x9")
    unlink(replaced.path)
    #expect(replaced.described == "module+0x9")
  }

  @Test("sizes and places outside the file")
  func outside() {
    for name in [".symtab", ".strtab", ".shstrtab", ".debug_line", ".debug_line_str"] {
      for wrong: UInt64 in [0, 1, 1 << 20, 1 << 31, 1 << 33, 1 << 40, .max] {
        var module = TinyModule(version: 5)
        module.sizes[name] = wrong
        ModuleOnDisk(module).mustNameTheModule()
        module.sizes[name] = nil
        module.offsets[name] = wrong
        ModuleOnDisk(module).mustNameTheModule()
      }
    }
    for name: UInt32 in [1000, 1 << 31, .max] {
      var module = TinyModule(version: 5)
      module.symbolName = name
      #expect(ModuleOnDisk(module).described == Self.place)
    }
  }

  @Test("a file that is cut off anywhere", arguments: [4, 5])
  func cutOff(version: UInt16) {
    let bytes = TinyModule(version: version).bytes()
    let module = ModuleOnDisk(bytes)
    for count in bytes.indices.reversed() {
      module.write(Array(bytes[..<count]))
      module.mustNameTheModule()
    }
  }

  @Test("any byte is another one", arguments: [4, 5])
  func damaged(version: UInt16) {
    let bytes = TinyModule(version: version).bytes()
    let module = ModuleOnDisk(bytes)
    for index in bytes.indices {
      for wrong: UInt8 in [0, 1, 0x7F, 0x80, 0xFF] where wrong != bytes[index] {
        var damaged = bytes
        damaged[index] = wrong
        module.write(damaged)
        module.mustNameTheModule()
      }
    }
  }

  @Test("a search for lines that takes too long is given up")
  func impatient() throws {
    let module = ModuleOnDisk(TinyModule(version: 5))
    let file = ModuleFile(module.module)
    let function = try #require(file.function(at: 0x2009))
    #expect(file.lines(of: [function], until: .max) == [0x2009: "program.c:11"])
    #expect(file.lines(of: [function], until: 0).isEmpty)
  }
}

// MARK: - Modules

/// A module in a file, as if it were mapped.
private final class ModuleOnDisk {
  let path: String
  private let file: Int32
  private static let base: UInt = 0x7000_0000_0000

  convenience init(_ module: TinyModule) { self.init(module.bytes()) }

  init(_ bytes: [UInt8]) {
    var name = Array("/tmp/concourse-tests-XXXXXX".utf8CString)
    // SAFETY: `mkdtemp` rewrites the six letters in place; the name is copied before the closure returns.
    path = name.withUnsafeMutableBufferPointer { String(cString: mkdtemp($0.baseAddress!)) } + "/module"
    file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    write(bytes)
  }

  deinit {
    close(file)
    unlink(path)
    rmdir(String(path.dropLast("/module".count)))
  }

  func write(_ bytes: [UInt8]) {
    #expect(ftruncate(file, 0) == 0 && pwrite(file, bytes, bytes.count, 0) == bytes.count)
  }

  func becomeAnotherFile() {
    let other = open(path + "2", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    close(other)
    rename(path + "2", path)
  }

  /// The line of `/proc/self/maps`.
  var module: Module {
    var facts = stat()
    fstat(file, &facts)
    let (first, last) = (String(Self.base, radix: 16), String(Self.base + 0x1000, radix: 16))
    return Module(line: "\(first)-\(last) r-xp 00000000 fe:01 \(facts.st_ino)    \(path)")!
  }

  /// Of a call whose return address is the tenth byte of the function.
  var described: String? { CallPlace.descriptions(of: [[Self.base + 10]], in: [module])[0] }

  func mustNameTheModule(sourceLocation: SourceLocation = #_sourceLocation) {
    let text = described
    #expect(
      text?.hasPrefix("module+0x") == true || text?.contains(" (module+0x") == true, "\(text ?? "nothing")",
      sourceLocation: sourceLocation)
  }
}

/// An ELF file whose first 64 bytes count as a function, with a symbol and lines.
private struct TinyModule {
  let version: UInt16
  /// Offset in the function, file and line. The second file is of the runtime.
  var rows: [(offset: UInt64, file: UInt8, line: UInt64)] = [(0, 1, 10), (4, 1, 11), (12, 1, 12)]
  var symbolName: UInt32 = 1
  var hasSections = true
  // By the names of sections, what they have in place of the right one.
  var names: [String: String] = [:]
  var types: [String: UInt32] = [:]
  var flags: [String: UInt64] = [:]
  var sizes: [String: UInt64] = [:]
  var offsets: [String: UInt64] = [:]

  private static let address: UInt64 = 0x2000

  init(version: UInt16) { self.version = version }

  func bytes() -> [UInt8] {
    let strings = Array("\0called_from\0".utf8)
    let symbol: [UInt8] =
      little(symbolName) + [0x12, 0] + little(UInt16(1)) + little(Self.address) + little(UInt64(64))
    let sections: [(name: String, type: UInt32, link: UInt32, content: [UInt8])] = [
      (".symtab", 2, 2, Array(repeating: 0, count: 24) + symbol), (".strtab", 3, 0, strings),
      (".debug_line", 1, 0, lines), (".debug_line_str", 1, 0, Self.texts), (".shstrtab", 3, 0, []),
    ]
    var sectionNames: [UInt8] = [0]
    var headers: [UInt8] = Array(repeating: 0, count: 64)
    var content: [UInt8] = []
    for section in sections {
      let name = UInt32(sectionNames.count)
      sectionNames += Array((names[section.name] ?? section.name).utf8) + [0]
      let bytes = section.name == ".shstrtab" ? sectionNames : section.content
      headers += little(name) + little(types[section.name] ?? section.type)
      headers += little(flags[section.name] ?? 0) + little(UInt64(0))
      headers += little(offsets[section.name] ?? UInt64(120 + content.count))
      headers += little(sizes[section.name] ?? UInt64(bytes.count)) + little(section.link)
      headers += Array(repeating: 0, count: 20)
      content += bytes
    }
    var file: [UInt8] = [0x7F, 0x45, 0x4C, 0x46, 2, 1, 1] + Array(repeating: 0, count: 9)
    file += little(UInt16(3)) + little(UInt16(62)) + little(UInt32(1)) + little(UInt64(0))
    file += little(UInt64(64)) + little(UInt64(120 + content.count)) + little(UInt32(0))
    file += little(UInt16(64)) + little(UInt16(56)) + little(UInt16(1))
    file += little(UInt16(64)) + little(UInt16(hasSections ? sections.count + 1 : 0))
    file += little(UInt16(hasSections ? sections.count : 0))
    file += little(UInt32(1)) + little(UInt32(5)) + little(UInt64(0)) + little(Self.address)
    file += little(Self.address) + little(UInt64(0x1000)) + little(UInt64(0x1000)) + little(UInt64(0x1000))
    return file + content + headers
  }

  private static let texts = Array("/work\0/src/ConcourseRuntime/Queue\0program.c\0Sync.swift\0".utf8)

  /// A unit of `.debug_line`, between one that is empty and one of a version that no one knows.
  private var lines: [UInt8] {
    let unknown = sized(little(UInt16(9)) + [1, 2, 3])
    return sized(header + program([])) + sized(header + program(rows)) + unknown
  }

  private func program(_ rows: [(offset: UInt64, file: UInt8, line: UInt64)]) -> [UInt8] {
    var code: [UInt8] = [0, 9, 2] + little(Self.address)
    var (offset, line): (UInt64, UInt64) = (0, 1)
    for row in rows {
      // DWARF 5 counts files from 0, but compilers repeat the first one there.
      code += [2] + leb(row.offset - offset) + [4, row.file, 3] + leb(row.line &- line) + [1]
      (offset, line) = (row.offset, row.line)
    }
    if !rows.isEmpty { code += [2] + leb(64 - offset) }
    return code + [0, 1, 1]
  }

  private var header: [UInt8] {
    let lengths: [UInt8] = [0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]
    let rest: [UInt8] = [1, 1, 1, UInt8(bitPattern: -5), 14, 13] + lengths + tables
    let sizes: [UInt8] = version >= 5 ? [8, 0] : []
    return little(version) + sizes + little(UInt32(rest.count)) + rest
  }

  /// Folders, and the files `program.c` and, of the runtime, `Sync.swift`.
  private var tables: [UInt8] {
    guard version >= 5 else {
      let folders = "/work\0/src/ConcourseRuntime/Queue\0\0"
      return Array(folders.utf8) + Array("program.c\0".utf8) + [1, 0, 0] + Array("Sync.swift\0".utf8)
        + [2, 0, 0] + [0]
    }
    let folders: [UInt8] = [1, 1, 0x1F, 2] + little(UInt32(0)) + little(UInt32(6))
    let files: [UInt8] = [2, 1, 0x1F, 2, 0x0B, 3]
    return folders + files + little(UInt32(34)) + [0] + little(UInt32(34)) + [0] + little(UInt32(44)) + [1]
  }

  private func sized(_ unit: [UInt8]) -> [UInt8] { little(UInt32(unit.count)) + unit }

  private func leb(_ number: UInt64) -> [UInt8] {
    // Signed and of two bytes, so both readers see the same number.
    [UInt8(truncatingIfNeeded: number) | 0x80, UInt8(truncatingIfNeeded: number >> 7) & 0x7F]
  }
}

private func little<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
  withUnsafeBytes(of: number.littleEndian) { Array($0) }
}

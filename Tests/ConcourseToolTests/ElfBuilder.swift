@testable import ConcourseTool

/// Makes ELF files that the command can read but that cannot run.
struct ElfBuilder {
  var machine: UInt16 = 62
  var elfClass: UInt8 = 2
  var order: UInt8 = 1
  var interpreter: String?
  var isDynamic = true
  var needed: [String] = []
  var soname: String?
  var rpath: String?
  var runpath: String?
  /// The address of the names in the dynamic section, if not the true one.
  var namesAddress: UInt64?
  /// Functions in a table of symbols.
  var functions: [(name: String, address: UInt64, size: UInt64)] = []

  static let loadAddress: UInt64 = 0x40_0000

  func bytes() -> [UInt8] {
    var names: [UInt8] = [0]
    func offset(of name: String) -> UInt64 {
      defer { names += Array(name.utf8) + [0] }
      return UInt64(names.count)
    }
    var entries: [(UInt64, UInt64)] = needed.map { (1, offset(of: $0)) }
    if let soname { entries.append((14, offset(of: soname))) }
    if let rpath { entries.append((15, offset(of: rpath))) }
    if let runpath { entries.append((29, offset(of: runpath))) }

    let segments = 1 + (isDynamic ? 1 : 0) + (interpreter == nil ? 0 : 1)
    let loader: [UInt8] = interpreter.map { Array($0.utf8) + [0] } ?? []
    let loaderStart = 64 + segments * 56
    let namesStart = loaderStart + loader.count
    let dynamicStart = namesStart + names.count
    entries.append((5, namesAddress ?? Self.loadAddress + UInt64(namesStart)))
    entries.append((0, 0))
    let size = dynamicStart + entries.count * 16

    var file: [UInt8] = [0x7F, 0x45, 0x4C, 0x46, elfClass, order, 1] + Array(repeating: 0, count: 9)
    file += UInt16(2).littleBytes + machine.littleBytes + UInt32(1).littleBytes + UInt64(0).littleBytes
    let (symbols, symbolNames) = symbolTable
    let sectionsStart = functions.isEmpty ? 0 : size + symbols.count + symbolNames.count
    file += UInt64(64).littleBytes + UInt64(sectionsStart).littleBytes + UInt32(0).littleBytes
    file += UInt16(64).littleBytes + UInt16(56).littleBytes + UInt16(segments).littleBytes
    file += UInt16(64).littleBytes + UInt16(functions.isEmpty ? 0 : 3).littleBytes
    file += UInt16(functions.isEmpty ? 0 : 2).littleBytes
    file += header(1, at: 0, size: size)
    if isDynamic { file += header(2, at: dynamicStart, size: entries.count * 16) }
    if interpreter != nil { file += header(3, at: loaderStart, size: loader.count) }
    file += loader + names
    for (tag, value) in entries { file += tag.littleBytes + value.littleBytes }
    guard !functions.isEmpty else { return file }
    file += symbols + symbolNames + [UInt8](repeating: 0, count: 64)
    return file + section(2, at: size, symbols.count)
      + section(3, at: size + symbols.count, symbolNames.count)
  }

  /// The table of the functions, and their names.
  private var symbolTable: ([UInt8], [UInt8]) {
    var (symbols, names) = ([UInt8](), [UInt8](repeating: 0, count: 1))
    for function in functions {
      symbols += UInt32(names.count).littleBytes + [0x12, 0] + UInt16(1).littleBytes
      symbols += function.address.littleBytes + function.size.littleBytes
      names += Array(function.name.utf8) + [0]
    }
    return (symbols, names)
  }

  /// The header of a section, whose names are in the second section.
  private func section(_ type: UInt32, at offset: Int, _ size: Int) -> [UInt8] {
    UInt32(0).littleBytes + type.littleBytes + UInt64(0).littleBytes + UInt64(0).littleBytes
      + UInt64(offset).littleBytes + UInt64(size).littleBytes + UInt32(2).littleBytes + UInt32(0).littleBytes
      + UInt64(1).littleBytes + UInt64(24).littleBytes
  }

  private func header(_ type: UInt32, at offset: Int, size: Int) -> [UInt8] {
    let address = Self.loadAddress + UInt64(offset)
    return type.littleBytes + UInt32(4).littleBytes + UInt64(offset).littleBytes + address.littleBytes
      + address.littleBytes + UInt64(size).littleBytes + UInt64(size).littleBytes + UInt64(8).littleBytes
  }
}

extension FixedWidthInteger {
  var littleBytes: [UInt8] {
    (0..<Self.bitWidth / 8).map { UInt8(truncatingIfNeeded: self >> (8 * $0)) }
  }
}

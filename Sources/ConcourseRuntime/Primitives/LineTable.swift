/// Files and lines of addresses, from the line tables of a module's debug information (DWARF 2 to 5).
///
/// For each unit of the compiler the section has a program, which makes rows of address, file and line. All of them are
/// run, since the section has no index. What is damaged ends its unit.
struct LineTable {
  static let sections = [".debug_line", ".debug_line_str", ".debug_str"]
  /// A larger section counts as absent.
  private static let largest = 256 << 20

  private let bytes: [UInt8]
  private let file: ReadFile
  private let texts: [UInt64: Range<UInt>]

  init?(_ file: ReadFile, _ sections: [String: Range<UInt>]) {
    guard let lines = sections[".debug_line"], lines.count <= Self.largest,
      let bytes = file.bytes(at: lines.lowerBound, count: lines.count)
    else { return nil }
    self.file = file
    self.bytes = bytes
    var texts: [UInt64: Range<UInt>] = [:]
    texts[Form.lineText] = sections[".debug_line_str"]
    texts[Form.text] = sections[".debug_str"]
    self.texts = texts
  }

  private enum Form {
    static let text: UInt64 = 0x0E
    static let lineText: UInt64 = 0x1F
  }

  /// A row from the beginning of a function to an address of it, the last of which has the call.
  private struct Row {
    let file: UInt64
    let line: Int
  }

  /// What is looked for.
  private struct Target {
    let range: ClosedRange<UInt>
    /// Of the present sequence.
    var rows: [Row] = []
    /// The unit that has the address, and its rows.
    var found: (unit: Header, rows: [Row])?
  }

  /// - Parameter end: the uptime at which the search is given up.
  func lines(of functions: [ModuleFile.Function], until end: UInt64) -> [UInt: String] {
    var targets = functions.filter { $0.start <= $0.address }.map { Target(range: $0.start...$0.address) }
    bytes.withUnsafeBytes { bytes in
      var place = 0
      while place < bytes.count, targets.contains(where: { $0.found == nil }), Clock.uptime() < end {
        guard let header = Header(bytes, at: place) else { return }
        if header.program <= header.end { run(header, bytes, &targets) }
        place = header.end
      }
    }
    return targets.reduce(into: [:]) { lines, target in
      // A row without a line, or of code of the runtime's that has been inlined, follows that of its caller.
      for row in target.found?.rows.reversed() ?? [] where row.line > 0 {
        guard let name = name(row.file, target.found!.unit) else { continue }
        lines[target.range.upperBound] = "\(name):\(row.line)"
        return
      }
    }
  }

  // MARK: Programs

  private func run(_ header: Header, _ bytes: UnsafeRawBufferPointer, _ targets: inout [Target]) {
    let low = targets.map { $0.range.lowerBound }.min()!
    let high = targets.map { $0.range.upperBound }.max()!
    var cursor = Cursor(bytes, header.program, header.end)
    var (address, file, line, first): (UInt, UInt64, Int, UInt?) = (0, 1, 1, nil)
    func row(_ targets: inout [Target]) {
      if first == nil { first = address }
      guard address >= low && address <= high else { return }
      for index in targets.indices where targets[index].range.contains(address) {
        targets[index].rows.append(Row(file: file, line: line))
      }
    }
    let lineRange = Int(header.lineRange)
    let firstSpecial = Int(header.firstSpecial)
    while cursor.place < header.end {
      let code = Int(cursor.byte())
      if code >= firstSpecial {
        let step = code - firstSpecial
        address &+= UInt(step / lineRange) &* header.minimum
        line &+= header.lineBase + step % lineRange
        row(&targets)
        continue
      }
      switch code {
      case 0:
        let length = cursor.unsigned()
        guard length > 0, length <= UInt64(header.end - cursor.place) else { return }
        let next = cursor.place + Int(length)
        switch cursor.byte() {
        case 1:
          endSequence(first, address, header, &targets)
          (address, file, line, first) = (0, 1, 1, nil)
        case 2: address = UInt(truncatingIfNeeded: cursor.fixed(min(8, Int(length) - 1)))
        default: break
        }
        cursor.place = next
      case 1: row(&targets)
      case 2: address &+= UInt(truncatingIfNeeded: cursor.unsigned()) &* header.minimum
      case 3: line &+= cursor.signed()
      case 4: file = cursor.unsigned()
      case 8: address &+= UInt((255 - firstSpecial) / lineRange) &* header.minimum
      case 9: address &+= UInt(cursor.fixed(2))
      default:
        for _ in 0..<bytes[header.lengths + code - 1] { _ = cursor.unsigned() }
      }
      if cursor.isBad { return }
    }
  }

  /// - Parameter first: the address of the first row. Code that the linker has dropped begins at 0.
  private func endSequence(_ first: UInt?, _ end: UInt, _ header: Header, _ targets: inout [Target]) {
    for index in targets.indices {
      let address = targets[index].range.upperBound
      if let first, first > 0, first <= address, address < end, targets[index].found == nil {
        targets[index].found = (header, targets[index].rows)
      }
      targets[index].rows = []
    }
  }

  // MARK: Names

  /// The last part of the name of a unit's file; nil if it is the runtime's own.
  private func name(_ number: UInt64, _ unit: Header) -> String? {
    bytes.withUnsafeBytes { bytes in
      var cursor = Cursor(bytes, unit.tables, unit.program)
      guard let (name, folder) = unit.version < 5 ? old(number, &cursor) : new(number, unit, &cursor) else {
        return nil
      }
      let parts = (folder + "/" + name).split(separator: "/")
      if parts.contains(where: { Self.runtime.contains($0) }) || name.hasPrefix("<") { return nil }
      return parts.last.map { String($0) }
    }
  }

  /// Folders.
  private static let runtime: [Substring] = ["ConcourseRuntime", "ConcourseEvents", "ConcourseABI"]

  /// DWARF 2 to 4: folders and files by name, each list ended by an empty name, and counted from 1.
  private func old(_ number: UInt64, _ cursor: inout Cursor) -> (name: String, folder: String)? {
    let folders = cursor.place
    while cursor.skipText() {}
    var count: UInt64 = 0
    while !cursor.isBad {
      let name = cursor.place
      guard cursor.skipText() else { return nil }
      let folder = cursor.unsigned()
      _ = (cursor.unsigned(), cursor.unsigned())
      count += 1
      guard count == number else { continue }
      var found = Cursor(cursor.bytes, folders, cursor.end)
      var left = folder
      while left > 1, found.skipText() { left -= 1 }
      return (cursor.text(at: name), folder == 0 ? "" : found.text(at: found.place))
    }
    return nil
  }

  /// DWARF 5: tables that say how their entries are laid out.
  private func new(_ number: UInt64, _ unit: Header, _ cursor: inout Cursor) -> (
    name: String, folder: String
  )? {
    let folders = cursor
    guard skipEntries(unit, &cursor), let file = entry(number, unit, &cursor) else { return nil }
    var start = folders
    return (file.name, entry(file.folder, unit, &start)?.name ?? "")
  }

  private func skipEntries(_ unit: Header, _ cursor: inout Cursor) -> Bool {
    _ = entry(nil, unit, &cursor)
    return !cursor.isBad
  }

  /// - Parameter wanted: nil to pass all entries.
  private func entry(_ wanted: UInt64?, _ unit: Header, _ cursor: inout Cursor) -> (
    name: String, folder: UInt64
  )? {
    var layout: [(content: UInt64, form: UInt64)] = []
    for _ in 0..<cursor.byte() { layout.append((cursor.unsigned(), cursor.unsigned())) }
    let count = cursor.unsigned()
    if layout.isEmpty { return nil }
    var number: UInt64 = 0
    while number < count && !cursor.isBad {
      let isWanted = number == wanted
      var found = (name: "", folder: UInt64(0))
      for (content, form) in layout {
        switch (content, isWanted) {
        case (1, true): found.name = text(form, unit, &cursor)
        case (2, true): found.folder = value(form, unit, &cursor)
        default: _ = value(form, unit, &cursor)
        }
      }
      if isWanted { return cursor.isBad ? nil : found }
      number += 1
    }
    return nil
  }

  private func text(_ form: UInt64, _ unit: Header, _ cursor: inout Cursor) -> String {
    let start = cursor.place
    let value = value(form, unit, &cursor)
    if form == 0x08 { return cursor.text(at: start) }
    return texts[form].flatMap { file.text(at: UInt(value), in: $0) } ?? ""
  }

  /// A number, or the offset of a text; other content is passed.
  private func value(_ form: UInt64, _ unit: Header, _ cursor: inout Cursor) -> UInt64 {
    switch form {
    case 0x0B: return cursor.fixed(1)
    case 0x05: return cursor.fixed(2)
    case 0x06: return cursor.fixed(4)
    case 0x07: return cursor.fixed(8)
    case 0x0F: return cursor.unsigned()
    case 0x0D: return UInt64(bitPattern: Int64(cursor.signed()))
    case Form.text, Form.lineText: return cursor.fixed(unit.offsetSize)
    case 0x08: _ = cursor.skipText()
    case 0x1E: cursor.skip(16)
    case 0x09: cursor.skip(cursor.unsigned())
    default: cursor.isBad = true
    }
    return 0
  }
}

// MARK: - Reading

extension LineTable {
  /// The beginning of a unit. Places are those in the section.
  private struct Header {
    var version: UInt16
    var offsetSize: Int
    /// How many bytes an instruction has at least.
    var minimum: UInt
    var lineBase: Int
    var lineRange: UInt8
    /// The first code that changes address and line and makes a row.
    var firstSpecial: UInt8
    /// How many operands the codes before that have, from code 1 on.
    var lengths: Int
    /// The tables of folders and files.
    var tables: Int
    var program: Int
    var end: Int

    /// nil if the next unit cannot be found. A unit that cannot be read has its program behind its end.
    init?(_ bytes: UnsafeRawBufferPointer, at place: Int) {
      var cursor = Cursor(bytes, place, bytes.count)
      var length = cursor.fixed(4)
      offsetSize = 4
      if length == 0xFFFF_FFFF { (length, offsetSize) = (cursor.fixed(8), 8) }
      guard !cursor.isBad, length <= UInt64(bytes.count - cursor.place) else { return nil }
      end = cursor.place + Int(length)
      cursor.end = end
      version = UInt16(cursor.fixed(2))
      if version >= 5 { cursor.skip(2) }
      let headerLength = cursor.fixed(offsetSize)
      program = headerLength <= UInt64(end - cursor.place) ? cursor.place + Int(headerLength) : end + 1
      minimum = UInt(cursor.byte())
      if version >= 4 { cursor.skip(1) }
      cursor.skip(1)
      lineBase = Int(Int8(bitPattern: cursor.byte()))
      lineRange = cursor.byte()
      firstSpecial = cursor.byte()
      lengths = cursor.place
      if firstSpecial > 0 { cursor.skip(UInt64(firstSpecial) - 1) }
      tables = cursor.place
      if cursor.isBad || !(2...5).contains(version) || lineRange == 0 || firstSpecial == 0 || tables > program
      {
        program = end + 1
      }
    }
  }

  /// Reads numbers and texts one after another. Beyond the end all are 0, and `isBad` is set.
  private struct Cursor {
    let bytes: UnsafeRawBufferPointer
    var place: Int
    var end: Int
    var isBad = false

    init(_ bytes: UnsafeRawBufferPointer, _ place: Int, _ end: Int) {
      (self.bytes, self.place, self.end) = (bytes, place, end)
    }

    mutating func byte() -> UInt8 {
      guard place < end else {
        isBad = true
        return 0
      }
      place += 1
      return bytes[place - 1]
    }

    mutating func fixed(_ count: Int) -> UInt64 {
      var value: UInt64 = 0
      for index in 0..<count { value |= UInt64(byte()) << UInt64(8 * index) }
      return value
    }

    mutating func unsigned() -> UInt64 {
      var (value, shift): (UInt64, UInt64) = (0, 0)
      while true {
        let byte = byte()
        // Further bits do not fit.
        if shift < 64 { value |= UInt64(byte & 0x7F) << shift }
        if byte & 0x80 == 0 { return value }
        shift += 7
      }
    }

    mutating func signed() -> Int {
      var (value, shift): (Int, Int) = (0, 0)
      while true {
        let byte = byte()
        if shift < 64 { value |= Int(byte & 0x7F) << shift }
        shift += 7
        if byte & 0x80 == 0 { return shift < 64 && byte & 0x40 != 0 ? value | -1 << shift : value }
      }
    }

    mutating func skip(_ count: UInt64) {
      if count <= UInt64(end - place) { place += Int(count) } else { (place, isBad) = (end, true) }
    }

    /// - Returns: false for an empty text, or one that does not end.
    mutating func skipText() -> Bool {
      let start = place
      while place < end && bytes[place] != 0 { place += 1 }
      guard place < end else {
        isBad = true
        return false
      }
      place += 1
      return place - start > 1
    }

    func text(at start: Int) -> String {
      String(decoding: bytes[start..<end].prefix { $0 != 0 }, as: UTF8.self)
    }
  }
}

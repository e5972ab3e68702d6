/// The location of an ELF file's section headers.
struct SectionHeaders {
  var offset: UInt64 = 0
  var entrySize: UInt16 = 0
  var count: UInt16 = 0
  var namesIndex: UInt16 = 0
}

/// Symbols and sections. A program runs without them, and both may have been stripped. Absent or damaged ones count as
/// absent.
extension ElfImage {
  enum SymbolTable: UInt32 {
    /// All symbols; usually stripped from shipped files.
    case full = 2
    /// Symbols that other objects can see.
    case dynamic = 11
  }

  private struct Section {
    var name: UInt32
    var type: UInt32
    var offset: UInt64
    var size: UInt64
    var link: UInt32
  }

  private var allSections: [Section] {
    guard sections.entrySize == 64, sections.count > 0,
      let table = file.read(at: sections.offset, count: Int(sections.count) * 64)
    else { return [] }
    return (0..<Int(sections.count)).map { index in
      let entry = index * 64
      return Section(
        name: table.number(at: entry)!, type: table.number(at: entry + 4)!,
        offset: table.number(at: entry + 24)!, size: table.number(at: entry + 32)!,
        link: table.number(at: entry + 40)!)
    }
  }

  /// Whether the file has a section of that name.
  func hasSection(named name: String) -> Bool {
    let all = allSections
    guard Int(sections.namesIndex) < all.count else { return false }
    let names = all[Int(sections.namesIndex)]
    return all.contains { section in
      guard UInt64(section.name) < names.size,
        case (let place, false) = names.offset.addingReportingOverflow(UInt64(section.name))
      else { return false }
      return file.text(at: place, limit: 64) == name
    }
  }

  /// Whether the file defines a function whose name satisfies `isWanted`. Linear in the number of symbols.
  func definesFunction(in table: SymbolTable, where isWanted: (ArraySlice<UInt8>) -> Bool) -> Bool {
    let all = allSections
    for section in all where section.type == table.rawValue {
      guard Int(section.link) < all.count, section.size <= FileBytes.maximumRead,
        case let strings = all[Int(section.link)], strings.size <= FileBytes.maximumRead,
        let symbols = file.read(at: section.offset, count: Int(section.size)),
        let names = file.read(at: strings.offset, count: Int(strings.size))
      else { continue }
      for index in 0..<symbols.count / 24 {
        let entry = index * 24
        // Functions only: a finished program may contain a copy of a library's variable, which counts as a definition
        // too.
        guard symbols[entry + 4] & 0xF == 2, symbols.number(at: entry + 6, as: UInt16.self) != 0 else {
          continue
        }
        let start = Int(symbols.number(at: entry, as: UInt32.self)!)
        guard start < names.count, let end = names[start...].firstIndex(of: 0) else { continue }
        if isWanted(names[start..<end]) { return true }
      }
    }
    return false
  }

  /// The functions that the file defines.
  func functions(in table: SymbolTable) -> [(address: UInt64, size: UInt64, name: String)] {
    let all = allSections
    var found: [(UInt64, UInt64, String)] = []
    for section in all where section.type == table.rawValue {
      guard Int(section.link) < all.count, section.size <= FileBytes.maximumRead,
        case let strings = all[Int(section.link)], strings.size <= FileBytes.maximumRead,
        let symbols = file.read(at: section.offset, count: Int(section.size)),
        let names = file.read(at: strings.offset, count: Int(strings.size))
      else { continue }
      for entry in stride(from: 0, to: symbols.count / 24 * 24, by: 24)
      where symbols[entry + 4] & 0xF == 2 && symbols.number(at: entry + 6, as: UInt16.self) != 0 {
        let start = Int(symbols.number(at: entry, as: UInt32.self)!)
        guard start < names.count, let end = names[start...].firstIndex(of: 0) else { continue }
        found.append(
          (
            symbols.number(at: entry + 8)!, symbols.number(at: entry + 16)!,
            String(decoding: names[start..<end], as: UTF8.self)
          ))
      }
    }
    return found
  }
}

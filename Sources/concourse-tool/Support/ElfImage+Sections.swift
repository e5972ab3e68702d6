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

  /// The content of the section of that name; empty if it is outside the file. nil if there is no such section.
  func section(named name: String) -> [UInt8]? {
    let all = allSections
    guard Int(sections.namesIndex) < all.count else { return nil }
    let names = all[Int(sections.namesIndex)]
    let found = all.first { section in
      guard UInt64(section.name) < names.size,
        case (let place, false) = names.offset.addingReportingOverflow(UInt64(section.name))
      else { return false }
      return file.text(at: place, limit: 64) == name
    }
    return found.map { section in
      section.size <= FileBytes.maximumRead
        ? file.read(at: section.offset, count: Int(section.size)) ?? [] : []
    }
  }

  /// Whether the file defines a function whose name satisfies `isWanted`. Linear in the number of symbols.
  func definesFunction(in table: SymbolTable, where isWanted: (SymbolName) -> Bool) -> Bool {
    var isFound = false
    visitFunctions(in: table) { _, _, name in
      isFound = isWanted(SymbolName(rest: name))
      return !isFound
    }
    return isFound
  }

  /// The name of a symbol, compared without a search for its end: in a damaged file, all names may end at the end of the
  /// table only.
  struct SymbolName {
    /// The name, and what follows it in the table.
    fileprivate let rest: ArraySlice<UInt8>

    func isEqual(to name: some Collection<UInt8>) -> Bool {
      rest.starts(with: name) && rest.dropFirst(name.count).first == 0
    }

    func starts(with prefix: some Collection<UInt8>) -> Bool { rest.starts(with: prefix) }
  }

  /// A function that the file defines. All share the table of names: a damaged file could give thousands of them the same
  /// name of megabytes.
  struct Function {
    let address: UInt64
    let size: UInt64
    private let bytes: ArraySlice<UInt8>
    /// No more than a compiler would make.
    private static let longestName = 1 << 16

    fileprivate init(_ symbols: [UInt8], _ entry: Int, _ name: ArraySlice<UInt8>) {
      (address, size) = (symbols.number(at: entry + 8)!, symbols.number(at: entry + 16)!)
      bytes = name.prefix(Self.longestName)
    }

    var name: String { String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self) }
  }

  /// The functions that the file defines.
  func functions(in table: SymbolTable) -> [Function] {
    var found: [Function] = []
    visitFunctions(in: table) { symbols, entry, name in
      found.append(Function(symbols, entry, name))
      return true
    }
    return found
  }

  /// Calls `body` with the symbol table, the place in it and the name of each function that the file defines, with what
  /// follows the name in the table, until it returns false.
  private func visitFunctions(in table: SymbolTable, _ body: ([UInt8], Int, ArraySlice<UInt8>) -> Bool) {
    let all = allSections
    // A file has one table of each kind.
    guard let section = all.first(where: { $0.type == table.rawValue }),
      Int(section.link) < all.count, section.size <= FileBytes.maximumRead,
      case let strings = all[Int(section.link)], strings.size <= FileBytes.maximumRead,
      let symbols = file.read(at: section.offset, count: Int(section.size)),
      let names = file.read(at: strings.offset, count: Int(strings.size))
    else { return }
    // Functions only: a finished program may contain a copy of a library's variable, which counts as a definition too.
    for entry in stride(from: 0, to: symbols.count / 24 * 24, by: 24)
    where symbols[entry + 4] & 0xF == 2 && symbols.number(at: entry + 6, as: UInt16.self) != 0 {
      let start = Int(symbols.number(at: entry, as: UInt32.self)!)
      guard start < names.count else { continue }
      if !body(symbols, entry, names[start...]) { return }
    }
  }
}

// MARK: - Thread-local variables

extension ElfImage {
  /// The address of a variable that other objects can see; nil if there is none.
  func variable(named name: String) -> UInt64? {
    let all = allSections
    for section in all where section.type == SymbolTable.dynamic.rawValue {
      guard Int(section.link) < all.count, section.size <= FileBytes.maximumRead,
        let symbols = file.read(at: section.offset, count: Int(section.size))
      else { continue }
      let strings = all[Int(section.link)].offset
      for entry in stride(from: 0, to: symbols.count / 24 * 24, by: 24)
      where symbols[entry + 4] & 0xF == 1 && symbols.number(at: entry + 6, as: UInt16.self) != 0 {
        guard
          case (let start, false) = strings.addingReportingOverflow(
            UInt64(symbols.number(at: entry, as: UInt32.self)!))
        else { continue }
        if file.text(at: start, limit: 256) == name { return symbols.number(at: entry + 8)! }
      }
    }
    return nil
  }

  /// An address where the loader writes the number of this module, for its thread-local variables; nil without any.
  var moduleNumber: UInt64? {
    for section in allSections where section.type == 4 && section.size <= FileBytes.maximumRead {
      guard let entries = file.read(at: section.offset, count: Int(section.size)) else { continue }
      for entry in stride(from: 0, to: entries.count / 24 * 24, by: 24) {
        // R_X86_64_DTPMOD64, of this module itself.
        if entries.number(at: entry + 8, as: UInt64.self)! == 16 { return entries.number(at: entry)! }
      }
    }
    return nil
  }
}

/// Notes, one after another: the sizes of the owner's name and of the content, the type, the name, the content.
extension [UInt8] {
  /// Where the content of Concourse's note of that type is; nil if there is none.
  func concourseNote(ofType wanted: UInt32) -> Range<Int>? { note(ofType: wanted, by: "Concourse\0") }

  /// Where the content of an owner's note of that type is; nil if there is none.
  func note(ofType wanted: UInt32, by owner: String) -> Range<Int>? {
    var place = 0
    while let nameSize: UInt32 = number(at: place), let size: UInt32 = number(at: place + 4),
      let type: UInt32 = number(at: place + 8), nameSize < 256, size < 1 << 16
    {
      let content = place + 12 + (Int(nameSize) + 3) / 4 * 4
      let end = content + (Int(size) + 3) / 4 * 4
      guard end <= count else { return nil }
      if type == wanted, self[place + 12..<place + 12 + Int(nameSize)].elementsEqual(owner.utf8) {
        return content..<content + Int(size)
      }
      place = end
    }
    return nil
  }

  /// The version of Concourse in its notes.
  var concourseVersion: String? {
    concourseNote(ofType: 3).map { String(decoding: self[$0].prefix { $0 != 0 }, as: UTF8.self) }
  }
}

/// The platform of machine code.
struct ElfTarget: Equatable {
  var is64Bit: Bool
  var isLittleEndian: Bool
  /// `e_machine`.
  var machine: UInt16

  var name: String {
    switch machine {
    case 3: "x86 (32 bits)"
    case 40: "arm (32 bits)"
    case 62: is64Bit ? "x86-64" : "x32"
    case 183: isLittleEndian ? "aarch64" : "aarch64, big-endian"
    case 243: is64Bit ? "riscv64" : "riscv32"
    default: "machine \(machine), \(is64Bit ? 64 : 32) bits"
    }
  }
}

/// The properties of a program or shared library that the command needs. The reader does not trust the file: any
/// structure outside it makes the file `damaged`.
struct ElfImage {
  enum Failure: Error, Equatable {
    /// `errno` of the failed open.
    case unreadable(Int32)
    /// The file lacks the ELF signature.
    case notElf
    /// The damaged structure.
    case damaged(String)
    /// Built for another platform, so not read further.
    case foreign(ElfTarget)
  }

  let path: String
  let target: ElfTarget
  /// The loader that the kernel starts (`PT_INTERP`).
  var interpreter: String?
  /// Whether it has a dynamic section.
  var isDynamic = false
  /// `DT_NEEDED`, in order.
  var needed: [String] = []
  var soname: String?
  /// `DT_RPATH`; ignored if there is a `DT_RUNPATH`.
  var rpath: [String] = []
  var runpath: [String] = []
  let file: FileBytes
  /// The tables that `ElfImage+Sections` reads.
  var sections = SectionHeaders()

  /// A segment's location in memory and in the file.
  private struct Segment {
    var address: UInt64
    var offset: UInt64
    var size: UInt64
  }

  init(path: String) throws(Failure) {
    guard let file = FileBytes(path: path) else { throw .unreadable(lastError()) }
    self.path = path
    self.file = file
    guard let ident = file.read(at: 0, count: 20), ident.starts(with: [0x7F, 0x45, 0x4C, 0x46]) else {
      throw .notElf
    }
    let isLittleEndian = ident[5] == 1
    let machine: UInt16 = ident.number(at: 18)!
    target = ElfTarget(
      is64Bit: ident[4] == 2, isLittleEndian: isLittleEndian,
      machine: isLittleEndian ? machine : machine.byteSwapped)
    // The only layout of the platforms that Concourse supports.
    guard target.is64Bit, target.isLittleEndian else { throw .foreign(target) }
    guard let header = file.read(at: 0, count: 64) else { throw .damaged("its header is truncated") }
    try readSegments(header)
    sections = SectionHeaders(
      offset: header.number(at: 40)!, entrySize: header.number(at: 58)!,
      count: header.number(at: 60)!, namesIndex: header.number(at: 62)!)
  }

  private mutating func readSegments(_ header: [UInt8]) throws(Failure) {
    let tableOffset: UInt64 = header.number(at: 32)!
    let entrySize: UInt16 = header.number(at: 54)!
    let count: UInt16 = header.number(at: 56)!
    guard count > 0 else { return }
    guard entrySize == 56, let table = file.read(at: tableOffset, count: Int(count) * 56) else {
      throw .damaged("its program headers are outside the file")
    }
    var loaded: [Segment] = []
    var dynamic: Segment?
    for index in 0..<Int(count) {
      let entry = index * 56
      let type: UInt32 = table.number(at: entry)!
      let segment = Segment(
        address: table.number(at: entry + 16)!, offset: table.number(at: entry + 8)!,
        size: table.number(at: entry + 32)!)
      switch type {
      case 1: loaded.append(segment)
      case 2: dynamic = segment
      case 3:
        guard segment.size <= 4096, let name = file.text(at: segment.offset, limit: Int(segment.size)) else {
          throw .damaged("the name of its loader is outside the file")
        }
        interpreter = name
      default: break
      }
    }
    if let dynamic {
      isDynamic = true
      try readDynamic(dynamic, loaded: loaded)
    }
  }

  private mutating func readDynamic(_ segment: Segment, loaded: [Segment]) throws(Failure) {
    // Linkers write far fewer entries.
    guard segment.size <= 1 << 20, let table = file.read(at: segment.offset, count: Int(segment.size)) else {
      throw .damaged("its dynamic section is outside the file")
    }
    var names: UInt64?
    var entries: [(tag: UInt64, value: UInt64)] = []
    for entry in 0..<table.count / 16 {
      let tag: UInt64 = table.number(at: entry * 16)!
      let value: UInt64 = table.number(at: entry * 16 + 8)!
      if tag == 0 { break }
      if tag == 5 { names = value }
      if [1, 14, 15, 29].contains(tag) { entries.append((tag, value)) }
    }
    guard !entries.isEmpty else { return }
    guard let names, let home = loaded.first(where: { names >= $0.address && names - $0.address < $0.size }),
      case (let start, false) = home.offset.addingReportingOverflow(names - home.address)
    else { throw .damaged("its string table is outside the file") }
    for (tag, value) in entries {
      guard case (let place, false) = start.addingReportingOverflow(value), let text = file.text(at: place)
      else {
        throw .damaged("the name of a library is outside the file")
      }
      switch tag {
      case 1: needed.append(text)
      case 14: soname = text
      case 15: rpath += text.split(separator: ":").map(String.init)
      default: runpath += text.split(separator: ":").map(String.init)
      }
    }
  }
}

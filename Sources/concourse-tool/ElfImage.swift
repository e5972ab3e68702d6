/// What machine code is made for.
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

/// What the command wants to know of a program or a shared library. Reading one does not trust it: whatever
/// does not fit the file makes the file `damaged`.
struct ElfImage {
  enum Failure: Error, Equatable {
    /// `errno` of the attempt to open it.
    case unreadable(Int32)
    /// It does not begin like an ELF file.
    case notElf
    /// What does not fit.
    case damaged(String)
    /// It is for machines that the command is not made for, and was not read further.
    case foreign(ElfTarget)
  }

  let path: String
  let target: ElfTarget
  /// The loader that the kernel is to start (`PT_INTERP`).
  var interpreter: String?
  /// Whether it has a dynamic section.
  var isDynamic = false
  /// `DT_NEEDED`, in order.
  var needed: [String] = []
  var soname: String?
  /// `DT_RPATH`; a loader ignores it where there is a `DT_RUNPATH`.
  var rpath: [String] = []
  var runpath: [String] = []
  let file: FileBytes
  /// The tables of sections that `ElfImage+Sections` reads.
  var sections = SectionHeaders()

  /// A segment's place in memory and in the file.
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
    // The only layout of the systems that Concourse runs on.
    guard target.is64Bit, target.isLittleEndian else { throw .foreign(target) }
    guard let header = file.read(at: 0, count: 64) else { throw .damaged("its header is cut off") }
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
      throw .damaged("its program headers do not lie within it")
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
          throw .damaged("the name of its loader does not lie within it")
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
    // No linker comes near this many entries.
    guard segment.size <= 1 << 20, let table = file.read(at: segment.offset, count: Int(segment.size)) else {
      throw .damaged("its dynamic section does not lie within it")
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
    else { throw .damaged("its table of names does not lie within it") }
    for (tag, value) in entries {
      guard case (let place, false) = start.addingReportingOverflow(value), let text = file.text(at: place)
      else {
        throw .damaged("the name of a library does not lie within it")
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

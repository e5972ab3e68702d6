/// A core dump as the kernel, `gcore` or a debugger writes it. The file is not trusted.
final class CoreFile: TargetMemory {
  typealias Failure = TargetProcess.Failure

  /// A piece of memory, and how much of it the file has.
  private struct Segment {
    var address: UInt64
    var size: UInt64
    var offset: UInt64
    var fileSize: UInt64
    var flags: UInt32
  }

  /// A file that the process had mapped. The dump may leave its contents out.
  private struct Mapping {
    var start: UInt64
    var end: UInt64
    var offset: UInt64
    var path: String
  }

  private let path: String
  private let file: FileBytes
  private let processor: Processor
  private var segments: [Segment] = []
  private var mappings: [Mapping] = []
  private var files: [String: FileBytes?] = [:]
  private var threads: [TargetThread] = []
  private var name = ""
  private var process: Int32 = 0
  private var signal: Int32?
  /// The thread that got it, and `siginfo_t`.
  private var signalled: UInt32 = 0
  private var signalInformation: [UInt8]?

  static func open(_ path: String) throws(Failure) -> TargetProcess {
    guard let file = FileBytes(path: path) else {
      throw Failure(reason: "\(path): \(describe(error: lastError()))")
    }
    let core = try CoreFile(path, file)
    var process = TargetProcess(
      id: core.process, name: core.name, processor: core.processor, memory: core, regions: core.regions(),
      threads: core.threads,
      signal: core.signal, core: path, now: nil)
    if let signal = core.signal {
      process.crash = .init(
        signal: signal, thread: core.signalled, of: core.process, core.signalInformation)
    }
    return process
  }

  private init(_ path: String, _ file: FileBytes) throws(Failure) {
    self.path = path
    self.file = file
    guard let header = file.read(at: 0, count: 64), header.starts(with: [0x7F, 0x45, 0x4C, 0x46]) else {
      throw Failure(reason: "\(path) is not a core dump")
    }
    guard header.starts(with: [0x7F, 0x45, 0x4C, 0x46, 2, 1]),
      let processor = Processor(machine: header.number(at: 18)!)
    else {
      throw Failure(
        reason: "\(path) is of another processor; this command reads core dumps of x86-64 and arm64")
    }
    self.processor = processor
    guard header.number(at: 16, as: UInt16.self) == 4 else {
      throw Failure(reason: "\(path) is not a core dump")
    }
    var count = UInt64(header.number(at: 56, as: UInt16.self)!)
    if count == 0xFFFF {
      // The number of headers is in the first section header.
      guard let section = file.read(at: header.number(at: 40)!, count: 64) else {
        throw damaged("its header")
      }
      count = UInt64(section.number(at: 44, as: UInt32.self)!)
    }
    guard header.number(at: 54, as: UInt16.self) == 56, count < 1 << 20,
      let table = file.read(at: header.number(at: 32)!, count: Int(count) * 56)
    else { throw damaged("its program headers are outside the file") }
    var notes: [Segment] = []
    for index in 0..<Int(count) {
      let entry = index * 56
      var segment = Segment(
        address: table.number(at: entry + 16)!, size: table.number(at: entry + 40)!,
        offset: table.number(at: entry + 8)!, fileSize: table.number(at: entry + 32)!,
        flags: table.number(at: entry + 4)!)
      guard !segment.address.addingReportingOverflow(segment.size).overflow, segment.fileSize <= file.size,
        segment.offset <= file.size - segment.fileSize
      else { throw damaged("it has been truncated") }
      switch table.number(at: entry, as: UInt32.self)! {
      case 1:
        segment.fileSize = min(segment.fileSize, segment.size)
        segments.append(segment)
      case 4: notes.append(segment)
      default: break
      }
    }
    segments.sort { $0.address < $1.address }
    for note in notes { try readNotes(note) }
    guard !threads.isEmpty else { throw damaged("it has no threads") }
    // The kernel's first thread is the one that got the signal; the first of the process has its id.
    threads.sort { $0.id < $1.id }
    for index in threads.indices { threads[index].noteSystemCall(in: self) }
  }

  private func damaged(_ what: String) -> Failure { Failure(reason: "\(path) is damaged: \(what)") }

  // MARK: Notes

  private func readNotes(_ segment: Segment) throws(Failure) {
    guard segment.fileSize < 1 << 28, let notes = file.read(at: segment.offset, count: Int(segment.fileSize))
    else {
      throw damaged("its notes are outside the file")
    }
    var place = 0
    while let nameSize: UInt32 = notes.number(at: place), let size: UInt32 = notes.number(at: place + 4),
      let type: UInt32 = notes.number(at: place + 8)
    {
      let content = place + 12 + (Int(nameSize) + 3) / 4 * 4
      let end = content + (Int(size) + 3) / 4 * 4
      guard end <= notes.count else { throw damaged("a note is outside its table") }
      let bytes = Array(notes[content..<content + Int(size)])
      switch type {
      case 1: readThread(bytes)
      case 3: readProcess(bytes)
      // NT_SIGINFO: the first one is of the thread that got the signal.
      case 0x5349_4749 where signalInformation == nil && threads.count <= 1: signalInformation = bytes
      case 0x4649_4C45: readFiles(bytes)
      // NT_ARM_TLS follows the registers of its thread.
      case 0x401 where processor == .arm64 && !threads.isEmpty:
        threads[threads.count - 1].threadPointer = bytes.number(at: 0)
      default: break
      }
      place = end
    }
  }

  /// NT_PRSTATUS.
  private func readThread(_ bytes: [UInt8]) {
    let count = processor.registers
    guard bytes.count >= 112 + count * 8, let id: UInt32 = bytes.number(at: 32) else { return }
    var thread = TargetThread(id: id)
    thread.take(registers: (0..<count).map { bytes.number(at: 112 + $0 * 8)! }, of: processor)
    if threads.isEmpty, let number: UInt16 = bytes.number(at: 12), number != 0 {
      (signal, signalled) = (Int32(number), id)
    }
    threads.append(thread)
  }

  /// NT_PRPSINFO.
  private func readProcess(_ bytes: [UInt8]) {
    guard bytes.count >= 56 else { return }
    process = bytes.number(at: 24)!
    name = String(decoding: bytes[40..<56].prefix { $0 != 0 }, as: UTF8.self)
  }

  /// NT_FILE: a count, the page size, three numbers for each mapping, and the names.
  private func readFiles(_ bytes: [UInt8]) {
    guard let count: UInt64 = bytes.number(at: 0), let pageSize: UInt64 = bytes.number(at: 8),
      count < UInt64(bytes.count) / 24
    else { return }
    let names = bytes[(16 + Int(count) * 24)...].split(separator: 0, omittingEmptySubsequences: false)
    guard names.count >= Int(count) else { return }
    for index in 0..<Int(count) {
      let entry = 16 + index * 24
      let page: UInt64 = bytes.number(at: entry + 16)!
      mappings.append(
        Mapping(
          start: bytes.number(at: entry)!, end: bytes.number(at: entry + 8)!,
          offset: page.multipliedReportingOverflow(by: pageSize).partialValue,
          path: String(decoding: names[index], as: UTF8.self)))
    }
    mappings.sort { $0.start < $1.start }
  }

  // MARK: Memory

  private func regions() -> [MappedRegion] {
    segments.map { segment in
      let mapping = mapping(of: segment.address)
      return MappedRegion(
        start: segment.address, end: segment.address + segment.size, isReadable: segment.flags & 4 != 0,
        isWritable: segment.flags & 2 != 0, isExecutable: segment.flags & 1 != 0, isPrivate: true,
        offset: mapping.map { $0.offset &+ (segment.address - $0.start) } ?? 0, path: mapping?.path ?? "")
    }
  }

  private func mapping(of address: UInt64) -> Mapping? {
    var low = 0
    var high = mappings.count
    while low < high {
      let middle = (low + high) / 2
      if mappings[middle].end <= address { low = middle + 1 } else { high = middle }
    }
    return low < mappings.count && mappings[low].start <= address ? mappings[low] : nil
  }

  private func segment(of address: UInt64) -> Segment? {
    var low = 0
    var high = segments.count
    while low < high {
      let middle = (low + high) / 2
      if segments[middle].address + segments[middle].size <= address {
        low = middle + 1
      } else {
        high = middle
      }
    }
    return low < segments.count && segments[low].address <= address ? segments[low] : nil
  }

  func read(_ address: UInt64, into bytes: UnsafeMutableRawBufferPointer) -> Bool {
    var place = address
    var rest = bytes
    while !rest.isEmpty {
      guard let segment = segment(of: place) else { return false }
      let within = place - segment.address
      let count: Int
      let found: [UInt8]?
      if within < segment.fileSize {
        count = Int(min(UInt64(rest.count), segment.fileSize - within))
        found = file.read(at: segment.offset + within, count: count)
      } else {
        // Unchanged pages of a program or a library are in its file.
        guard segment.flags & 2 == 0, let mapping = mapping(of: place) else { return false }
        count = Int(min(UInt64(rest.count), mapping.end - place, segment.size - within))
        found = image(mapping.path)?.read(at: mapping.offset &+ (place - mapping.start), count: count)
      }
      guard let found else { return false }
      rest.copyBytes(from: found)
      place += UInt64(count)
      rest = UnsafeMutableRawBufferPointer(rebasing: rest[count...])
    }
    return true
  }

  /// The file at a path that the dump names, if it is the program or the library that the process had mapped: the dump has
  /// its first page, with the ELF header and, as a rule, the build id, and the file begins with the same bytes. A file
  /// that has been replaced does not pass; nor does any other file, which a forged dump could make the report show.
  private func image(_ path: String) -> FileBytes? {
    if let known = files[path] { return known }
    var found: FileBytes?
    for first in mappings where first.path == path && first.offset == 0 && found == nil {
      guard let dumped = dumpedHead(at: first.start), dumped.starts(with: [0x7F, 0x45, 0x4C, 0x46]),
        let candidate = FileBytes(path: path), let head = candidate.read(at: 0, count: Int(Self.head)),
        FileIdentity.withoutSections(head) == FileIdentity.withoutSections(dumped)
      else { continue }
      found = candidate
    }
    files[path] = .some(found)
    return found
  }

  private func dumpedHead(at address: UInt64) -> [UInt8]? {
    guard let segment = segment(of: address), segment.flags & 2 == 0,
      case let within = address - segment.address,
      within < segment.fileSize, segment.fileSize - within >= Self.head
    else { return nil }
    return file.read(at: segment.offset + within, count: Int(Self.head))
  }

  private static let head = UInt64(FileIdentity.head)

  func populated(_ region: MappedRegion) -> [Range<UInt64>] {
    guard let segment = segment(of: region.start), segment.fileSize > 0 else { return [] }
    return [region.start..<region.start + min(segment.fileSize, region.end - region.start)]
  }
}

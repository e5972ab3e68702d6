/// Tells whether a file is the one that a process has mapped.
///
/// The file at the path may be another one: it has been replaced since, or the process runs in another root, or a core
/// dump is of another machine. The build id decides if the mapped file has one, and the beginning of the file otherwise. A
/// device and a number do not: some file systems show other ones in /proc.
enum FileIdentity {
  /// The least page.
  static let head = 4096

  static func isMapped(
    _ path: String, in memory: any TargetMemory, at start: UInt64, notes: [Range<UInt64>]
  ) -> Bool {
    guard let file = FileBytes(path: path) else { return false }
    for place in notes {
      guard let bytes = memory.bytes(at: place.lowerBound, count: place.count), let own = bytes.buildID else {
        continue
      }
      return buildID(of: file) == own
    }
    let count = Int(min(UInt64(head), file.size))
    guard count > 64, let mapped = memory.bytes(at: start, count: count),
      let beginning = file.read(at: 0, count: count)
    else { return false }
    return withoutSections(mapped) == withoutSections(beginning)
  }

  /// Of a program's table, and of its notes. A file that is not trusted may name the same notes many times.
  private static let (mostEntries, mostNotes): (UInt16, UInt64) = (1000, 1 << 20)

  private static func buildID(of file: FileBytes) -> [UInt8]? {
    guard let header = file.read(at: 0, count: 64), header.starts(with: [0x7F, 0x45, 0x4C, 0x46, 2, 1]),
      header.number(at: 54, as: UInt16.self) == 56, let count: UInt16 = header.number(at: 56),
      count < mostEntries,
      let table = file.read(at: header.number(at: 32)!, count: Int(count) * 56)
    else { return nil }
    var read: UInt64 = 0
    for entry in stride(from: 0, to: table.count, by: 56) where table.number(at: entry, as: UInt32.self) == 4
    {
      let size: UInt64 = table.number(at: entry + 32)!
      read += min(size, mostNotes)
      guard size < 1 << 16, read <= mostNotes,
        let notes = file.read(at: table.number(at: entry + 8)!, count: Int(size))
      else { continue }
      if let found = notes.buildID { return found }
    }
    return nil
  }

  /// An ELF header does not say where its sections are: a stripped copy of a program stands for one with symbols.
  static func withoutSections(_ head: [UInt8]) -> [UInt8] {
    var head = head
    for place in Array(40..<48) + Array(58..<64) { head[place] = 0 }
    return head
  }
}

extension [UInt8] {
  /// The build id in these notes; nil if there is none.
  var buildID: [UInt8]? {
    note(ofType: 3, by: "GNU\0").map { Array(self[$0]) }.flatMap { $0.isEmpty ? nil : $0 }
  }
}

import Glibc

/// A program or library in the memory of the process.
struct MappedImage {
  /// Without what the kernel adds if the file has been removed or replaced.
  let path: String
  /// Where the kernel still has the contents of a file that has been removed or replaced: its name in /proc/PID/map_files.
  private let removed: String?
  /// What to add to an address of the file's to get one of the process's.
  let bias: UInt64
  let start: UInt64
  let end: UInt64
  /// Where its notes are, in the process.
  let notes: [Range<UInt64>]
  /// The size of its thread-local variables.
  let threadLocalSize: UInt64

  /// - Parameter region: that of the start of the file.
  init?(region: MappedRegion, end: UInt64, in memory: any TargetMemory) {
    guard region.offset == 0, let header = memory.bytes(at: region.start, count: 64),
      header.starts(with: [0x7F, 0x45, 0x4C, 0x46, 2, 1]),
      let table: UInt64 = header.number(at: 32), let entrySize: UInt16 = header.number(at: 54),
      entrySize == 56,
      let count: UInt16 = header.number(at: 56), count < 1000, table < 1 << 20,
      let headers = memory.bytes(at: region.start &+ table, count: Int(count) * 56)
    else { return nil }
    var first: UInt64?
    var notes: [(address: UInt64, size: UInt64)] = []
    var threadLocalSize: UInt64 = 0
    for index in 0..<Int(count) {
      let entry = index * 56
      let type: UInt32 = headers.number(at: entry)!
      let address: UInt64 = headers.number(at: entry + 16)!
      let offset: UInt64 = headers.number(at: entry + 8)!
      let size: UInt64 = headers.number(at: entry + 40)!
      if type == 1 && first == nil { first = address &- offset }
      if type == 4 && size < 1 << 16 { notes.append((address, size)) }
      if type == 7 { threadLocalSize = size }
    }
    guard let first else { return nil }
    let bias = region.start &- first
    self.bias = bias
    self.notes = notes.compactMap { note in
      let start = note.address &+ bias
      return start.addingReportingOverflow(note.size).overflow ? nil : start..<start + note.size
    }
    self.threadLocalSize = threadLocalSize
    let suffix = " (deleted)"
    let isRemoved = region.path.hasSuffix(suffix)
    path = isRemoved ? String(region.path.dropLast(suffix.count)) : region.path
    removed = isRemoved ? String(region.start, radix: 16) + "-" + String(region.end, radix: 16) : nil
    start = region.start
    self.end = end
  }

  func contains(_ address: UInt64) -> Bool { start <= address && address < end }

  /// The file that a process has mapped, also if it runs in another root or the file has been replaced. nil if it cannot
  /// be read: another file at its path would give wrong names.
  func file(of process: TargetProcess) -> String? {
    let folder = "/proc/\(process.alive)"
    let places: [String]
    if process.core != nil {
      places = [path]
    } else if let removed {
      // Reading the first needs a privilege, as other files than the program do.
      places = [folder + "/map_files/" + removed, folder + "/exe"]
    } else {
      places = [folder + "/root" + path, path]
    }
    return places.first { FileIdentity.isMapped($0, in: process.memory, at: start, notes: notes) }
  }

  /// The images of a process.
  static func all(of process: TargetProcess) -> [MappedImage] {
    var found: [MappedImage] = []
    let regions = process.regions
    for (index, region) in regions.enumerated()
    where region.offset == 0 && region.isReadable && !region.path.isEmpty {
      // An image's segments follow one another; the last may end in anonymous memory (.bss).
      var last = index
      while last + 1 < regions.count, regions[last + 1].path == region.path, regions[last + 1].offset > 0 {
        last += 1
      }
      var end = regions[last].end
      if last + 1 < regions.count, regions[last + 1].start == end, regions[last + 1].path.isEmpty {
        end = regions[last + 1].end
      }
      if let image = MappedImage(region: region, end: end, in: process.memory) { found.append(image) }
    }
    return found
  }
}

/// The record that the engine exports, `concourse_inspection` in CConcourse.
struct InspectionRecord {
  /// The layout that this command reads.
  static let layout: UInt32 = 1
  /// The most shards of a pool.
  static let mostShards = 64
  /// The place of the number of shards, after the types.
  static let shardsIndex = 6 + 40

  var image: MappedImage
  /// Concourse's version; a library older than 1.0.0 has none.
  var version: String?
  /// From a thread's thread pointer to the engine's state of it.
  var threadState: Int64
  /// 0 until the process has used the runtime.
  var roots: UInt64
  var width: UInt64
  var cap: UInt64
  var threads: UInt64
  var types: [UInt64]
  /// The shards of the pool, 1 to `mostShards`. A library that does not say has one.
  var shards = 1

  /// The number of shards that the process says it has, as far as it can be believed.
  static func shards(_ word: UInt64) -> Int { Int(min(max(word, 1), UInt64(mostShards))) }

  static func find(in process: TargetProcess, _ images: [MappedImage]) throws(TargetProcess.Failure)
    -> InspectionRecord
  {
    let memory = process.memory
    var best: InspectionRecord?
    for image in images {
      for notes in image.notes {
        guard let bytes = memory.bytes(at: notes.lowerBound, count: notes.count),
          let address = EngineNote.record(2, in: notes, memory),
          let layout: UInt32 = memory.number(at: address), let size: UInt32 = memory.number(at: address &+ 4)
        else { continue }
        guard layout == Self.layout, size >= 56, size < 1 << 16, size % 8 == 0,
          let words = memory.bytes(at: address, count: Int(size))
        else {
          throw TargetProcess.Failure(
            reason:
              "process \(process.id) (\(process.name)) runs on another version of Concourse: the layout of "
              + "\(image.path) is \(layout), this command reads layout \(Self.layout)")
        }
        func word(_ index: Int) -> UInt64 { words.number(at: index * 8)! }
        let record = InspectionRecord(
          image: image, version: bytes.concourseVersion, threadState: Int64(bitPattern: word(1)),
          roots: word(2), width: word(3), cap: word(4), threads: word(5),
          types: (6..<min(Int(size) / 8, Self.shardsIndex)).map(word),
          shards: size / 8 > Self.shardsIndex ? Self.shards(word(Self.shardsIndex)) : 1)
        // A program may have a second copy that it does not use.
        if best == nil || best!.roots == 0 { best = record }
      }
    }
    guard let best else {
      let hasEnded = process.core == nil && !TargetProcess.isAlive(process.id)
      throw TargetProcess.Failure(
        reason: "process \(process.id) (\(process.name)) "
          + (hasEnded ? "has ended" : "does not run on Concourse"))
    }
    return best
  }
}

/// The notes of the engine that have the distance from their content to a record in memory.
enum EngineNote {
  /// The address of the record that the note of a type leads to; nil if the notes have none of that type.
  static func record(_ type: UInt32, in notes: Range<UInt64>, _ memory: any TargetMemory) -> UInt64? {
    guard let bytes = memory.bytes(at: notes.lowerBound, count: notes.count),
      let offset = bytes.concourseNote(ofType: type)?.lowerBound,
      let distance: UInt64 = bytes.number(at: offset)
    else { return nil }
    return notes.lowerBound &+ UInt64(offset) &+ distance
  }
}

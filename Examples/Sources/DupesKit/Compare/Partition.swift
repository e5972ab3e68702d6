import Glibc

/// Splits files of one size into sets of files with the same bytes.
///
/// All files of a set are read side by side, window by window. In each window a file is compared byte by
/// byte with one representative of each content met so far; the files that agree go on together to the next
/// window. So each file is read once, a file that differs is dropped where it differs, and two files end up
/// in one set only after all their bytes were compared. No hash decides anything here.
struct Partition {
  let reader: WindowReader
  let scratch: Scratch
  let findings: Findings
  let counters: Counters
  let cancellation: Cancellation

  /// The sets of two files or more among `files`, which all have `size` bytes.
  func sets(among files: [FileID], size: Int64) -> [[FileID]] {
    var found: [[FileID]] = []
    var unfinished = [Part(files: files, offset: 0)]
    while let part = unfinished.popLast() {
      let length = Partition.window(at: part.offset, size: size)
      let end = part.offset + Int64(length)
      var crowds = [part.files]
      if part.files.count > Partition.crowd {
        // Too many contents may meet here: part them by a hash first, to bound memory and comparisons.
        crowds = sieve(part.files, at: part.offset, length)
      }
      for crowd in crowds {
        for equal in split(crowd, at: part.offset, length) {
          if end == size {
            found.append(equal)
          } else {
            unfinished.append(Part(files: equal, offset: end))
          }
        }
      }
    }
    return found
  }

  /// More files than this are parted by a hash before their bytes are compared.
  static let crowd = 64

  /// The first window is small, as most files differ early; the later ones are large, to pay for opening.
  static func window(at offset: Int64, size: Int64) -> Int {
    Int(min(size - offset, offset == 0 ? 16 << 10 : 256 << 10))
  }

  private struct Part {
    let files: [FileID]
    let offset: Int64
  }

  /// The sets of files that have the same bytes in this window.
  private func split(_ files: [FileID], at offset: Int64, _ length: Int) -> [[FileID]] {
    let stride = (length + 1 + 63) & ~63  // the representatives lie one behind the other
    var contents = 0
    scratch.labels.removeAll(keepingCapacity: true)
    for file in files {
      scratch.reserve((contents + 1) * stride, keeping: contents * stride)
      guard read(file, at: offset, length, to: scratch.memory + contents * stride) else {
        scratch.labels.append(-1)
        continue
      }
      let candidate = scratch.memory + contents * stride
      let match = (0..<contents).first { memcmp(scratch.memory + $0 * stride, candidate, length) == 0 }
      scratch.labels.append(Int32(match ?? contents))
      if match == nil { contents += 1 }
    }
    counters.compared(length * files.count)

    var sets: [[FileID]] = []
    for content in 0..<Int32(contents) {
      let members = scratch.labels.lazy.filter { $0 == content }.count
      if members < 2 { continue }
      sets.append(zip(files, scratch.labels).compactMap { $1 == content ? $0 : nil })
    }
    return sets
  }

  /// Parts `files` by a hash of this window. Files apart differ for sure; files together may differ too.
  private func sieve(_ files: [FileID], at offset: Int64, _ length: Int) -> [[FileID]] {
    var hashed: [HashedFile] = []
    for file in files {
      if let hash = hash(file, at: offset, length) { hashed.append(HashedFile(hash: hash, file: file)) }
    }
    return HashedFile.crowds(&hashed)
  }

  /// The hash of a window of `file`, or nil when the file had to be left out.
  func hash(_ file: FileID, at offset: Int64, _ length: Int) -> UInt64? {
    scratch.reserve(length + 1, keeping: 0)
    guard read(file, at: offset, length, to: scratch.memory) else { return nil }
    return WindowHash.hash(UnsafeRawBufferPointer(start: scratch.memory, count: length))
  }

  // SAFETY: every caller reserves `length + 1` bytes at `memory` in its scratch before it calls.
  private func read(
    _ file: FileID, at offset: Int64, _ length: Int, to memory: UnsafeMutableRawPointer
  ) -> Bool {
    if cancellation.isCancelled { return false }
    guard let reason = reader.read(file, at: offset, length, to: memory, path: &scratch.path) else {
      return true
    }
    findings.skip(reader.catalogue.path(of: file), reason)
    return false
  }
}

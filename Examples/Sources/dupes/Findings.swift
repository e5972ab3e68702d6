import ExampleSupport

/// Why a file or directory was left out.
enum Reason: Sendable, Equatable {
  case system(errno: Int32)
  case changed
  case shorterThanItsSize

  var text: String {
    switch self {
    case .system(let code): describe(errno: code)
    case .changed: "changed while it was being read"
    case .shorterThanItsSize: "ended before its size"
    }
  }
}

/// A file or directory that could not be read, and so is missing from the results.
struct Skipped: Sendable {
  let path: Bytes
  let reason: Reason
}

/// What has been found so far. A serial queue is the lock, and one that a worker does not wait for: `async` hands a
/// result in.
// SAFETY: the variables are GUARDED BY `queue`, a serial queue.
final class Findings: @unchecked Sendable {
  private let queue = DispatchQueue(label: "dupes.findings")
  private var sets: [[FileID]] = []
  private var skipped: [Skipped] = []

  func add(_ newSets: [[FileID]]) {
    if newSets.isEmpty { return }
    queue.async { self.sets += newSets }
  }

  func skip(_ path: Bytes, _ reason: Reason) {
    queue.async { self.skipped.append(Skipped(path: path, reason: reason)) }
  }

  /// Everything handed in before this call.
  var contents: (sets: [[FileID]], skipped: [Skipped]) { queue.sync { (sets, skipped) } }
}

/// What a search found, in an order that is the same in each run.
struct Outcome: Sendable {
  /// Two files or more with the same bytes.
  struct DuplicateSet: Sendable {
    let size: Int64
    /// Each file by all its names.
    let files: [[Bytes]]
  }

  let sets: [DuplicateSet]
  private(set) var skipped: [Skipped] = []
  /// The signal that ended the search early; the results are incomplete then.
  let cancellation: Int32?
  /// How many names were looked at.
  let fileCount: Int

  init(_ job: Job) {
    let (sets, skipped) = job.findings.contents
    let catalogue = job.index.contents
    cancellation = job.cancellation
    fileCount = catalogue.records.count
    self.sets = sets.map { set in
      DuplicateSet(
        size: catalogue.records[set[0]].size,
        files: set.map { catalogue.names(of: $0) }.sorted { $0[0].precedes($1[0]) })
    }.sorted { $0.files[0][0].precedes($1.files[0][0]) }
    // A file may be skipped by the hash and by the comparison.
    for one in skipped.sorted(by: { $0.path.precedes($1.path) }) where self.skipped.last?.path != one.path {
      self.skipped.append(one)
    }
  }

  /// How many files could go, and how many bytes that would free.
  var waste: (files: Int, bytes: Int64) {
    sets.reduce(into: (0, 0)) { total, set in
      total.0 += set.files.count - 1
      total.1 += Int64(set.files.count - 1) * set.size
    }
  }

  var summary: String {
    "\(fileCount) files, \(sets.count) sets of duplicates, \(waste.files) files (\(waste.bytes) bytes) more than needed"
      + (skipped.isEmpty ? "" : ", \(skipped.count) skipped")
  }

  /// A name a line, and an empty line after each set. Further names of a file come after its first one, each with a
  /// tab in front. A name may have a newline in it, so `terminator` can be NUL instead.
  func text(terminator: UInt8) -> Bytes {
    var output: Bytes = []
    for set in sets {
      for names in set.files {
        for (place, name) in names.enumerated() {
          if place > 0 { output.append(UInt8(ascii: "\t")) }
          output += name
          output.append(terminator)
        }
      }
      output.append(terminator)
    }
    return output
  }
}

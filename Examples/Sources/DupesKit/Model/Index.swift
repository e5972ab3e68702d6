/// Every file found so far, by size: the readers–writer pattern. Writers submit barrier items to a
/// concurrent queue and go on with their walk; readers ask with `sync` and run side by side.
// SAFETY: the mutable state below is GUARDED BY `queue`: only barrier items write it, and every read is
// inside a `sync` on the same queue, which no barrier item overlaps.
final class Index: @unchecked Sendable {
  private let queue = DispatchQueue(label: "dupes.index", attributes: .concurrent)
  private var catalogue = Catalogue()

  /// Adds the files of one directory. One barrier item for a whole batch: the exclusive turn costs more
  /// than an insertion, so it is paid per directory and not per file.
  func add(_ records: [FileRecord], of listing: Listing) {
    queue.async(flags: .barrier) {
      self.catalogue.add(records, of: listing)
    }
  }

  /// How many files are known now, for the progress line.
  var fileCount: Int {
    queue.sync { catalogue.records.count }
  }

  /// All that was added before this call. The queue is first in, first out: this read starts after every
  /// barrier item submitted before it. The copy shares its storage, so it is cheap.
  var contents: Catalogue {
    queue.sync { catalogue }
  }
}

/// The index as a plain value: once the walk is over nobody writes, and nobody needs to ask a queue.
struct Catalogue: Sendable {
  private(set) var records: [FileRecord] = []
  private(set) var listings: [Listing] = []

  /// The files of one size form a chain through `next`, the latest first. An array for each size would be
  /// tens of thousands of small allocations, most of them for sizes that occur once.
  struct Chain {
    var head: FileID = .max
    var count: UInt32 = 0
  }
  private(set) var chains: [Int64: Chain] = [:]
  private var next: [FileID] = []

  mutating func add(_ batch: [FileRecord], of listing: Listing) {
    let number = UInt32(listings.count)
    listings.append(listing)
    for var record in batch {
      record.listing = number
      let file = FileID(records.count)
      records.append(record)
      next.append(
        chains[record.size, default: Chain()].push(file)
      )
    }
  }

  /// The files of a chain, appended to `files`.
  func appendFiles(of chain: Chain, to files: inout [FileID]) {
    var file = chain.head
    while file != .max {
      files.append(file)
      file = next[Int(file)]
    }
  }

  /// Replaces `path` by the file's path with a NUL at its end.
  func getTerminatedPath(of file: FileID, into path: inout Bytes) {
    let record = records[Int(file)]
    path.removeAll(keepingCapacity: true)
    listings[Int(record.listing)].appendTerminatedPath(of: record, to: &path)
  }

  func path(of file: FileID) -> Bytes {
    var path: Bytes = []
    getTerminatedPath(of: file, into: &path)
    path.removeLast()
    return path
  }
}

extension Catalogue.Chain {
  /// Puts `file` at the head and returns what was there.
  fileprivate mutating func push(_ file: FileID) -> FileID {
    defer {
      head = file
      count += 1
    }
    return head
  }
}

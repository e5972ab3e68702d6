import ExampleSupport
import Glibc

/// Every file found so far, by size: readers and a writer on a concurrent queue. A writer submits a barrier item and
/// does not wait for it; readers use `sync`, and run at the same time as each other.
// SAFETY: `catalogue` is GUARDED BY `queue`: only barrier items write it, and each read is inside of a `sync`.
final class Index: @unchecked Sendable {
  private let queue = DispatchQueue(label: "dupes.index", attributes: .concurrent)
  private var catalogue = Catalogue()

  /// Adds the files of one directory, in one barrier item: it costs more than an insertion.
  func add(_ records: [FileRecord]) {
    queue.async(flags: .barrier) { self.catalogue.add(records) }
  }

  /// How many names are known now, for the progress line.
  var fileCount: Int { queue.sync { catalogue.records.count } }

  /// All that was added before this call. The queue is first in, first out, so this read starts after each barrier
  /// item that was submitted before it. The copy shares its storage.
  var contents: Catalogue { queue.sync { catalogue } }
}

/// The number of a file in the catalogue.
typealias FileID = Int

/// The index as a value, for when the walk has ended and nothing is added any more.
struct Catalogue: Sendable {
  private(set) var records: [FileRecord] = []
  /// All files; of hard links only the first that was added.
  private(set) var bySize: [Int64: [FileID]] = [:]
  /// The first name of each file that may have several, and the others.
  private var firstNames: [FileIdentity: FileID] = [:]
  private var otherNames: [FileID: [FileID]] = [:]

  mutating func add(_ batch: [FileRecord]) {
    for record in batch {
      let file = records.count
      records.append(record)
      if record.mayHaveOtherNames {
        if let first = firstNames[record.identity] {
          otherNames[first, default: []].append(file)
          continue
        }
        firstNames[record.identity] = file
      }
      bySize[record.size, default: []].append(file)
    }
  }

  /// All names of a file, in order.
  func names(of file: FileID) -> [Bytes] {
    guard let others = otherNames[file] else { return [records[file].path] }
    return ([file] + others).map { records[$0].path }.sorted { $0.precedes($1) }
  }
}

/// Which file it is, whatever its name: hard links to one file have one identity.
struct FileIdentity: Hashable, Sendable {
  let device: UInt64
  let inode: UInt64

  init(_ status: stat) {
    device = UInt64(status.st_dev)
    inode = UInt64(status.st_ino)
  }
}

/// A name that the walk has found, and the file that it led to.
struct FileRecord: Sendable {
  let path: Bytes
  let identity: FileIdentity
  let size: Int64
  let mayHaveOtherNames: Bool
  /// In nanoseconds, from `st_ctime`: the kernel moves it at each change of the content, and unlike `st_mtime` a
  /// program cannot set it back.
  private let changed: Int64

  init(_ path: Bytes, _ status: stat) {
    self.path = path
    identity = FileIdentity(status)
    size = Int64(status.st_size)
    mayHaveOtherNames = status.st_nlink > 1
    changed = FileRecord.changeTime(status)
  }

  /// Whether `status`, taken later, shows the same file with the same content.
  func matches(_ status: stat) -> Bool {
    identity == FileIdentity(status) && size == Int64(status.st_size)
      && changed == FileRecord.changeTime(status)
  }

  private static func changeTime(_ status: stat) -> Int64 {
    Int64(status.st_ctim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_ctim.tv_nsec)
  }
}

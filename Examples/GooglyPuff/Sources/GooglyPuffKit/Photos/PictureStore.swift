import Concourse
import ExampleSupport
import FoundationEssentials
import Glibc

/// The encoded pictures: files in a temporary directory, and a cache of those used most recently.
///
/// Files are named by number, never by a name from outside.
// SAFETY: the mutable state is GUARDED BY `queue`, a serial queue whose `sync` is the lock.
package final class PictureStore: @unchecked Sendable {
  package enum Kind: String, Sendable, CaseIterable {
    case photo, thumbnail
    /// The photo with googly eyes.
    case googly
    case googlyThumbnail = "googly-thumbnail"
  }

  /// Why the store could not be made.
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  private struct Key: Hashable {
    let id: Int
    let kind: Kind
  }

  package let directory: URL
  private let budget: Int
  private let queue = DispatchQueue(label: "googlypuff.cache")
  private var cached: [Key: (bytes: [UInt8], use: Int)] = [:]
  private var size = 0
  private var uses = 0
  /// Empties the cache when the system runs short of memory.
  private let pressure: any DispatchSourceMemoryPressure

  /// - Parameter budget: the size of the cache in bytes.
  package init(budget: Int = 48 << 20) throws {
    let parent = FileManager.default.temporaryDirectory.path
    var template = Array("\(parent)/googlypuff-XXXXXX".utf8CString)
    // SAFETY: the template is a local array that ends with a zero.
    guard mkdtemp(&template) != nil else {
      throw Failure(description: "cannot make a directory in \(parent): \(describe(errno: errno))")
    }
    directory = URL(
      filePath: String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
    self.budget = budget
    // Made only now: a source must not be released before it was activated, as it would be if `init` failed.
    pressure = DispatchSource.makeMemoryPressureSource(
      eventMask: [.warning, .critical], queue: .global(qos: .utility))
    pressure.setEventHandler { [weak self] in self?.dropCache() }
    pressure.activate()
  }

  deinit { pressure.cancel() }

  /// Writes a picture to its file.
  package func write(_ bytes: [UInt8], _ kind: Kind, of id: Int) throws {
    let key = Key(id: id, kind: kind)
    try Data(bytes).write(to: file(key))
    queue.sync { keep(bytes, as: key) }
  }

  package func read(_ kind: Kind, of id: Int) -> [UInt8]? {
    let key = Key(id: id, kind: kind)
    if let bytes = queue.sync(execute: { use(key) }) { return bytes }
    guard let data = try? Data(contentsOf: file(key)) else { return nil }
    let bytes = [UInt8](data)
    queue.sync { keep(bytes, as: key) }
    return bytes
  }

  package func remove(_ id: Int) {
    for kind in Kind.allCases {
      let key = Key(id: id, kind: kind)
      queue.sync { forget(key) }
      try? FileManager.default.removeItem(at: file(key))
    }
  }

  /// Empties the cache; the files stay.
  package func dropCache() {
    queue.sync {
      cached = [:]
      size = 0
    }
  }

  package var cachedBytes: Int { queue.sync { size } }

  /// Deletes all files while other threads still write. The directory is renamed first, so that later writes find no
  /// directory. A write that found it before the rename may create its file while the directory is being removed, which
  /// then fails. Each thread has at most one such write, so the removal is tried again a bounded number of times.
  package func close() {
    let removed = directory.appendingPathExtension("removed")
    try? FileManager.default.moveItem(at: directory, to: removed)
    for _ in 0..<1_000 where FileManager.default.fileExists(atPath: removed.path) {
      try? FileManager.default.removeItem(at: removed)
    }
  }

  private func file(_ key: Key) -> URL { directory.appending(path: "\(key.id)-\(key.kind.rawValue).jpg") }

  // MARK: On the queue

  private func use(_ key: Key) -> [UInt8]? {
    uses += 1
    cached[key]?.use = uses
    return cached[key]?.bytes
  }

  private func keep(_ bytes: [UInt8], as key: Key) {
    forget(key)
    uses += 1
    cached[key] = (bytes, uses)
    size += bytes.count
    guard size > budget else { return }
    // Evicting down to half the budget keeps this rare.
    for (key, _) in cached.sorted(by: { $0.value.use < $1.value.use }) where size > budget / 2 { forget(key) }
  }

  private func forget(_ key: Key) {
    if let old = cached.removeValue(forKey: key) { size -= old.bytes.count }
  }
}

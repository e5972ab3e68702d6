import Synchronization

/// Numbers for the progress line. Workers add to them often and the line reads them ten times a second, so
/// they are atomics and not state behind a queue.
final class Counters: Sendable {
  private let total = Atomic<Int>(0)
  private let files = Atomic<Int>(0)
  private let bytes = Atomic<Int>(0)

  // ORDERING: relaxed throughout this file; each number stands for itself, is only shown to a human, and
  // may lag behind the others.
  func setFilesToCompare(_ count: Int) { total.store(count, ordering: .relaxed) }
  func finished(files count: Int) { files.wrappingAdd(count, ordering: .relaxed) }
  func compared(_ count: Int) { bytes.wrappingAdd(count, ordering: .relaxed) }

  // ORDERING: relaxed, as above.
  var filesToCompare: Int { total.load(ordering: .relaxed) }
  var filesCompared: Int { files.load(ordering: .relaxed) }
  var bytesCompared: Int { bytes.load(ordering: .relaxed) }
}

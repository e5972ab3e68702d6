import ExampleSupport
import Glibc
import Synchronization

/// Numbers for the progress line. Workers add to them often and the line reads them ten times a second, so they are
/// atomics and not state behind a queue.
final class Counters: Sendable {
  private let total = Atomic<Int>(0)
  private let files = Atomic<Int>(0)
  private let bytes = Atomic<Int>(0)

  // ORDERING: relaxed, here and below; each number is shown by itself, and may lag behind the others.
  func setFilesToCompare(_ count: Int) { total.store(count, ordering: .relaxed) }
  func finished(files count: Int) { files.wrappingAdd(count, ordering: .relaxed) }
  func compared(_ count: Int) { bytes.wrappingAdd(count, ordering: .relaxed) }

  // ORDERING: relaxed, as above.
  var filesToCompare: Int { total.load(ordering: .relaxed) }
  var filesCompared: Int { files.load(ordering: .relaxed) }
  var bytesCompared: Int { bytes.load(ordering: .relaxed) }
}

/// The progress line on the terminal. A timer on the main queue, an `asyncAfter` that arms itself again, draws it ten
/// times a second.
// SAFETY: `tick` and `isDrawn` are OWNED BY the main queue.
final class Progress: @unchecked Sendable {
  private let job: Job
  private var tick: DispatchWorkItem?
  private var isDrawn = false

  init(of job: Job) { self.job = job }

  /// Arms the timer for the next drawing.
  func start() {
    dispatchPrecondition(condition: .onQueue(.main))
    let item = DispatchWorkItem { [self] in
      draw(text)
      start()
    }
    tick = item
    DispatchQueue.main.asyncAfter(deadline: .now() + .milliseconds(100), execute: item)
  }

  /// Stops the timer and clears the line.
  func stop() {
    dispatchPrecondition(condition: .onQueue(.main))
    tick?.cancel()
    tick = nil
    if isDrawn { draw("") }
  }

  private var text: String {
    let counters = job.counters
    if counters.filesToCompare == 0 { return "dupes: \(job.index.fileCount) files found" }
    return "dupes: \(counters.filesCompared) of \(counters.filesToCompare) files compared, "
      + "\(counters.bytesCompared >> 20) MiB read"
  }

  private func draw(_ text: String) {
    // Carriage return, erase to the end of the line. Without a newline, the next drawing overwrites this one.
    _ = writeAll(Bytes("\r\u{1B}[K\(text)".utf8), to: STDERR_FILENO)
    isDrawn = true
  }
}

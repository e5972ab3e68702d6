import Glibc

/// The line on the terminal that says how far the search is. It lives on the main queue: a timer, that is
/// an `asyncAfter` which arms itself again, draws the line ten times a second.
// SAFETY: `tick` and `isDrawn` are OWNED BY the main queue, which each method checks.
final class Progress: @unchecked Sendable {
  private var tick: DispatchWorkItem?
  private var isDrawn = false
  private let search: Search

  init(of search: Search) {
    self.search = search
  }

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

  /// Stops the timer and clears the line, so that what follows starts on an empty one.
  func stop() {
    dispatchPrecondition(condition: .onQueue(.main))
    tick?.cancel()
    tick = nil
    if isDrawn { draw("") }
  }

  private var text: String {
    let counters = search.counters
    let total = counters.filesToCompare
    if total == 0 { return "dupes: \(search.index.fileCount) files found" }
    return "dupes: \(counters.filesCompared) of \(total) files compared, "
      + "\(counters.bytesCompared >> 20) MiB read"
  }

  private func draw(_ text: String) {
    // Carriage return, erase to the end of the line, text: no newline, the next drawing overwrites it.
    writeToStandardError("\r\u{1B}[K" + text)
    isDrawn = true
  }
}

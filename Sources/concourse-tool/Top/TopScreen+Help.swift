import ConcourseRecording

/// The page of keys and columns.
extension TopScreen {
  func help() -> [ScreenLine] {
    let keys = [
      ("q  Ctrl-C", "quit"), ("Up Down  j k", "select a queue; PgUp, PgDn, Home and End too"),
      ("Enter", "look into the queue: times, functions, history; Esc leads back"),
      ("t", "tasks of Swift Concurrency: what they do, and where"),
      ("s  R", "sort by the next column; reverse the order"),
      ("r d w x b n", "sort by rate, depth, wait, run, busy or name"),
      ("/", "show only queues whose label contains a text; Esc shows all"),
      ("f  Space", "freeze the view; again to go on"), ("a", "also show idle queues"), ("?  h", "this page"),
    ]
    let terms = [
      ("RATE", "items started, in a second"), ("DEPTH", "items that wait for their start"),
      ("WAIT p99", "from submission to start: median and 99th percentile"),
      ("RUN p99", "from start to end; BUSY: the sum, as part of the interval"),
      ("LOST", RecordedRun.remedy),
    ]
    let left = columns < 80 ? 11 : 16
    func row(_ title: String, _ text: String) -> [ScreenLine] {
      var lines = [ScreenLine("  " + fit(title, left), .bold)]
      for word in text.split(separator: " ") {
        let start = lines.last!.width == left + 2
        if !start, lines.last!.width + 1 + DisplayText.width(String(word)) > columns {
          lines.append(ScreenLine(fit("", left + 2)))
        }
        lines[lines.count - 1].add((lines.last!.width == left + 2 ? "" : " ") + word)
      }
      return lines
    }
    return [ScreenLine("KEYS", .heading)] + keys.flatMap(row) + [ScreenLine("COLUMNS", .heading)]
      + terms.flatMap(row)
  }
}

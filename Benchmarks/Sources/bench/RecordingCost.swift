/// What recording costs: rows of the C program on Concourse's library, without and with the flight recorder, in turn.
/// Judged by medians of the rounds.
struct RecordingCost {
  /// The most that one event may take, in nanoseconds.
  private static let eventLimit = 60.0
  /// The most that the items of 10 µs, and a `sync` that does not sleep, may take longer.
  private static let shareLimit = 1.03
  private static let tenMicroseconds = "ten-microsecond-items-f"

  /// Rows, and the events that one operation records: none for a `sync` that does not sleep.
  private static let rows = [("async-f", 3), ("global-async-f", 3), ("sync-f", 0), (tenMicroseconds, 3)]

  /// The rounds of which the medians are taken.
  static func rounds(_ options: Options) -> Int { max(options.rounds, options.quick ? 1 : 10) }

  let program: String
  let library: Library

  /// Medians, in nanoseconds for one operation.
  struct Result {
    let row: String
    let events: Int
    let off: Double
    let on: Double

    private var perEvent: Double { (on - off) / Double(events) }
    private var eventCell: String {
      events == 0 ? "no event" : (perEvent < 0 ? "-" : "") + "\(fixed(abs(perEvent), 1)) ns"
    }
    var holds: Bool {
      if events == 0 || row == RecordingCost.tenMicroseconds { return on <= off * RecordingCost.shareLimit }
      return perEvent <= RecordingCost.eventLimit
    }

    static let head = ["recording", "off", "on", "an event", "on / off"]
    /// A row of the table.
    var cells: [String] {
      [
        row, amount(off, "ns"), amount(on, "ns"), eventCell, fixed(on / off, 3),
      ]
    }
  }

  func measure(_ options: Options) throws(Failure) -> [Result] {
    // Each thread of the program records into a ring of its own, in a file that ends with the process.
    let settings = ["CONCOURSE_RECORDER=8192", "CONCOURSE_RECORDER_DIR=/tmp"]
    let recording = Library(path: library.path, environment: library.environment + settings)
    var results: [Result] = []
    for (row, events) in Self.rows {
      var times: [[Double]] = [[], []]
      for _ in 1...Self.rounds(options) {
        for (index, library) in [library, recording].enumerated() {
          let contestant = Contestant(name: "", program: program, library: library)
          guard let reading = try contestant.measure(row, quick: options.quick)[row] else {
            throw Failure("\(program) --row \(row): no line for \(row)")
          }
          times[index].append(reading.value)
        }
      }
      results.append(Result(row: row, events: events, off: median(times[0]), on: median(times[1])))
    }
    return results
  }
}

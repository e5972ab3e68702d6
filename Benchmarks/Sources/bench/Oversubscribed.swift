import Glibc

/// Waits of one program on two libraries, beside processes that compute: how late a wait becomes where there are more
/// threads than processors. Each library with and without the right to raise its threads.
struct Oversubscribed {
  /// Busy processes beside the program.
  static let loads = [0, 2, 8]
  /// Within these limits a difference is noise.
  static let (mostRatio, mostDifference) = (1.25, 10.0)

  let libraries: Libraries
  let program: String
  let options: Options

  /// What the program may do: as it was started, or without the capability to raise its threads.
  private enum Privilege: String {
    case asStarted = "privileged"
    case none = "unprivileged"
  }

  /// Prints a table for each privilege, then PASS or what was worse. Returns the exit status.
  func run() throws(Failure) -> Int32 {
    try libraries.verifyMapped(by: program)
    let rows = try Contestant(name: "", program: program, library: libraries.both[0].library).rows()
      .map(\.name).filter(options.wants(row:))
    guard !rows.isEmpty else { throw Failure("no row has such a name") }
    var tables: [String] = []
    var worse: [String] = []
    for privilege in geteuid() == 0 ? [Privilege.none, .asStarted] : [.none] {
      var lines = [
        [privilege.rawValue, "busy", "incumbent", "p99", "Concourse", "p99", "ratio", "of p99", ""]
      ]
      for row in rows {
        for load in Self.loads {
          let (cells, holds) = try measure(row, beside: load, privilege)
          lines.append(cells)
          if !holds { worse.append("\(privilege.rawValue) \(row) \(load)") }
        }
      }
      tables.append(table(lines))
    }
    print((tables + [verdict(missed: worse)]).joined(separator: "\n\n"))
    return options.check && !worse.isEmpty ? 1 : 0
  }

  private func measure(
    _ row: String, beside load: Int, _ privilege: Privilege
  ) throws(Failure) -> (cells: [String], holds: Bool) {
    let busy = try BusyProcesses(load, program)
    defer { busy.end() }
    var command = [program, "--row", row]
    if privilege == .none && geteuid() == 0 {
      command = ["/usr/bin/setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"] + command
    }
    // Microseconds of all rounds, for each library.
    var samples: [[Double]] = [[], []]
    for _ in 1...options.rounds {
      for (index, entry) in libraries.both.enumerated() {
        let text = try output(of: command[0], Array(command.dropFirst()), on: entry.library)
        let values = text.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
        guard !values.isEmpty else { throw Failure("\(program) --row \(row): cannot read: \(text)") }
        samples[index] += values.map { $0 / 1_000 }
      }
    }
    let quantiles = [0.5, 0.99].map { (quantile(samples[0], $0), quantile(samples[1], $0)) }
    let holds = quantiles.allSatisfy {
      $0.1 <= $0.0 * Self.mostRatio || $0.1 <= $0.0 + Self.mostDifference
    }
    let ratios = quantiles.map { fixed($0.0 / max($0.1, 0.001), 2) }
    let times = quantiles.map { [amount($0.0, "µs"), amount($0.1, "µs")] }
    return (
      [row, String(load), times[0][0], times[1][0], times[0][1], times[1][1]] + ratios
        + [holds ? "" : "WORSE"], holds
    )
  }
}

private func quantile(_ values: [Double], _ part: Double) -> Double {
  values.sorted()[min(Int(Double(values.count) * part), values.count - 1)]
}

/// Processes that compute beside the measured program. Each ends with this program, however it ends.
private struct BusyProcesses {
  private var children: [pid_t] = []

  init(_ count: Int, _ program: String) throws(Failure) {
    for _ in 0..<count { children.append(try start(program, ["--busy"], on: nil)) }
  }

  func end() {
    for child in children { kill(child, SIGKILL) }
    for child in children { _ = status(of: child) }
  }
}

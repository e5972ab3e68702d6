import Glibc

/// Waits of one program on two libraries, beside processes that compute: how late things become where there
/// are more threads than processors. Each library with and without the right to raise its threads.
struct Oversubscribed {
  static let program = "bench-oversubscribed"
  /// Busy processes beside the program.
  static let loads = [0, 2, 8]
  /// Within these the difference is noise: it is no worse.
  static let (mostRatio, mostDifference) = (1.25, 10.0)

  let incumbent: Library
  let concourse: Library
  /// The folder with the programs.
  let programs: String
  let options: Options

  /// What the program may do: as it was started, or without the capability to raise its threads.
  private enum Privilege: String {
    case asStarted = "privileged"
    case none = "unprivileged"
  }

  /// Microseconds of all rounds on one library.
  private struct Samples {
    var values: [Double] = []
    func quantile(_ part: Double) -> Double {
      let sorted = values.sorted()
      return sorted[min(Int(Double(sorted.count) * part), sorted.count - 1)]
    }
  }

  func run() throws(Failure) -> DropIn.Result {
    let path = "\(programs)/\(Self.program)"
    for library in [incumbent, concourse] { try library.verifyMapped(by: path) }
    let rows = try output(of: path, ["--list"], on: incumbent).split(separator: "\n")
      .map { String($0.prefix { $0 != "\t" }) }.filter(options.wants(row:))
    guard !rows.isEmpty else { throw Failure("no row has such a name") }
    var result = DropIn.Result()
    for privilege in geteuid() == 0 ? [Privilege.none, .asStarted] : [.none] {
      var lines = [
        [privilege.rawValue, "busy", "incumbent", "p99", "Concourse", "p99", "ratio", "of p99", ""]
      ]
      for row in rows {
        for load in Self.loads {
          let (cells, holds) = try measure(row, beside: load, privilege, path)
          lines.append(cells)
          if !holds { result.missed.append("\(privilege.rawValue) \(row) \(load)") }
        }
      }
      result.parts.append(table(lines))
    }
    return result
  }

  private func measure(
    _ row: String, beside load: Int, _ privilege: Privilege, _ path: String
  ) throws(Failure) -> (cells: [String], holds: Bool) {
    let busy = try BusyProcesses(load, path)
    defer { busy.end() }
    var command = [path, "--row", row]
    if privilege == .none && geteuid() == 0 {
      command = ["/usr/bin/setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"] + command
    }
    var samples = [Samples(), Samples()]
    for _ in 1...options.rounds {
      for (index, library) in [incumbent, concourse].enumerated() {
        let text = try output(of: command[0], Array(command.dropFirst()), on: library)
        let values = text.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
        guard !values.isEmpty else { throw Failure("\(path) --row \(row): cannot read: \(text)") }
        samples[index].values += values.map { $0 / 1_000 }
      }
    }
    let (theirs, ours) = (samples[0], samples[1])
    let quantiles = [0.5, 0.99].map { (theirs.quantile($0), ours.quantile($0)) }
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

/// Processes that compute beside what is measured. Each ends with this program, whatever becomes of it.
private final class BusyProcesses {
  private var children: [pid_t] = []

  init(_ count: Int, _ program: String) throws(Failure) {
    for _ in 0..<count {
      var actions = posix_spawn_file_actions_t()
      posix_spawn_file_actions_init(&actions)
      defer { posix_spawn_file_actions_destroy(&actions) }
      children.append(try start(program, ["--busy"], environment: ownEnvironment(), &actions))
    }
  }

  func end() {
    for child in children { kill(child, SIGKILL) }
    for child in children { _ = status(of: child) }
    children = []
  }

  deinit { end() }
}

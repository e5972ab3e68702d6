/// What the command line asks for. The script `run` builds the programs, passes its arguments on, and documents them.
struct Options {
  enum Runtime: String { case incumbent, concourse }

  var rounds = 5
  private(set) var roundsGiven = false
  var quick = false
  var check = false
  var json = false
  /// Words of row names; a row is measured if its name contains one of them. Empty: every row.
  var rows: [String] = []
  /// nil: both, in turn.
  var only: Runtime?
  var rivals = false
  /// The libdispatch.so to compare with `incumbentLibrary`, by finished programs; nil: the two builds of the Swift rows.
  var dropIn: String?
  var incumbentLibrary: String?
  /// With `dropIn`: waits beside busy processes, instead of the rows about speed.
  var oversubscribed = false
  /// With `dropIn`: what recording costs, instead of the rows about speed.
  var recording = false
  /// With `dropIn`: throughput by processors, instead of the rows about speed.
  var scaling = false
  /// With `scaling`: milliseconds that a process measures; nil: `Scaling.point`.
  var point: Int?
  /// With `dropIn`: rivals that are installed.
  var also: [String] = []
  /// With `dropIn`: the checkout to publish into; then all rows are measured, the Swift rows too.
  var results: String?
  /// What the measured code was built with, for the published results.
  var about = ""

  init(_ arguments: [String]) throws(Failure) {
    var arguments = arguments[...]
    func value(_ what: String) throws(Failure) -> String {
      guard let value = arguments.popFirst() else { throw Failure(what) }
      return value
    }
    while let argument = arguments.popFirst() {
      switch argument {
      case "--rounds":
        let need = "--rounds needs a number above zero"
        guard let number = Int(try value(need)), number > 0 else { throw Failure(need) }
        rounds = number
        roundsGiven = true
      case "--only":
        let need = "--only needs incumbent or concourse"
        guard let runtime = Runtime(rawValue: try value(need)) else { throw Failure(need) }
        only = runtime
      case "--rows": rows += try value("--rows needs names").split(separator: ",").map(String.init)
      case "--drop-in": dropIn = try value("--drop-in needs a library")
      case "--incumbent-library": incumbentLibrary = try value("--incumbent-library needs a path")
      case "--results": results = try value("--results needs a folder")
      case "--about": about = try value("--about needs a text")
      case "--point":
        let need = "--point needs a number of milliseconds above zero"
        guard let number = Int(try value(need)), number > 0 else { throw Failure(need) }
        point = number
      case "--also": also.append(try value("--also needs a rival"))
      case "--scaling": scaling = true
      case "--oversubscribed": oversubscribed = true
      case "--recording": recording = true
      case "--rivals": rivals = true
      case "--quick": quick = true
      case "--check": check = true
      case "--json": json = true
      default: throw Failure("unknown argument \(argument)")
      }
    }
    if quick && !roundsGiven { rounds = 1 }
    if (dropIn == nil) != (incumbentLibrary == nil) {
      throw Failure("--drop-in and --incumbent-library need each other")
    }
    if dropIn != nil && (json || only != nil) {
      throw Failure("--json and --only cannot be combined with --drop-in")
    }
    if rivals && (oversubscribed || recording || scaling) {
      throw Failure("--rivals cannot be combined with --oversubscribed, --recording or --scaling")
    }
    if scaling && (oversubscribed || recording || check || dropIn == nil) {
      throw Failure("--scaling cannot be combined with --oversubscribed, --recording or --check")
    }
    if point != nil && !scaling { throw Failure("--point is for --scaling") }
    if results != nil && (oversubscribed || !rows.isEmpty) {
      throw Failure("--results cannot be combined with --oversubscribed or --rows")
    }
    if recording && (oversubscribed || !rows.isEmpty) {
      throw Failure("--recording cannot be combined with --oversubscribed or --rows")
    }
    if check && only != nil { throw Failure("--check compares two runtimes; --only leaves one") }
  }

  func wants(row: String) -> Bool {
    rows.isEmpty || rows.contains { wanted in containsWords(row, wanted) }
  }
}

/// Whether the words of `wanted` stand side by side in `name`: "sync" is not in "async-work-item".
private func containsWords(_ name: String, _ wanted: String) -> Bool {
  let name = name.split(separator: "-")
  let wanted = wanted.split(separator: "-")
  guard wanted.count <= name.count else { return false }
  return (0...(name.count - wanted.count)).contains { start in
    name[start..<(start + wanted.count)].elementsEqual(wanted)
  }
}

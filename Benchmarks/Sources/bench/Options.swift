/// What the command line asks for.
struct Options {
  enum Runtime: String { case incumbent, concourse }

  var rounds = 5
  var quick = false
  var check = false
  var json = false
  var help = false
  /// Words of row names; a row is measured if its name contains one of them. Empty: every row.
  var rows: [String] = []
  /// nil: both, in turn.
  var only: Runtime?
  /// The script that builds the rivals; nil: without rivals.
  var rivals: String?
  var rivalsScript = "Rivals/run"
  /// The libdispatch.so to be compared with `incumbentLibrary`, by finished programs; nil: the two builds
  /// of the Swift rows.
  var dropIn: String?
  var incumbentLibrary: String?
  /// With `dropIn`: the checkout whose published results are to be written; then all rows are measured.
  var results: String?
  /// What the measured code was built with, for the published results.
  var about = ""
  /// With `dropIn`: its waits beside busy processes, instead of the rows about speed.
  var oversubscribed = false

  static let usage = """
    usage: bench [--rounds N] [--rows WORD[,WORD...]] [--quick] [--only incumbent|concourse]
                 [--rivals] [--rivals-script PATH] [--check] [--json]
           bench --drop-in LIBRARY --incumbent-library LIBRARY
                 [--rounds N] [--rows WORD[,WORD...]] [--quick] [--check] [--oversubscribed]
                 [--results CHECKOUT [--about TEXT] [--rivals]]

      --rounds N   measure each row N times on each runtime, in turn, and keep the minimum (5)
      --rows       only rows whose name contains one of these words, or words-in-a-row
      --quick      a tenth of the work and one round: shows that everything runs, not how fast
      --only       one runtime, no ratios
      --rivals     also oneTBB and Go, on fan-out, hop and parallel loop
      --check      exit with status 1 if a limit is missed
      --json       print the report as JSON
      --drop-in    the same programs on two libraries: this libdispatch.so and the incumbent's
      --oversubscribed  how long waits take on either beside 0, 2 and 8 busy processes, with and without
                   the right to raise threads
      --results    all rows of both kinds in one run, written to RESULTS.md, results.svg and README.md of CHECKOUT

    Exit status: 0; 1 a limit is missed (with --check); 2 something could not be measured.
    """

  init(_ arguments: [String]) throws(Failure) {
    var arguments = arguments[...]
    var wantsRivals = false
    var roundsGiven = false
    while let argument = arguments.popFirst() {
      switch argument {
      case "--rounds":
        guard let text = arguments.popFirst(), let number = Int(text), number > 0 else {
          throw Failure("--rounds needs a number above zero")
        }
        rounds = number
        roundsGiven = true
      case "--rows":
        guard let text = arguments.popFirst() else { throw Failure("--rows needs names") }
        rows += text.split(separator: ",").map(String.init)
      case "--only":
        guard let text = arguments.popFirst(), let runtime = Runtime(rawValue: text) else {
          throw Failure("--only needs incumbent or concourse")
        }
        only = runtime
      case "--rivals-script":
        guard let path = arguments.popFirst() else { throw Failure("--rivals-script needs a path") }
        rivalsScript = path
      case "--drop-in":
        guard let path = arguments.popFirst() else { throw Failure("--drop-in needs a library") }
        dropIn = path
      case "--incumbent-library":
        guard let path = arguments.popFirst() else { throw Failure("--incumbent-library needs a path") }
        incumbentLibrary = path
      case "--results":
        guard let path = arguments.popFirst() else { throw Failure("--results needs a folder") }
        results = path
      case "--about":
        guard let text = arguments.popFirst() else { throw Failure("--about needs a text") }
        about = text
      case "--oversubscribed": oversubscribed = true
      case "--rivals": wantsRivals = true
      case "--quick": quick = true
      case "--check": check = true
      case "--json": json = true
      case "--help": help = true
      default: throw Failure("unknown argument \(argument); --help names them")
      }
    }
    if quick && !roundsGiven { rounds = 1 }
    if wantsRivals { rivals = rivalsScript }
    if (dropIn == nil) != (incumbentLibrary == nil) {
      throw Failure("--drop-in and --incumbent-library need each other")
    }
    if dropIn != nil && (json || only != nil || rivals != nil && results == nil) {
      throw Failure("--json, --only and --rivals do not go with --drop-in")
    }
    if results != nil && (dropIn == nil || oversubscribed || !rows.isEmpty) {
      throw Failure("--results needs --drop-in, and goes with neither --oversubscribed nor --rows")
    }
    if oversubscribed && dropIn == nil { throw Failure("--oversubscribed needs --drop-in") }
    if check && only != nil { throw Failure("--check compares two runtimes; --only leaves one") }
  }

  func wants(row: String) -> Bool {
    rows.isEmpty || rows.contains { wanted in containsWords(row, wanted) }
  }
}

/// Why a comparison could not be made; ends the program with status 2.
struct Failure: Error {
  let message: String
  init(_ message: String) { self.message = message }
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

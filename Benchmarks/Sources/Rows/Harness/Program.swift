import CBench
import Glibc

// The one place where the two builds of the rows differ. Re-exported, so that every row sees the runtime under test and
// no row names it.
#if CONCOURSE
  @_exported import Concourse
#else
  @_exported import Dispatch
#endif

/// A number that a row finds out; reported and judged by itself.
struct Figure: Sendable {
  enum Unit: String, Sendable {
    /// Nanoseconds for one operation.
    case nanoseconds = "ns"
    /// Seconds of wall time for all operations together.
    case seconds = "s"
    /// Bytes of private resident memory for one object.
    case bytes = "bytes"
    /// Operations in a second.
    case perSecond = "1/s"
    /// Context switches of all threads together.
    case switches = "switches"
  }

  let name: String
  let unit: Unit
  let question: String

  init(_ name: String, _ unit: Unit, _ question: String) {
    self.name = name
    self.unit = unit
    self.question = question
  }
}

/// What a row found out about one figure.
struct Measurement {
  /// In the figure's unit.
  let value: Double
  /// How many operations the value stands for; equal on every runtime.
  let operations: Int
  /// A number that the work computed and the row verified. The driver compares it between the runtimes, so neither can
  /// have done less.
  let check: Int
}

/// How much work to do.
struct Scale: Sendable {
  let quick: Bool

  /// The number of operations for one pass: `full`, or a tenth of it in a quick run.
  func count(_ full: Int) -> Int { quick ? max(full / 10, 1) : full }
}

/// What the driver asks of a Swift program. Each measurement is a process of its own, so that no row inherits another
/// row's threads, caches or heap.
struct Request {
  let row: String
  let scale: Scale
  /// How long a row that asks for a time measures.
  private(set) var milliseconds = 300

  /// Reads the command line. Answers `--list` and `--library`, and ends the process then.
  ///
  /// - Parameter rows: the name and the figures of each row of the program.
  init(rows: [(name: String, figures: [Figure])]) {
    var name: String?
    var quick = false
    var arguments = CommandLine.arguments.dropFirst()
    while let argument = arguments.popFirst() {
      switch argument {
      case "--list":
        for row in rows {
          for figure in row.figures {
            print("\(figure.name)\t\(figure.unit.rawValue)\t\(figure.question)\t\(row.name)")
          }
        }
        exit(0)
      case "--library": exit(bench_print_dispatch_libraries())
      case "--quick": quick = true
      case "--row": name = arguments.popFirst()
      case "--milliseconds":
        guard let number = arguments.popFirst().flatMap(Int.init), number > 0 else {
          fail("--milliseconds needs a number above zero")
        }
        milliseconds = number
      default: fail("usage: --list | --library | --row NAME [--quick | --milliseconds N]")
      }
    }
    guard let name, rows.contains(where: { $0.name == name }) else { fail("no such row; --list names them") }
    row = name
    scale = Scale(quick: quick)
  }

  /// Prints what was measured, one line for each figure.
  func answer(_ figures: [Figure], _ measurements: [Measurement]) {
    verify(measurements.count, equals: figures.count, "a measurement for each figure")
    for (figure, result) in zip(figures, measurements) {
      print("\(figure.name) \(result.value) \(result.operations) \(result.check)")
    }
  }
}

/// Ends the process with a message unless both are equal: a wrong result must never become a number.
func verify<Value: Equatable>(_ observed: Value, equals expected: Value, _ what: String) {
  guard observed != expected else { return }
  fail("\(what): expected \(expected), observed \(observed)")
}

func fail(_ message: String) -> Never {
  var line = "benchmark failed: \(message)\n"
  // SAFETY: the bytes are used within the closure only.
  line.withUTF8 { bytes in _ = write(STDERR_FILENO, bytes.baseAddress, bytes.count) }
  exit(70)
}

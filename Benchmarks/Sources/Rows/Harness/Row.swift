/// One question, asked in the same words of each runtime.
struct Row: Sendable {
  /// What `Measurement.value` counts.
  enum Unit: String, Sendable {
    /// Nanoseconds for one operation.
    case nanoseconds = "ns"
    /// Seconds of wall time for all operations together.
    case seconds = "s"
    /// Bytes of private resident memory for one object.
    case bytes = "bytes"
    /// Context switches of all threads together.
    case switches = "switches"
  }

  /// One of the numbers that a row finds out; reported and judged by itself.
  struct Figure: Sendable {
    let name: String
    let unit: Unit
    let question: String

    init(_ name: String, _ unit: Unit, _ question: String) {
      self.name = name
      self.unit = unit
      self.question = question
    }
  }

  /// What to call it when it is to be measured.
  let name: String
  let figures: [Figure]
  /// Returns a measurement for each figure, in their order.
  let measure: @Sendable (Scale) -> [Measurement]

  /// A row with a single figure, of the same name.
  init(
    _ name: String, _ unit: Unit, _ question: String,
    measure: @escaping @Sendable (Scale) -> Measurement
  ) {
    self.name = name
    figures = [Figure(name, unit, question)]
    self.measure = { [measure($0)] }
  }

  /// A row that finds out several numbers by the same work.
  init(_ name: String, _ figures: [Figure], measure: @escaping @Sendable (Scale) -> [Measurement]) {
    self.name = name
    self.figures = figures
    self.measure = measure
  }
}

/// What a row found out.
struct Measurement {
  /// In the row's unit.
  let value: Double
  /// How many operations the value stands for; equal on every runtime.
  let operations: Int
  /// A number computed by the work itself and already compared with what it must be; the driver
  /// compares it once more between the runtimes, so neither can have done less.
  let check: Int
}

/// How much work to do.
struct Scale: Sendable {
  let quick: Bool

  /// The number of operations for one pass: `full`, or a tenth of it in a quick run.
  func count(_ full: Int) -> Int { quick ? max(full / 10, 1) : full }
}

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
  }

  let name: String
  let unit: Unit
  let question: String
  let measure: @Sendable (Scale) -> Measurement

  init(
    _ name: String, _ unit: Unit, _ question: String,
    measure: @escaping @Sendable (Scale) -> Measurement
  ) {
    self.name = name
    self.unit = unit
    self.question = question
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

import CBench

/// What a row about timers that never fire finds out.
struct TimerMemory {
  /// Nanoseconds for a timer: making it, cancelling it, and what else the runtime does for it.
  let time: Double
  /// Bytes for a timer while all of them are armed.
  let peak: Double
  /// Bytes for a timer that are still there after all are cancelled and released.
  let left: Double

  static func figures(_ row: String, _ what: String) -> [Row.Figure] {
    [
      .init("\(row)-time", .nanoseconds, "\(what): time for making and cancelling one"),
      .init("\(row)-peak", .bytes, "\(what): growth of private resident memory for each armed timer"),
      .init("\(row)-left", .bytes, "\(what): what is left of it when all are cancelled"),
    ]
  }

  func measurements(_ count: Int, check: Int) -> [Measurement] {
    [time, peak, left].map { Measurement(value: $0, operations: count, check: check) }
  }

  /// Measures one round of `arm` and `disarm` after a small one as a warm-up, in a process where little
  /// else has run. `disarm` returns when everything is released.
  init(count: Int, arm: (Int) -> Void, disarm: (Int) -> Void) {
    prepareToMeasureMemory()
    let few = min(count, 1_000)
    arm(few)
    disarm(few)
    bench_trim_heap()
    _ = privateResidentBytes()
    let before = privateResidentBytes()
    var nanoseconds = elapsed { arm(count) }
    let peak = privateResidentBytes() - before
    nanoseconds += elapsed { disarm(count) }
    bench_trim_heap()
    let left = privateResidentBytes() - before
    time = Double(nanoseconds) / Double(count)
    self.peak = Double(max(peak, 0)) / Double(count)
    self.left = Double(max(left, 0)) / Double(count)
  }
}

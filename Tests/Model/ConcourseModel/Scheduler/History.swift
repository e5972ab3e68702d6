/// Hashes that represent the happens-before order.
///
/// Two prefixes of executions whose steps depend on each other in the same way lead to the same state, however
/// independent steps were interleaved. So each coroutine carries a hash of its last step, of its own previous step, and
/// of what the step depends on. For a load that is the store that it reads; for a store, its neighbours in the
/// modification order and the reads before it. So equal hashes of all coroutines mean the same programs, the same
/// stores in the same modification orders, and the same happens-before order: everything that decides which values
/// later loads may return. Each state is explored once.
///
/// The hashes exclude addresses: a coroutine's history determines which word it touches.
enum History {
  static func mix(_ first: UInt64, _ second: UInt64) -> UInt64 {
    var mixed = (first ^ (second &* 0x9E37_79B9_7F4A_7C15)) &+ 0xD1B5_4A32_D192_ED03
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

/// The steps on something that is not an atomic: a cell, a log, the sleepers on a word.
struct StepOrder {
  /// The history of the last step that wrote.
  private var lastWrite: UInt64 = 0
  /// The sum of the histories of the reads since then.
  private var reads: UInt64 = 0

  /// - Parameter history: that of the coroutine that makes the step.
  /// - Returns: its history after the step.
  mutating func add(isRead: Bool, to history: UInt64) -> UInt64 {
    var history = History.mix(history, lastWrite)
    if isRead {
      reads &+= history
    } else {
      history = History.mix(history, reads)
      lastWrite = history
      reads = 0
    }
    return history
  }
}

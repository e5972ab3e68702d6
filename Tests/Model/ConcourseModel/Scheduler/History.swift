/// Hashes that represent the happens-before order.
///
/// Two prefixes of executions whose steps have the same happens-before order lead to the same state, however
/// independent steps were interleaved. So each coroutine carries a hash of its last step, of its own previous step, and
/// of the earlier steps on the same word. Equal hashes of all coroutines mean equal states, and each state is explored
/// once.
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

/// The scheduler's record of one word during one execution.
final class Location {
  /// Its number in order of first use, for traces.
  let number: Int
  /// The history of the last step that wrote.
  var lastWrite: UInt64 = 0
  /// The sum of the histories of the reads since then.
  var reads: UInt64 = 0
  /// The clock that an acquiring step on the word obtains.
  var released = VectorClock()

  init(number: Int) { self.number = number }
}

/// Hashes that stand for "what happened before what".
///
/// Two prefixes of executions whose steps have the same happens-before order lead to the same state,
/// whatever the order in which independent steps were interleaved. So each coroutine carries a hash of
/// its last step, its own step before and the steps on the same word that it came after. Equal hashes
/// of all coroutines mean equal states, and a state explored once need not be explored again.
///
/// The words' addresses do not go in: which word a coroutine touches follows from its own history.
enum History {
  static func mix(_ first: UInt64, _ second: UInt64) -> UInt64 {
    var mixed = (first ^ (second &* 0x9E37_79B9_7F4A_7C15)) &+ 0xD1B5_4A32_D192_ED03
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

/// What the scheduler knows of one word during one execution.
final class Location {
  /// Its number in order of first use, for traces.
  let number: Int
  /// The history of the last step that was not a read.
  var lastWrite: UInt64 = 0
  /// The sum of the histories of the reads since.
  var reads: UInt64 = 0
  /// What an acquiring step on the word gets to know.
  var released = VectorClock()

  init(number: Int) { self.number = number }
}

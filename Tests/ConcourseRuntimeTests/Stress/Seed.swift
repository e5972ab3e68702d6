@testable import ConcourseRuntime

/// Pseudo-random numbers from a seed (SplitMix64).
struct Dice: RandomNumberGenerator, Sendable {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }

  /// True once in `sides` calls on average.
  mutating func hits(oneIn sides: Int) -> Bool { Int.random(in: 0..<sides, using: &self) == 0 }
}

/// The seed of this run: from CONCOURSE_SEED to repeat one, else a new one; printed for that purpose.
enum Seed {
  static let ofRun: UInt64 = {
    let given = Process.environment("CONCOURSE_SEED").flatMap { UInt64($0) }
    let seed = given ?? UInt64.random(in: 1...UInt64(UInt32.max))
    print("CONCOURSE_SEED=\(seed)")
    return seed
  }()

  /// The generator of one test, or of one of its threads.
  static func dice(_ number: Int = 0, of test: String = #function) -> Dice {
    var seed = ofRun &+ UInt64(number) &* 0x1_0001
    for byte in test.utf8 { seed = seed &* 31 &+ UInt64(byte) }
    return Dice(seed: seed)
  }
}

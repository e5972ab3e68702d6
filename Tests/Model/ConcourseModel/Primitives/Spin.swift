/// How long the engine spins before it sleeps, in the model: once shows every race that spinning can
/// have, and each further round only multiplies the schedules.
///
/// Takes the place of Park/Spin.swift.
enum Spin {
  static let lockRounds = 1
  static let waitRounds = 1
  static let searchRounds = 1
  static let lingerRounds = 1
  static let lingerLooks = 1
  static let measuredEntries: UInt32 = 1

  static func wait(rounds: Int, until done: () -> Bool) -> Bool {
    for _ in 0..<rounds {
      if done() { return true }
      Processor.pause()
    }
    return done()
  }
}

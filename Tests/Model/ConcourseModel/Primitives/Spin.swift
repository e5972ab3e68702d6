/// The engine's spinning, in the model: once. One round shows every race of spinning; more rounds only multiply the
/// schedules.
///
/// Replaces Park/Spin.swift.
enum Spin {
  #if LEDGER
    // The engine's own numbers.
    static let waitRounds = 400
    static let searchRounds = 40
    static let lingerRounds = 64
    static let lingerLooks = 2
    static let measuredEntries: UInt32 = 4
  #else
    static let waitRounds = 1
    static let searchRounds = 1
    static let lingerRounds = 1
    static let lingerLooks = 1
    static let measuredEntries: UInt32 = 1
  #endif

  static func note(processors: Int) {}

  static func untilTaken(_ take: () -> Bool) -> Bool {
    #if LEDGER
      var (rounds, pauses) = (0, 2)
      while !take() {
        if rounds >= 128 { return false }
        for _ in 0..<pauses { Processor.pause() }
        rounds += pauses
        pauses = min(pauses * 2, 16)
      }
      return true
    #else
      take()
    #endif
  }

  static func wait(rounds: Int, until done: () -> Bool) -> Bool {
    for _ in 0..<rounds {
      if done() { return true }
      Processor.pause()
    }
    return done()
  }
}

/// Finds few switches that still fail (delta debugging): it leaves out ever smaller parts of the list until no single
/// switch can be left out.
struct Shrinker {
  /// Runs some lists of switches, perhaps at the same time. Of the first that fails as before, the switches that were made
  /// and its place; nil if none does. An empty list of lists is never asked for.
  typealias Trial = ([[ScheduleSwitch]]) -> (place: Int, made: [ScheduleSwitch])?

  /// The best list so far. It fails.
  private(set) var switches: [ScheduleSwitch]
  /// Lists that were tried.
  private(set) var trials = 0
  private let most: Int

  /// - Parameter most: Trials after which the best list is good enough.
  init(_ switches: [ScheduleSwitch], most: Int = 2000) {
    self.switches = switches
    self.most = most
  }

  mutating func shrink(_ trial: Trial) {
    // Most runs need few of the switches that chance has made: first all but the last ones are left out.
    if !switches.isEmpty { _ = attempt([[]], trial) }
    var parts = 2
    while switches.count > 1 && trials < most {
      parts = min(parts, switches.count)
      let candidates = Self.split(switches.count, parts).map { part in
        Array(switches[..<part.lowerBound] + switches[part.upperBound...])
      }
      if attempt(candidates, trial) {
        parts = max(2, min(parts - 1, switches.count))
      } else if parts < switches.count {
        parts = min(parts * 2, switches.count)
      } else {
        break
      }
    }
    if switches.count == 1 && trials < most { _ = attempt([[]], trial) }
  }

  private mutating func attempt(_ candidates: [[ScheduleSwitch]], _ trial: Trial) -> Bool {
    guard let (place, made) = trial(candidates) else {
      trials += candidates.count
      return false
    }
    trials += place + 1
    // A switch that could not be followed is not needed. What was made may not repeat the list otherwise.
    let candidate = candidates[place]
    switches = made.count <= candidate.count ? made : candidate
    return true
  }

  private static func split(_ count: Int, _ parts: Int) -> [Range<Int>] {
    (0..<parts).map { count * $0 / parts..<count * ($0 + 1) / parts }
  }
}

import CExploring
import ConcourseSchedules

/// A failure, its switches reduced to those that it needs.
struct FoundFailure {
  let failure: ScheduleFailure
  /// The schedule that found it: 0 for the first.
  let number: Int
  /// Only with the switches that it needs; without a strategy.
  var schedule: Schedule
  /// How many switches the run had that found it.
  let switchesBefore: Int
  /// Of the run that was recorded last.
  var result: ScheduleResult
  /// Whether the same switches fail again in the same way.
  var repeats: Bool
  /// Whether the user has ended the work at it. Then the switches are those so far.
  var isInterrupted = false
  /// How many lists of switches were tried.
  var trials = 0

  /// Nanoseconds after which the best list so far is taken.
  private static let longest: UInt64 = 30_000_000_000

  /// Repeats the failure by its switches, leaves out those that it does not need, and records the rest.
  /// - Parameter most: Lists of switches that are tried, about.
  init(
    _ failed: Exploration.Failed, shrinks: Bool, trials most: Int = 1500, _ runner: ScheduleRunner
  ) throws(ScheduleRun.Failure) {
    failure = failed.failure
    number = failed.schedule.number
    switchesBefore = Int(failed.result.header.made_count)
    var schedule = failed.schedule
    schedule.strategy = nil
    schedule.switches = failed.result.made
    // A list without some switches may lead anywhere.
    if failure != .stepLimit { schedule.stepLimit = failed.result.header.steps * 10 + 10_000 }
    let fails = { (result: ScheduleResult) in
      result.verdict(hasStepLimit: true) == .failed(failed.failure)
    }
    result = failed.result
    repeats = try runner.first(of: [schedule], where: fails) != nil
    self.schedule = schedule
    if runner.interruption != nil { (isInterrupted, repeats) = (true, true) }
    guard repeats, !isInterrupted else { return }
    if shrinks {
      var error: ScheduleRun.Failure?
      let end = UptimeClock.now + Self.longest
      var shrinker = Shrinker(
        schedule.switches, threads: Int(failed.result.header.thread_count), most: most)
      shrinker.shrink { candidates in
        let schedules = candidates.map { switches in
          var schedule = schedule
          schedule.switches = switches
          return schedule
        }
        do throws(ScheduleRun.Failure) {
          return try runner.first(of: schedules, until: end, where: fails).map { ($0.place, $0.result.made) }
        } catch let failure {
          error = failure
          return nil
        }
      }
      if let error { throw error }
      trials = shrinker.trials
      self.schedule.switches = shrinker.switches
      isInterrupted = runner.interruption != nil
      if isInterrupted { return }
    }
    self.schedule.records = true
    guard let last = try runner.first(of: [self.schedule], where: fails) else {
      isInterrupted = runner.interruption != nil
      repeats = isInterrupted
      return
    }
    result = last.result
  }

  /// A schedule that was given, and has failed.
  init(_ schedule: Schedule, _ failure: ScheduleFailure, _ result: ScheduleResult) {
    (self.schedule, self.failure, self.result) = (schedule, failure, result)
    (number, switchesBefore, repeats) = (0, schedule.switches.count, true)
  }
}

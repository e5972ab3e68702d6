import CTracing
import ConcourseSchedules
import Glibc

/// Runs schedules, some at the same time, until there are no more.
///
/// The command has one thread. It sleeps until a child ends or a signal asks it to stop, and looks each millisecond
/// whether the library has stopped a run, which only shared memory says.
final class ScheduleRunner {
  private let program: ExploredProgram
  let jobs: Int
  /// Whether this process becomes the parent of what its runs leave behind.
  private let adopts: Bool
  /// Children that the process had before: a shell may have started them, and then become this command.
  private let older: Set<pid_t>
  /// The folders of all runs. What a run has left behind has that of its run in its environment.
  private var folders: Set<String> = []
  private var signals = sigset_t()
  /// The signal that asked the command to stop.
  private(set) var interruption: Int32?
  /// Runs that were started.
  private(set) var count = 0

  /// - Parameter adopts: Whether what programs leave behind is ended.
  init(_ program: ExploredProgram, jobs: Int, adopts: Bool = false) {
    self.program = program
    self.jobs = jobs
    self.adopts = adopts
    older = adopts ? Set(Self.children) : []
    if adopts { tracing_adopt_orphans() }
    sigemptyset(&signals)
    for number in [SIGCHLD, SIGINT, SIGTERM, SIGHUP] { sigaddset(&signals, number) }
  }

  /// From now on, these signals end the runs and not the command, and the end of a run is noticed at once.
  func takeSignals() { sigprocmask(SIG_BLOCK, &signals, nil) }

  /// Ends what the programs of ended runs have left behind. Such processes have become the command's children, if it
  /// adopts orphans; and so do theirs when they end. Other children are not ended.
  func endOrphans(except active: [ScheduleRun] = []) {
    guard adopts else { return }
    let ended = folders.subtracting(active.compactMap(\.folderPath))
    var refused: Set<pid_t> = []
    var goesOn = true
    while goesOn {
      goesOn = false
      for child in Self.children where !older.contains(child) && !refused.contains(child) {
        if active.contains(where: { $0.process == child }) { continue }
        if waitpid(child, nil, WNOHANG) == child { continue }
        guard Self.folder(of: child).map(ended.contains) == true, kill(child, SIGKILL) == 0 else {
          refused.insert(child)
          continue
        }
        waitpid(child, nil, 0)
        goesOn = true
      }
    }
  }

  /// The folder for temporary files in a process's environment.
  private static func folder(of process: pid_t) -> String? {
    let prefix = RunFolder.variable + "="
    return ProcFile.read("/proc/\(process)/environ")?.split(separator: "\0").first { $0.hasPrefix(prefix) }
      .map { String($0.dropFirst(prefix.count)) }
  }

  static var children: [pid_t] {
    let process = getpid()
    return (ProcFile.read("/proc/\(process)/task/\(process)/children") ?? "")
      .split(whereSeparator: { $0 == " " || $0 == "\n" }).compactMap { pid_t($0) }
  }

  /// - Parameters:
  ///   - next: The next schedule; nil if there is none at the moment. It is asked again after each end.
  ///   - take: Takes a run that is over, which still exists if the library has stopped it. It returns false if no further
  ///     run is wanted: then those that run are ended.
  func run(
    _ next: () -> Schedule?, _ take: (ScheduleRun) -> Bool
  ) throws(ScheduleRun.Failure) {
    var active: [ScheduleRun] = []
    while interruption == nil {
      while active.count < jobs, let schedule = next() {
        active.append(try begin(schedule))
      }
      guard !active.isEmpty else { return }
      let over = active.filter(\.isOver)
      for run in over {
        guard take(run) else { return }
      }
      active.removeAll { run in over.contains { $0 === run } }
      if over.isEmpty { sleep() } else { endOrphans(except: active) }
    }
  }

  /// Runs one schedule and leaves its process as it is.
  func run(_ schedule: Schedule) throws(ScheduleRun.Failure) -> ScheduleRun? {
    let run = try begin(schedule)
    while !run.isOver && interruption == nil { sleep() }
    return interruption == nil ? run : nil
  }

  private func begin(_ schedule: Schedule) throws(ScheduleRun.Failure) -> ScheduleRun {
    let run = try ScheduleRun(program, schedule)
    if let path = run.folderPath { folders.insert(path) }
    count += 1
    return run
  }

  private func sleep() {
    var timeout = timespec(tv_sec: 0, tv_nsec: 1_000_000)
    let number = sigtimedwait(&signals, nil, &timeout)
    if number > 0 && number != SIGCHLD { interruption = number }
  }

  /// Runs some schedules, and returns the first in their order whose result is wanted.
  /// - Parameter end: The uptime after which no further one is begun.
  func first(
    of schedules: [Schedule], until end: UInt64 = .max, where isWanted: (ScheduleResult) -> Bool
  ) throws(ScheduleRun.Failure) -> (place: Int, result: ScheduleResult)? {
    var started = 0
    var results: [Int: ScheduleResult?] = [:]
    var found: (place: Int, result: ScheduleResult)?
    try run {
      guard started < schedules.count, UptimeClock.now < end else { return nil }
      var schedule = schedules[started]
      schedule.number = started
      started += 1
      return schedule
    } _: { run in
      let result = run.result
      run.end()
      results[run.schedule.number] = .some(isWanted(result) ? result : nil)
      // The first wanted one before which all are known.
      var place = 0
      while let known = results[place] {
        if let known {
          found = (place, known)
          return false
        }
        place += 1
      }
      return true
    }
    return found
  }
}

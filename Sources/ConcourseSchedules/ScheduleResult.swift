import CExploring

/// What came of one run.
package struct ScheduleResult {
  /// As `waitpid` gives it; nil if the process has been stopped for good and not been ended yet.
  package var status: Int32?
  package var header: concourse_exploring_header
  package var made: [ScheduleSwitch]
  /// The number of the first event that is kept.
  package var firstEvent: UInt64
  package var events: [concourse_exploring_event]
  package var threads: [concourse_exploring_thread]
  package var output: [UInt8]
  /// Whether it has run for too long.
  package var isLate = false

  /// Of a race: the later access, and the one before it.
  package var accesses: [concourse_exploring_access] { [header.accesses.0, header.accesses.1] }

  /// As `concourse_exploring_operations.h` numbers it.
  private static let spin: UInt16 = 54

  /// Whether a thread could not go on at the end: it waits, or it spins on a variable.
  package static func isStuck(_ thread: concourse_exploring_thread) -> Bool {
    thread.state == UInt8(CONCOURSE_EXPLORING_WAITING)
      || (thread.state == UInt8(CONCOURSE_EXPLORING_RUNNABLE) && thread.operation == spin)
  }

  /// - Parameter hasStepLimit: Whether the user has set it.
  package func verdict(hasStepLimit: Bool) -> ScheduleVerdict {
    if isLate {
      return .unusable("does not end: a run has taken \(header.steps) decisions and a minute or more")
    }
    switch header.outcome {
    case CONCOURSE_EXPLORING_RUNNING.rawValue:
      guard let status else { return .unusable("the run was interrupted") }
      if status & 0x7F != 0 { return .failed(.signal(status & 0x7F)) }
      return status >> 8 & 0xFF == 0 ? .passed : .failed(.status(status >> 8 & 0xFF))
    case CONCOURSE_EXPLORING_DEADLOCK.rawValue: return .failed(.deadlock)
    case CONCOURSE_EXPLORING_HANG.rawValue: return .failed(.hang)
    case CONCOURSE_EXPLORING_RACE.rawValue: return .failed(.race)
    case CONCOURSE_EXPLORING_STEP_LIMIT.rawValue:
      return hasStepLimit
        ? .failed(.stepLimit)
        : .unusable("never comes to rest: it made \(header.steps) decisions; --steps sets another limit")
    case CONCOURSE_EXPLORING_SPINNING.rawValue:
      return .unusable("spins: thread \(header.culprit) has computed for a second without an operation")
    case CONCOURSE_EXPLORING_BLOCKED_UNSEEN.rawValue:
      return .unusable(
        "sleeps in a call that is not seen: thread \(header.culprit), system call \(header.detail)")
    case CONCOURSE_EXPLORING_TOO_MANY_THREADS.rawValue:
      return .unusable("has more than \(CONCOURSE_EXPLORING_THREADS) threads")
    case CONCOURSE_EXPLORING_WAITS_FOR_OUTSIDE.rawValue:
      return .unusable("waits for something outside of it: the network, another process, or its input")
    case CONCOURSE_EXPLORING_NOT_STARTED.rawValue:
      return .unusable("did not load the exploring library")
    default: return .unusable("ended in a way that this version of Concourse does not know")
    }
  }
}

extension ScheduleResult {
  /// What the run has left in `file`.
  package init(_ file: ExploringFile, status: Int32?, output: [UInt8], isLate: Bool = false) {
    let header = file.header
    let events = file.events(header.event_count)
    self.init(
      status: status, header: header, made: file.made(header.made_count), firstEvent: events.first,
      events: events.events, threads: file.threads(header.thread_count), output: output, isLate: isLate)
  }
}

import CExploring

/// A decision against the default: at its `point`-th decision `thread` let `next` go on.
package struct ScheduleSwitch: Hashable {
  package var thread: UInt16
  /// A thread, or `time`.
  package var next: UInt16
  package var point: UInt32

  package init(thread: UInt16, next: UInt16, point: UInt32) {
    (self.thread, self.next, self.point) = (thread, next, point)
  }

  /// In place of a thread: virtual time jumps to the next deadline, though a thread could go on.
  package static let time = UInt16(CONCOURSE_EXPLORING_TIME)
}

/// How the library chooses who goes on, where the list of switches does not say.
package enum ExploringStrategy: String, CaseIterable {
  case random, pct, pos
}

/// What one run of the program does.
package struct Schedule: Equatable {
  /// nil: only the switches of the list.
  package var strategy: ExploringStrategy?
  /// Of the strategy, and of what the program reads as random.
  package var seed: UInt64
  package var depth: UInt32 = 0
  /// For PCT: how many decisions such a run has.
  package var expectedSteps: UInt64 = 0
  /// 0 for no limit.
  package var stepLimit: UInt64 = 0
  package var isRealTime = false
  package var switches: [ScheduleSwitch] = []
  /// Whether the run records its events, with places.
  package var records = false
  /// Whether a run that does not end by itself is ended by the library.
  package var endsProcess = false
  /// Its place among those that are run together.
  package var number = 0

  package init(seed: UInt64) { self.seed = seed }
}

/// How a run has failed. Two runs fail in the same way if these are equal.
package enum ScheduleFailure: Hashable {
  case signal(Int32)
  case status(Int32)
  case deadlock
  case hang
  case stepLimit
  /// As the thread sanitizer has reported it.
  case race

  package var text: String {
    switch self {
    case .signal(let number): "the program was ended by \(SignalNames.name(number))"
    case .status(let status): "the program ended with status \(status)"
    case .deadlock: "deadlock: threads wait for one another, or none can go on and there is no deadline left"
    case .hang: "hang: time passes, but the program only waits, polls or spins"
    case .stepLimit: "the program does not come to rest: it makes decision after decision"
    case .race:
      "data race: two threads access the same memory, one of them writes it, and nothing orders the two"
    }
  }
}

package enum SignalNames {
  private static let names: [Int32: String] = [
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
    9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
    31: "SIGSYS",
  ]

  package static func name(_ number: Int32) -> String { names[number] ?? "signal \(number)" }
}

/// What a run is to the exploration.
package enum ScheduleVerdict: Equatable {
  case passed
  case failed(ScheduleFailure)
  /// The program cannot be explored: why, in one line.
  case unusable(String)
}

/// The priority of each class: nice values beside that of the process, and time slices.
///
/// Every thread may lower itself, few may climb back. So utility and background have bands of their own, and
/// the classes above default share the default band. Where the process may raise threads, found out once, a
/// worker takes the nice value of each entry that it begins: a system call, but only when the value changes.
///
/// The nice value decides which share of a busy processor a thread gets. The slice decides how soon: the kernel
/// (6.12 and later) runs the thread whose slice would end first, and a lowered thread's slice counts many times
/// over. With the kernel's own slice, a background thread would wait after each wake-up until all ordinary threads
/// have had theirs.
package struct Priority {
  /// What is added to the process's nice value, by class. No array: making its type would slow down every start.
  struct Differences: Equatable {
    var userInteractive: Int32 = -4
    var userInitiated: Int32 = -2
    var utility: Int32 = 2
    var background: Int32 = 10
  }

  let differences: Differences
  /// The process's nice value.
  package let base: Int32
  /// Whether its threads may be raised.
  package let mayRaise: Bool

  static var ofProcess: Priority {
    Priority(
      asked: parse(Process.environment("CONCOURSE_NICE")) ?? Differences(),
      base: SystemThread.processNice, mayTake: SystemThread.mayTake(nice:))
  }

  /// - Parameter mayTake: whether threads may take a nice value.
  init(asked: Differences, base: Int32, mayTake: (Int32) -> Bool) {
    self.base = base
    var granted = asked
    if asked.userInteractive < 0 && !mayTake(base + asked.userInteractive) { granted.userInteractive = 0 }
    if asked.userInitiated < 0 && !mayTake(base + asked.userInitiated) { granted.userInitiated = 0 }
    differences = granted
    mayRaise = granted.userInteractive < 0 || granted.userInitiated < 0 || mayTake(base - 1)
  }

  /// The setting; nil if the variable is not set. Also nil if it is invalid, which is reported.
  static func parse(_ text: String?) -> Differences? {
    guard let text else { return nil }
    // 20 is out of range.
    let numbers = text.split(separator: ",", omittingEmptySubsequences: false).map { Int32($0) ?? 20 }
    let inOrder = numbers.count == 4 && zip(numbers, numbers.dropFirst()).allSatisfy(<=)
    guard inOrder, numbers[0] >= -20, numbers[1] <= 0, numbers[2] >= 0, numbers[3] <= 19 else {
      Trap.warn(
        "CONCOURSE_NICE=\(text) is not four nice values in rising order, from -20 to 19, two of them up to 0 and "
          + "two from 0; ignored")
      return nil
    }
    return Differences(
      userInteractive: numbers[0], userInitiated: numbers[1], utility: numbers[2], background: numbers[3])
  }

  /// The nice value at which entries of a level are served.
  @inline(__always)
  func nice(at level: QoSLevel) -> Int32 { min(base + difference(at: level), 19) }

  @inline(__always)
  private func difference(at level: QoSLevel) -> Int32 {
    switch level {
    case .userInteractive: differences.userInteractive
    case .userInitiated: differences.userInitiated
    case .default, .unspecified: 0
    case .utility: differences.utility
    case .background: differences.background
    }
  }

  /// The slice at a level, in nanoseconds. As the kernel counts, background's ends when an ordinary thread's would.
  /// With one processor, a worker that runs as soon as it is woken would only interrupt the thread that is about to
  /// submit more.
  static func slice(at level: QoSLevel) -> UInt64? {
    switch level.served {
    case .background: 150_000
    case .utility: 300_000
    case .default, .userInitiated, .userInteractive, .unspecified: PoolSize.width > 1 ? 400_000 : nil
    }
  }
}

extension Runtime {
  /// Gives the calling thread, one of the engine's that never computes, the highest priority allowed.
  package static func adoptHighestPriority() {
    let priority = shared.bands[0].priority
    SystemThread.adoptScheduling()
    if priority.mayRaise { SystemThread.setNice(priority.nice(at: .userInteractive)) }
    if let slice = Priority.slice(at: .userInteractive) { SystemThread.setSlice(slice) }
  }
}

extension Band {
  /// Gives the calling thread, a new worker, the priority of this band.
  func adoptPriority(_ worker: WorkerPointer) {
    let nice = priority.nice(at: level)
    CurrentThread.state.pointee.nice = difference
    SystemThread.adoptScheduling()
    // Otherwise the thread has inherited the right value.
    if isLowered || priority.mayRaise { SystemThread.setNice(nice) }
    // ORDERING: relaxed; see `follow`.
    worker.pointee.nice.store(nice, ordering: .relaxed)
    if let slice = Priority.slice(at: level) { SystemThread.setSlice(slice) }
  }

  /// Gives the calling worker the nice value for an entry.
  @inline(__always)
  func follow(_ entry: QoSLevel, _ worker: WorkerPointer) {
    guard priority.mayRaise else { return }
    let nice = priority.nice(at: isLowered ? level : entry)
    // ORDERING: relaxed; only this worker writes it.
    if worker.pointee.nice.load(ordering: .relaxed) != nice { change(worker, to: nice) }
  }

  @inline(never)
  private func change(_ worker: WorkerPointer, to nice: Int32) {
    // ORDERING: relaxed; as above.
    worker.pointee.nice.store(nice, ordering: .relaxed)
    SystemThread.setNice(nice)
  }
}

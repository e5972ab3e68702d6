/// Tells whether all tasks are suspended and nothing is left in the process that could resume one.
///
/// That is so if no thread runs or waits for anything but work, no timer, source or channel is left, and nothing is
/// submitted: only code resumes a task, and none can run. A program that lost a continuation, or whose stream has no
/// producer, ends there. With a thread of its own somewhere, or a timer, a process is never said to be stalled.
enum StalledTasks {
  static func areStalled(_ snapshot: EngineSnapshot) -> Bool {
    guard snapshot.isStarted, snapshot.tasks.contains(where: { $0.state == .suspended }),
      snapshot.tasks.allSatisfy({ $0.state == .suspended || $0.state == .completed }),
      snapshot.threads.allSatisfy({ $0.wait == .idle }), snapshot.tasksProblem == nil,
      snapshot.bands.allSatisfy({ $0.waiting == 0 }), snapshot.timers?.count ?? 0 == 0,
      snapshot.sources.allSatisfy({ !$0.isActive || $0.isCancelled }),
      snapshot.channels.allSatisfy({ $0.unfinished == 0 })
    else { return false }
    // A core dump has no names of threads: one that waits for events may be the program's own.
    guard snapshot.process.core == nil || snapshot.threads.allSatisfy({ $0.role != .events }) else {
      return false
    }
    return snapshot.queues.values.allSatisfy {
      $0.kind == .global || $0.items + $0.heldBack == 0 && $0.holders.isEmpty && $0.waiters.isEmpty
    }
  }

  /// A running process changes while it is read. So it is read again, and the verdict holds only if no thread has run
  /// meanwhile.
  ///
  /// - Parameter stopsThreads: As for `TargetProcess.live`.
  static func isConfirmed(
    _ process: TargetProcess, stopsThreads: Bool = true, read: (TargetProcess) -> EngineSnapshot?
  ) -> Bool {
    if process.isStill || process.isStopped {
      return true
    }
    // An engine thread may have woken up for its own reasons.
    for _ in 0..<3 {
      let before = activity(of: process.id)
      guard let again = try? TargetProcess.live(process.id, stopsThreads: stopsThreads),
        let snapshot = read(again), areStalled(snapshot)
      else { return false }
      if !before.isEmpty && activity(of: process.id) == before { return true }
    }
    return false
  }

  private static func activity(of process: Int32) -> [Int32: ThreadActivity] {
    var found: [Int32: ThreadActivity] = [:]
    for thread in ProcFile.numbers(in: "/proc/\(process)/task") {
      found[thread] = ThreadActivity(process, UInt32(thread))
    }
    return found
  }

  static func verdict(_ words: TaskWording, _ snapshot: EngineSnapshot) -> Verdict {
    let rows = words.rows
    let number = rows.reduce(0) { $0 + $1.tasks.count }
    return Verdict(
      kind: .stalledTasks,
      summary: (number == 1 ? "a task is suspended" : "all \(number) tasks are suspended")
        + ", and nothing is left that could resume \(number == 1 ? "it" : "one"): "
        + "no thread runs, and no timer or source is set",
      details: rows.prefix(4).map { .init(text: words.sentence($0), place: $0.place) },
      tasks: rows.prefix(4).flatMap { $0.tasks.prefix(16).map(\.id) })
  }
}

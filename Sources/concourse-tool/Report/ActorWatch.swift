import Glibc

/// Actors whose thread waits, while tasks wait for the actor.
///
/// A thread may wait for a moment only. So it counts only if it has slept all the time in which it is watched, without
/// waking up once, and was in the actor before and afterwards.
struct ActorWatch {
  struct Held {
    let executor: UInt64
    let thread: UInt32
    /// The tasks that wait for the actor.
    let tasks: [TaskInfo]
    /// How long it has been so at least, in nanoseconds; 0 if that is unknown.
    let duration: UInt64
  }

  private(set) var held: [Held] = []

  init(_ snapshot: EngineSnapshot) {
    var waiting: [UInt64: [TaskInfo]] = [:]
    for task in snapshot.tasks where task.state == .enqueued {
      if case .executor(let executor) = task.awaits { waiting[executor, default: []].append(task) }
    }
    let candidates = waiting.keys.sorted().compactMap { executor -> (UInt64, ThreadInfo)? in
      guard let id = snapshot.executors[executor]?.threads.first, let thread = snapshot.thread(id),
        thread.isBlocked, snapshot.queues[executor] == nil
      else { return nil }
      return (executor, thread)
    }
    guard !candidates.isEmpty else { return }
    let process = snapshot.process
    let isStopped = process.isStopped
    var duration: UInt64 = 0
    var asleep = Set(candidates.map(\.1.id))
    if !process.isStill && !isStopped {
      let before = candidates.map { ThreadActivity(process.id, $0.1.thread.idHere) }
      let begin = UptimeClock.now
      usleep(UInt32(HoldWatch.least / 1000))
      for (candidate, activity) in zip(candidates, before)
      where activity == nil || ThreadActivity(process.id, candidate.1.thread.idHere) != activity
        || !candidate.1.isStillAsleep(in: process)
        || !(snapshot.swiftThreads?.executors(of: candidate.1.thread).contains(candidate.0) ?? false)
      {
        asleep.remove(candidate.1.id)
      }
      duration = UptimeClock.now - begin
    }
    for (executor, thread) in candidates where asleep.contains(thread.id) {
      let known = max(duration, thread.blockedFor ?? 0)
      // Of a stopped process only what the engine has noted counts.
      if isStopped && known < HoldWatch.least { continue }
      let tasks = (waiting[executor] ?? []).filter { task in
        process.isStill
          || snapshot.taskLayout.flatMap { TaskReader.task(at: task.address, in: process, $0) }?.waitsAs(task)
            ?? false
      }
      guard !tasks.isEmpty else { continue }
      held.append(Held(executor: executor, thread: thread.id, tasks: tasks, duration: known))
    }
  }
}

/// What changes when a thread wakes up: how often it has slept and has lost its processor.
struct ThreadActivity: Equatable {
  private let sleeps: UInt64
  private let losses: UInt64

  /// nil if the thread has gone.
  init?(_ process: Int32, _ thread: UInt32) {
    guard let status = ProcFile.read("/proc/\(process)/task/\(thread)/status") else { return nil }
    self.init(status: status)
  }

  /// - Parameter status: What the file of that name in `/proc` says.
  init?(status: String) {
    guard let sleeps = UInt64(ProcFile.value(of: "voluntary_ctxt_switches", in: status)),
      let losses = UInt64(ProcFile.value(of: "nonvoluntary_ctxt_switches", in: status))
    else { return nil }
    (self.sleeps, self.losses) = (sleeps, losses)
  }
}

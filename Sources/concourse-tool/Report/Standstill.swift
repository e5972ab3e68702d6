import Glibc

/// What stays the same while nothing goes on: the states of suspended queues that have items, and the sleeps of blocked
/// workers.
///
/// One look cannot tell a queue that is suspended for a moment from one that is never resumed, or threads that wait for
/// short answers from threads that are stuck. So what two looks have in common counts, at least `HoldWatch.least` apart.
struct Standstill {
  let time: UInt64
  /// By addresses.
  private var queues: [UInt64: [UInt64]]
  /// By numbers of threads.
  private var sleeps: [UInt32: Sleep]

  /// A thread's wait, as the engine has noted it or the kernel has counted it.
  private struct Sleep: Equatable {
    var since: UInt64
    var activity: ThreadActivity?
  }

  init(_ snapshot: EngineSnapshot, at time: UInt64 = UptimeClock.now) {
    self.time = time
    let held = snapshot.queues.values.filter {
      ($0.word.isSuspended || $0.word.isInactive) && $0.items + $0.heldBack > 0
    }
    queues = Dictionary(uniqueKeysWithValues: held.map { ($0.address, Self.state(of: $0, snapshot)) })
    sleeps = [:]
    for thread in snapshot.threads where thread.isBlocked {
      guard case .worker = thread.role else { continue }
      sleeps[thread.id] = Self.sleep(of: thread, snapshot.process)
    }
  }

  /// The thread's sleep now: reading the process and the places of its threads has taken a while. nil if it is awake.
  private static func sleep(of thread: ThreadInfo, _ process: TargetProcess) -> Sleep? {
    if process.isStill || process.isStopped { return Sleep(since: thread.blockedSince) }
    let since = process.memory.word(thread.blockedSinceAddress) ?? thread.blockedSince
    if since != 0 { return Sleep(since: since) }
    let now = TargetThread(process: process.id, thread: Int32(thread.thread.idHere), stops: false)
    return now?.call == nil ? nil : Sleep(since: 0, activity: now?.activity)
  }

  /// What changes when a queue is resumed, or when one of its items ends. Not what a push changes. The items of an older
  /// library, which does not count the resumes, may be in the same nodes again.
  private static func state(of queue: QueueInfo, _ snapshot: EngineSnapshot) -> [UInt64] {
    let memory = snapshot.process.memory
    let word = queue.word(in: memory)
    let numbers = [queue.place.suspensions, queue.place.resumes].map { $0 == 0 ? 0 : memory.count(at: $0) }
    return [word.isSuspended ? 1 : 0, word.isInactive ? 1 : 0] + numbers.map { UInt64($0) }
      + queue.oldestEntry(in: memory)
  }

  func isSuspended(_ queue: UInt64) -> Bool { queues[queue] != nil }

  func sleeps(_ thread: UInt32) -> Bool { sleeps[thread] != nil }

  /// What was the same at an earlier look; nothing if that was just now.
  func common(with earlier: Standstill) -> Standstill {
    var common = self
    let isLong = time >= earlier.time + HoldWatch.least
    common.queues = queues.filter { isLong && earlier.queues[$0.key] == $0.value }
    common.sleeps = sleeps.filter { isLong && earlier.sleeps[$0.key] == $0.value }
    return common
  }

  /// What lasts until this look is old enough, or longer.
  func lasting(_ snapshot: EngineSnapshot) -> Standstill {
    let process = snapshot.process
    // Nothing in it changes.
    if process.isStill || process.isStopped { return self }
    var lasting = self
    // Not in step with what the process may do periodically.
    while UptimeClock.now < time + HoldWatch.least, !lasting.queues.isEmpty || !lasting.sleeps.isEmpty {
      usleep(UInt32.random(in: 3000...5000))
      lasting.keepSameQueues(snapshot)
    }
    lasting.keepSameQueues(snapshot)
    lasting.sleeps = lasting.sleeps.filter { id, sleep in
      snapshot.thread(id).flatMap { Self.sleep(of: $0, process) } == sleep
    }
    return lasting
  }

  private mutating func keepSameQueues(_ snapshot: EngineSnapshot) {
    queues = queues.filter { address, state in
      snapshot.queues[address].map { Self.state(of: $0, snapshot) } == state
    }
  }
}

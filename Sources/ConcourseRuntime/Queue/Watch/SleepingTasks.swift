internal import CConcourse

/// With `CONCOURSE_STRICT`, a thread that looks at the pool's threads every few milliseconds, and names tasks that block
/// them in calls that the engine does not see: sleeps, `read`, `accept`, `poll`, locks and conditions of the system.
///
/// A call counts if the thread has slept in it for `TaskWaits.patience`. The kernel counts how often a thread has slept
/// and has lost its processor, so the thread has slept throughout if the counts stay as they were. A thread that wants to
/// run and gets no processor does not sleep, nor does one in a page fault or in a disk's read, which has another state.
///
/// A lock is different: where all processors are busy, its holder may not get one, and the thread that waits is not to
/// blame. So a lock counts only if its holder has computed for that time, or has slept for it. The holder of a lock that
/// waits for another lock sleeps, too; what counts is the last one of such a chain. Where the holder cannot be told, nothing
/// is named.
enum SleepingTasks {
  /// Microseconds between two looks.
  private static let tick: UInt32 = 2500
  /// Looks that must have seen the same sleep: the process may have been stopped meanwhile.
  private static let leastLooks = 4

  private static let isStarted = Atomic<Bool>(false)

  /// Starts the thread. Called when the process gets a queue for tasks.
  static func watch() {
    guard TaskWaits.areNamed, concourse_find_tasks() else { return }
    // ORDERING: relaxed; decides which caller starts the thread.
    guard !isStarted.exchange(true, ordering: .relaxed) else { return }
    let failure = Runtime.startThread(threadOfSleepingTasks, nil)
    if failure == 0 { return }
    Trap.warn(
      "CONCOURSE_STRICT: the system refused a thread (errno \(failure)); sleeps of tasks are not named")
  }

  fileprivate static func run() {
    var watch = SleepWatch()
    while true {
      SystemThread.sleep(microseconds: tick)
      watch.look()
    }
  }

  /// What a thread has been seen in. OWNED BY the thread above, as all else here.
  fileprivate struct SleepWatch {
    private var seen: [WorkerPointer: Sleeper] = [:]

    mutating func look() {
      for band in Runtime.shared.bands {
        for worker in band.workers { seen[worker] = look(at: worker, seen[worker]) }
      }
    }

    /// - Returns: what to remember of the worker until the next look.
    private func look(at worker: WorkerPointer, _ before: Sleeper?) -> Sleeper? {
      // ORDERING: acquiring; pairs with the releasing stores of the status.
      let status = worker.pointee.status.load(ordering: .acquiring)
      // ORDERING: relaxed, both; a thread that has ended is not found below.
      let (thread, state) = (
        worker.pointee.thread.load(ordering: .relaxed), worker.pointee.state.load(ordering: .relaxed)
      )
      guard WorkerRecord.Status.isActive(status) || status == WorkerRecord.Status.stuck, state != 0,
        let rest = Rest(of: thread)
      else { return nil }
      guard var sleeper = before, sleeper.thread == thread, sleeper.rest == rest else {
        return Sleeper(thread: thread, rest: rest)
      }
      sleeper.looks += 1
      if !sleeper.isJudged && sleeper.looks >= leastLooks
        && Clock.uptime() &- sleeper.since >= TaskWaits.patience
      {
        sleeper.judge(worker, state)
      }
      return sleeper
    }
  }
}

private func threadOfSleepingTasks(_: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  SystemThread.setName("concourse-tasks")
  Runtime.adoptHighestPriority()
  SleepingTasks.run()
  return nil
}

/// What stays the same while a thread sleeps.
private struct Rest: Equatable {
  private let sleeps: UInt64
  private let losses: UInt64

  /// nil for a thread that does not sleep.
  init?(of thread: UInt32) {
    var counts: (UInt64, UInt64) = (0, 0)
    let isKnown = withUnsafeMutableBytes(of: &counts) { counts in
      concourse_read_switches(thread, counts.assumingMemoryBound(to: UInt64.self).baseAddress!)
    }
    guard thread != 0, isKnown, UInt8(bitPattern: concourse_thread_state(thread)) == UInt8(ascii: "S")
    else { return nil }
    sleeps = counts.0
    losses = counts.1
  }
}

/// A worker that sleeps in the same call since `since` at least.
private struct Sleeper {
  let thread: UInt32
  let rest: Rest
  let since = Clock.uptime()
  var looks = 1
  /// Whether nothing more can be told of this sleep.
  private(set) var isJudged = false
  private var holder: Holder?

  init(thread: UInt32, rest: Rest) { (self.thread, self.rest) = (thread, rest) }

  /// - Parameter state: the address of the thread's `concourse_thread`.
  mutating func judge(_ worker: WorkerPointer, _ state: UInt) {
    var sleep = concourse_sleep()
    guard let item = TaskItem(of: state), concourse_read_sleep(thread, &sleep),
      let task = CurrentTask(ofThread: state)
    else {
      isJudged = true
      return
    }
    guard let call = call(sleep) else { return }
    let stack = CallPlace.returnAddresses(ofSleeper: UInt(sleep.stack), below: item.frame)
    isJudged = true
    // What has been read belongs together only if the thread still sleeps.
    guard Rest(of: thread) == rest else { return }
    TaskWaits.name(task, call, stack, engine: CallPlace.engine)
  }

  /// What to print; nil if it cannot be told now.
  private mutating func call(_ sleep: concourse_sleep) -> String? {
    var (sleep, id) = (sleep, UInt32(0))
    switch concourse_wait_of(&sleep, &id) {
    case CONCOURSE_WAIT_CALL:
      return concourse_name_of_call(sleep.call).map { String(cString: $0) } ?? "system call \(sleep.call)"
    case CONCOURSE_WAIT_LOCK:
      guard !TaskWaits.isNaming, let last = Self.lastHolder(after: id) else {
        holder = nil
        return nil
      }
      if holder?.id != last { holder = Holder(last) }
      return holder!.hasHadItLong() ? "a lock that thread \(id) holds" : nil
    default:
      holder = nil
      return nil
    }
  }

  /// The thread whose doing ends a chain of locks; nil if it cannot be told.
  private static func lastHolder(after first: UInt32) -> UInt32? {
    var (id, passed) = (first, Set<UInt32>())
    // Locks may be in a cycle. No thread of it goes on.
    while passed.insert(id).inserted {
      var (sleep, next) = (concourse_sleep(), UInt32(0))
      guard Rest(of: id) != nil, concourse_read_sleep(id, &sleep) else { return id }
      switch concourse_wait_of(&sleep, &next) {
      case CONCOURSE_WAIT_CALL, CONCOURSE_WAIT_ENGINE: return id
      case CONCOURSE_WAIT_LOCK: id = next
      default: return nil
      }
    }
    return id
  }

  /// The thread that holds a lock, from when it was first seen to do so.
  private struct Holder {
    let id: UInt32
    private let used: UInt64?
    private var rest: Rest?
    private var since = Clock.uptime()
    private var looks = 0

    init(_ id: UInt32) {
      self.id = id
      used = SystemThread.processorTime(of: id)
      rest = Rest(of: id)
    }

    mutating func hasHadItLong() -> Bool {
      if let used, let now = SystemThread.processorTime(of: id), now &- used >= TaskWaits.patience {
        return true
      }
      let now = Rest(of: id)
      guard let now, now == rest else {
        (rest, since, looks) = (now, Clock.uptime(), 0)
        return false
      }
      looks += 1
      return looks >= 4 && Clock.uptime() &- since >= TaskWaits.patience
    }
  }
}

/// The item of a task's job that another thread runs.
private struct TaskItem {
  /// The innermost frame on that thread's stack.
  let frame: UInt
  private static let mostFrames = 64

  /// nil if the thread runs no job of the global executor.
  init?(of state: UInt) {
    guard let place = MemoryLayout<concourse_thread>.offset(of: \.frame),
      let queuePlace = MemoryLayout<Frame>.offset(of: \.queue),
      let parentPlace = MemoryLayout<Frame>.offset(of: \.parent), let first = Self.word(state + UInt(place))
    else { return nil }
    var next = first
    for _ in 0..<Self.mostFrames where next != 0 {
      guard let queue = Self.word(next + UInt(queuePlace)), let parent = Self.word(next + UInt(parentPlace))
      else { return nil }
      if TaskThreads.isOfTasks(queue) {
        frame = first
        return
      }
      next = parent
    }
    return nil
  }

  private static func word(_ address: UInt) -> UInt? {
    var word: UInt = 0
    return concourse_read_memory(UInt64(address), &word, MemoryLayout<UInt>.size) ? word : nil
  }
}

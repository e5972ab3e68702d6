import ConcourseRecording

/// What the report knows of a queue.
struct QueueInfo {
  let address: UInt64
  var kind: QueueKind
  var label: String
  var word: QueueWord
  var place: StatePlace
  /// The address of the target; 0 at the end of a hierarchy.
  var target: UInt64
  /// The served level.
  var level: Int
  /// Ordinary items that may run at once, if the queue is narrow.
  var width: Int?
  /// Items that have been submitted and have not started. Those of a concurrent queue that has admitted them count as
  /// readers instead.
  var items = 0
  var suspensions = 0
  /// Items that were admitted before a suspension, and wait for the resume.
  var heldBack = 0
  /// Threads that wait for their turn in its list, in order.
  var waiters: [UInt32] = []
  /// The oldest node of its list, which may be running; 0 for none.
  var oldest: UInt64 = 0
  /// The links of its lists, as they were when the process was read.
  var paths: [ListPath] = []
  /// Whether the oldest entry of a concurrent queue is a barrier that waits for running items.
  var barrierIsNext = false
  /// Threads that run its items now, as far as known: the owner, and for a concurrent queue the readers.
  var holders: [UInt32] = []
  var members = Members()

  /// Where its state is.
  struct StatePlace {
    var word: UInt64
    /// The indicators of readers that are counted apart; 0 if there have never been any.
    var indicators: UInt64 = 0
    /// The number of suspensions; 0 if there have never been any.
    var suspensions: UInt64 = 0
    /// The number of resumes; 0 as well if the library does not count them.
    var resumes: UInt64 = 0
  }

  /// What its items belong to.
  struct Members {
    var groups: Set<UInt64> = []
    var workItems: Set<UInt64> = []
  }

  /// What the node runs now that was the oldest of the list when the process was read. An item that runs keeps its node;
  /// once the item has ended, the node serves others. The node's first word is its link, which a push may change.
  func oldestEntry(in memory: any TargetMemory) -> [UInt64] {
    oldest == 0 ? [] : (1...3).map { memory.word(oldest &+ 8 * $0) ?? 0 }
  }

  /// What its lists tell about their oldest items.
  func oldestItem(in memory: any TargetMemory, _ links: LinkBudget) -> OldestItem {
    .worst(of: paths.map { $0.oldestItem(in: memory, links) })
  }

  /// The state now.
  func word(in memory: any TargetMemory) -> QueueWord {
    QueueWord(
      bits: memory.word(place.word) ?? 0, apart: IndicatorWords.sum(at: place.indicators, in: memory))
  }

  var isBusy: Bool {
    word.owner != 0 || word.readers > 0 || items > 0 || word.isEnqueued || word.isSuspended || heldBack > 0
      || !waiters.isEmpty || (word.isInactive && items > 0)
  }

  /// What it is doing, in a few words.
  var state: String {
    var parts: [String] = []
    if word.isSuspended {
      parts.append(suspensions > 1 ? "suspended \(suspensions)×" : "suspended")
    }
    if word.isInactive { parts.append("inactive") }
    if word.owner != 0 {
      parts.append((kind == .concurrent ? "barrier of" : "held by") + " thread \(word.owner)")
    }
    if barrierIsNext { parts.append("barrier waits") }
    if word.readers > 0 { parts.append("\(word.readers) running") }
    if kind == .main && items > 0 && holders.isEmpty { parts.append("not served now") }
    if parts.isEmpty && word.owner == 0 && word.isEnqueued { parts.append("waits for a thread") }
    if parts.isEmpty, let holder = holders.first { parts.append("held by thread \(holder)") }
    if parts.isEmpty { parts.append("idle") }
    return parts.joined(separator: ", ")
  }
}

/// What a thread waits for.
enum Wait: Equatable {
  /// Its turn on a queue, in `sync` or `asyncAndWait`; `named` is the queue of the call, whose work passes through
  /// `queue`.
  case turn(queue: UInt64, named: UInt64)
  /// Until the thread that serves the main queue or a run loop's has run its body.
  case service(queue: UInt64, named: UInt64)
  case group(UInt64)
  case semaphore(UInt64)
  case workItem(UInt64)
  /// For the thread that runs a body once.
  case once(runner: UInt32)
  case loop(UInt64)
  /// In another of the engine's waits.
  case engine
  /// A mutex of the C library, and the thread that has it.
  case mutex(address: UInt64, owner: UInt32)
  /// In a system call that the engine does not know, and its object.
  case call(String, String?)
  /// Nothing: a thread of the pool without work, or one of the engine's own.
  case idle
  /// The thread runs.
  case running

  /// Whether only another thread ends it. A time-out of its futex is then the engine's, which looks for deadlocks.
  var hasNoTimeout: Bool {
    switch self {
    case .turn, .service, .once, .loop: true
    case .group, .semaphore, .workItem, .engine, .mutex, .call, .idle, .running: false
    }
  }
}

/// One item, or synchronous call, that a thread is in.
struct FrameInfo {
  let queue: UInt64
  let isExclusive: Bool
}

struct ThreadInfo {
  enum Role: Equatable {
    case main
    case worker(band: String)
    case monitor
    case events
    case other
  }

  let id: UInt32
  var thread: TargetThread
  var role = Role.other
  /// The innermost first.
  var frames: [FrameInfo] = []
  var wait = Wait.running
  var hasTimeout = false
  /// The group of the innermost grouped item that it runs; 0 if there is none.
  var group: UInt64 = 0
  /// How long it has waited, in nanoseconds; nil if unknown.
  var blockedFor: UInt64?
  /// The uptime at which the wait began; 0 if unknown.
  var blockedSince: UInt64 = 0
  /// The address of that number.
  var blockedSinceAddress: UInt64 = 0
  /// Where its innermost frame, that frame's queue, and the number of entries that it has begun are noted; the last is 0
  /// if it is no worker.
  var frameAddress: UInt64 = 0
  var queueAddress: UInt64 = 0
  var progressAddress: UInt64 = 0
  /// A worker's entry has taken at least this many nanoseconds; nil if unknown.
  var busyForAtLeast: UInt64?
  var stack: [StackEntry] = []
  /// The task of Swift Concurrency that it runs; nil if it is not known to run one.
  var task: RecordedJob?

  /// Whether it has slept in the same wait since it was read. A thread that has woken up and waits for the same object
  /// again has not: only its number of sleeps tells, since the system call has the same arguments.
  func isStillAsleep(in process: TargetProcess) -> Bool {
    if blockedSince != 0 { return process.memory.word(blockedSinceAddress) == blockedSince }
    guard process.core == nil else { return true }
    let now = TargetThread(process: process.id, thread: Int32(thread.idHere), stops: false)
    return now?.activity == thread.activity && now?.call?.arguments == thread.call?.arguments
  }

  var isBlocked: Bool {
    switch wait {
    case .idle, .running: false
    default: true
    }
  }
}

/// The bands of one kind, of all shards.
struct BandInfo {
  var name: String
  var counts = BandCounts()
  /// The active workers allowed.
  var activeLimit: Int
  /// Entries in their roots, and queues that workers keep.
  var waiting = 0
}

/// The workers of bands. A damaged count is at most 65,535, so that the sums are small.
struct BandCounts: Equatable {
  var active = 0
  var searching = 0
  var parked = 0
  var threads = 0

  mutating func add(_ band: BandWord) {
    active += band.active
    searching += band.searching
    parked += band.parked
    threads += band.threads
  }
}

struct GroupInfo {
  var word: GroupWord
  /// Queues with items of the group.
  var queues: [UInt64]
}

struct SourceInfo {
  let address: UInt64
  let backend: UInt64
  var kind: String
  var handle: Int
  var isActive: Bool
  var isCancelled: Bool
  var suspensions: Int
  /// Whether a visit has been submitted.
  var isVisiting: Bool
  var pending: UInt64
  var queue: UInt64
  /// Of a timer: nanoseconds until it is due; negative if overdue.
  var dueIn: Int64?
  /// The thread that is calling a handler, or 0.
  var handlerThread: UInt32
}

struct ChannelInfo {
  var channels: Int
  var unfinished: Int
}

struct TimersInfo {
  var count: Int
  var nextIn: Int64?
}

/// Everything that the report shows, read from a process at one time.
struct EngineSnapshot {
  /// The threads that run work items, by item.
  var runners: [UInt64: UInt32] = [:]
  var process: TargetProcess
  /// What is left of it after the reading.
  var links = LinkBudget()
  var queues: [UInt64: QueueInfo] = [:]
  var threads: [ThreadInfo] = []
  var bands: [BandInfo] = []
  var groups: [UInt64: GroupInfo] = [:]
  var semaphores: [UInt64: Int] = [:]
  var sources: [SourceInfo] = []
  var channels: [ChannelInfo] = []
  var timers: TimersInfo?
  var timerLists: [TimerList.Place] = []
  var width = 0
  var cap = 0
  var poolThreads = 0
  /// The main queue's address.
  var mainQueue: UInt64 = 0
  /// The tasks of Swift Concurrency, the oldest first.
  var tasks: [TaskInfo] = []
  /// How they are laid out; nil if they are not known.
  var taskLayout: TaskLayout?
  /// Addresses of what may be a task.
  var taskCandidates: [UInt64] = []
  /// What Swift's runtime keeps for each thread.
  var swiftThreads: SwiftTasks?
  /// Why there are no tasks, if the process may have some.
  var tasksProblem: String?
  /// The executors that tasks wait for.
  var executors: [UInt64: ExecutorInfo] = [:]
  /// Whether the runtime has been used at all.
  var isStarted = true

  /// The places of the threads by their numbers; empty while there may be more.
  private(set) var places: [UInt32: Int] = [:]

  mutating func indexThreads() {
    places = Dictionary(threads.enumerated().map { ($0.element.id, $0.offset) }) { first, _ in first }
  }

  /// Puts a thread that has been read again in the place of the earlier one.
  mutating func replace(_ thread: ThreadInfo) {
    if let place = places[thread.id] ?? threads.firstIndex(where: { $0.id == thread.id }) {
      threads[place] = thread
    }
  }

  func thread(_ id: UInt32) -> ThreadInfo? {
    places.isEmpty ? threads.first { $0.id == id } : places[id].map { threads[$0] }
  }

  /// How long one of its holders has had a queue, if its entry is the queue's or an item of it. A queue that it has
  /// taken within the entry may be held for less.
  func heldForAtLeast(_ queue: QueueInfo) -> UInt64? {
    queue.holders.compactMap { thread($0) }
      .filter { $0.frames.last?.queue == queue.address }.compactMap(\.busyForAtLeast).max()
  }
}

/// What a process can learn of its own queues and threads while it runs.
///
/// `snapshot()` is the present: the pool, threads that are blocked, queues. `statistics(every:)` and `observe` report,
/// interval by interval, what happened on each queue: rates, depths, times of waiting and running. Nothing is counted, and
/// no memory is used, until the first of them is asked for.
///
/// All calls may be made from any thread, in items too, but not from signal handlers. In a forked child, which has no
/// threads of the pool, a snapshot shows an empty pool, and there are no statistics.
///
/// C programs have the same functions in `concourse/inspection.h`.
public enum Inspection {
  /// The threads of the pool, and their limits.
  public struct Pool: Sendable, Equatable {
    /// The threads of each band that may run at once: the processors that this process may use.
    public var width: Int
    /// The threads that all bands together may have before blocked ones are no longer replaced at once.
    public var limit: Int
    /// The bands: for user classes and default, for utility, and for background work, in this order.
    public var bands: [Band]

    /// The threads of all bands.
    public var threads: Int { bands.reduce(0) { $0 + $1.threads } }
    /// The threads that run an item or look for one.
    public var active: Int { bands.reduce(0) { $0 + $1.active } }
    /// Those of the active threads that look for work.
    public var searching: Int { bands.reduce(0) { $0 + $1.searching } }
    /// The threads that are in an item and sleep: waiting or stuck.
    public var blocked: Int { bands.reduce(0) { $0 + $1.blocked } }
    /// Idle threads, asleep until there is work.
    public var parked: Int { bands.reduce(0) { $0 + $1.parked } }
  }

  /// The threads of one kernel priority, on all processors. `threads` is always the sum of active, blocked and parked
  /// ones.
  public struct Band: Sendable, Equatable {
    /// What its threads are called in `ps` and debuggers.
    public var name: String
    /// The class that sets the priority of its threads.
    public var qosClass: DispatchQoS.QoSClass
    /// All threads of the band.
    public var threads: Int
    /// Threads that run an item or look for one.
    public var active: Int
    /// Those of the active threads that look for work.
    public var searching: Int
    /// Threads that sleep in a wait of Concourse: `sync`, a group, a semaphore.
    public var waiting: Int
    /// Threads that were found asleep in other calls, such as a read from a descriptor, while work waited.
    public var stuck: Int
    /// Idle threads, asleep until there is work.
    public var parked: Int
    /// Whether work waits for a thread.
    public var hasWork: Bool

    /// The threads that are in an item and sleep.
    public var blocked: Int { waiting + stuck }
  }

  /// A thread that has slept for more than 40 ms in a wait that only certain threads can end: not one for a group or a
  /// semaphore, nor one with a time-out.
  public struct BlockedThread: Sendable, Equatable {
    /// What the thread waits for.
    public enum Reason: UInt8, Sendable {
      /// Its turn on a queue, in `sync` or `asyncAndWait`.
      case turn = 1
      /// The thread that serves a queue, such as the main queue, to run its item.
      case service
      /// The end of a work item.
      case workItem
      /// The end of an initializer that runs once.
      case once
    }

    /// The kernel's id of the thread.
    public var thread: UInt32
    /// What it waits for.
    public var reason: Reason
    /// The address of the queue; nil if it does not wait for one. The `id` of that queue in a snapshot.
    public var queue: UInt?
    /// The label of that queue; empty if it has none.
    public var label: String
    /// When the wait began.
    public var since: DispatchTime
  }
}

extension Inspection.Pool {
  /// The pool now. O(threads); no lock is taken. The first one reads the CPU quota, which the pool itself does not do
  /// before a second worker may come.
  package static func read() -> Self {
    PoolSize.settleWidth()
    let bands = Inspection.Band.sums(Runtime.shared.bands.map { Inspection.Band($0) })
    return Self(width: PoolSize.width, limit: PoolSize.cap, bands: bands)
  }
}

extension Inspection.Band {
  /// The bands of each kind, added up over the shards of the pool. `bands` has the three of one shard after the other.
  static func sums(_ bands: [Self]) -> [Self] {
    var sums = Array(bands.prefix(kinds))
    for (index, band) in bands.enumerated().dropFirst(kinds) { sums[index % kinds].add(band) }
    return sums
  }

  /// The bands of a shard.
  static let kinds = 3

  private mutating func add(_ other: Self) {
    threads += other.threads
    active += other.active
    searching += other.searching
    waiting += other.waiting
    stuck += other.stuck
    parked += other.parked
    hasWork = hasWork || other.hasWork
  }

  fileprivate init(_ band: ConcourseRuntime.Band) {
    let counts = band.counters.snapshot
    // A thread that ends, or one that comes back while it is given up, is counted twice for a moment.
    let blocked = max(0, counts.threads - counts.active - counts.parked)
    // ORDERING: relaxed; a count for people, of threads that go on meanwhile.
    let stuck = band.workers.reduce(0) {
      $0 + ($1.pointee.status.load(ordering: .relaxed) == WorkerRecord.Status.stuck ? 1 : 0)
    }
    self.init(
      name: "\(band.name)", qosClass: band.level.qosClass, threads: counts.active + blocked + counts.parked,
      active: counts.active, searching: counts.searching, waiting: blocked - min(stuck, blocked),
      stuck: min(stuck, blocked), parked: counts.parked, hasWork: band.hasWork)
  }
}

extension Inspection.BlockedThread {
  /// The threads that are blocked now, those that wait longest first.
  package static func all() -> [Self] {
    var found: [Self] = []
    // The thread that waits keeps what it waits for, and cannot go on while it is registered.
    ProcessQueues.shared.blockedThreads.visit { blocked in
      let wait = blocked.wait
      let isForQueue = wait.kind == .turn || wait.kind == .service
      found.append(
        Self(
          thread: blocked.thread, reason: Reason(rawValue: wait.kind.rawValue)!,
          queue: isForQueue ? UInt(bitPattern: wait.object) : nil, label: isForQueue ? wait.queue.label : "",
          since: DispatchTime(uptimeNanoseconds: blocked.since)))
    }
    return found.sorted { $0.since < $1.since }
  }
}

/// A queue that always exists.
package struct LastingQueue {
  package let id: UInt
  package let label: String
  package let kind: ObjectKind

  /// The main queue, and the global queues from the most urgent to the least.
  package static var all: [LastingQueue] {
    let levels: [QoSLevel] = [.userInteractive, .userInitiated, .default, .utility, .background]
    return ([ProcessQueues.shared.mainQueue] + levels.map(DispatchQueue.global(at:))).map { queue in
      LastingQueue(
        id: UInt(bitPattern: Unmanaged.passUnretained(queue).toOpaque()), label: queue.label, kind: queue.kind
      )
    }
  }
}

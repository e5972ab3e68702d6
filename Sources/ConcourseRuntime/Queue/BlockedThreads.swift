internal import CConcourse

/// A thread that has slept for some time in a wait which only certain threads can end. Lives on that thread's stack.
///
/// While it is registered, the thread runs no client code: what it holds stays held. Tools read the record from another
/// process (DEADLOCKS.md has the layout): up to `thread`, fields keep their order and size.
struct BlockedThread {
  enum Kind: UInt8 {
    /// For its turn on a queue, to which the queue of `frames` is equal or leads.
    case turn = 1
    /// Until its body has run on the thread that serves the queue at the end of the hierarchy.
    case service
    /// For the end of a work item.
    case item
    /// For the end of a body that runs once.
    case once
  }

  struct Wait {
    /// The queue, work item or gate that the thread waits for.
    let object: UnsafeRawPointer
    var waiter: UnsafeMutablePointer<SyncWaiter>?
    /// The frame of the `sync` that waits, or else of the innermost item that the thread runs.
    var frames: UnsafeMutablePointer<Frame>? = Frame.current
    let kind: Kind
  }

  fileprivate(set) var next: BlockedPointer?
  fileprivate(set) var previous: BlockedPointer?
  /// When the wait began (`Clock.uptime`).
  let since: UInt64
  let wait: Wait
  let thread: UInt32

  /// The concurrent queues on which the thread has a reader's place.
  let places: [UnsafeRawPointer]
  /// Whether the thread holds a queue for itself alone, or is the main thread, which serves one.
  let holdsQueues: Bool

  // GUARDED BY the lock of `BlockedThreads`.
  /// The search that reached this thread last, and whether it has left it again.
  var search: UInt64 = 0
  var isLeft = false
  var isReported = false

  fileprivate init(_ wait: Wait, since: UInt64) {
    self.since = since
    self.wait = wait
    thread = CurrentThread.id
    var (places, holdsQueues) = ([UnsafeRawPointer](), thread == Process.id)
    wait.forEachHeld { queue, isPlace in
      if isPlace { places.append(queue.selfPointer) } else { holdsQueues = true }
    }
    (self.places, self.holdsQueues) = (places, holdsQueues)
  }
}

typealias BlockedPointer = UnsafeMutablePointer<BlockedThread>

extension BlockedThread.Wait {
  /// The queue, for a wait of the first two kinds.
  var queue: DispatchQueue { Unmanaged<DispatchQueue>.fromOpaque(object).takeUnretainedValue() }

  /// Calls `body` with each queue that the thread holds, and whether it has only a reader's place there: the queues that
  /// an unfinished `sync` has taken on its way up, and those of the thread's items.
  func forEachHeld(_ body: (DispatchQueue, _ isPlace: Bool) -> Void) {
    var next = frames
    var end = waiter == nil ? nil : object
    while let frame = next {
      var link: DispatchQueue? = frame.pointee.queue.takeUnretainedValue()
      var isExclusive = frame.pointee.exclusive
      while let queue = link, queue.kind != .global, UnsafeRawPointer(queue.selfPointer) != end {
        body(queue, queue.kind == .concurrent && !isExclusive)
        isExclusive = false
        link = queue.targetQueue
      }
      end = nil
      next = frame.pointee.parent
    }
  }
}

/// The threads that sleep in waits without a time-out, for the search for deadlocks. The argument that a deadlock which
/// it reports is one, and that it finds each, is in DEADLOCKS.md.
package final class BlockedThreads {
  /// What happens when a deadlock is found, as `CONCOURSE_DEADLOCK` says.
  enum Reaction {
    case trap, report, off
  }

  private let reaction: Reaction = {
    switch Processor.environment("CONCOURSE_DEADLOCK") {
    case nil, "", "trap": return .trap
    case "report": return .report
    case "off": return .off
    case let other?:
      Trap.warn("CONCOURSE_DEADLOCK=\(other) is neither trap, report nor off; going on with trap")
      return .trap
    }
  }()

  /// Nanoseconds after which a thread that sleeps is registered: shorter waits pay nothing. Only tests change it.
  var patience = UInt64(Processor.number(40_000_000, inModel: 1_000_000))

  /// Taken by threads that have waited long, when they are registered and when they go on.
  private let lock = Lock(.blockedThreads)
  /// The numbers of registered threads with a reader's place, and of those that hold queues or serve one. Change under
  /// the lock.
  private let readers = Atomic<Int>(0)
  private let holders = Atomic<Int>(0)

  // GUARDED BY `lock`.
  /// The registered threads in lists by their ids: first those without a reader's place, then those with one. Made with
  /// the first.
  private var lists: UnsafeMutablePointer<BlockedPointer?>?
  /// The number of the last search.
  var searches: UInt64 = 0
  /// Whether the last search met a queue between a push and its note.
  var metUnnoted = false
  /// The number of deadlocks found.
  var deadlocks = 0

  static let listCount = 64

  deinit { lists?.deallocate() }

  // MARK: Sleeping

  /// Runs `sleep` until it returns true. If that takes long, the calling thread is registered, and a deadlock that the
  /// wait closes is reported.
  static func during(_ wait: BlockedThread.Wait, _ sleep: (Deadline) -> Bool) {
    // The threads that a fork left behind do not exist in the child.
    let all = Runtime.shared.blockedThreads
    if Process.isForkedChild || all.reaction == .off {
      _ = sleep(.never)
      return
    }
    let since = Clock.uptime()
    if all.patience > 0 && sleep(.uptime(since &+ all.patience)) { return }
    while !all.sleep(wait, since, sleep) {}
  }

  /// - Returns: whether the wait is over. If not, the queues must be looked at again.
  private func sleep(_ wait: BlockedThread.Wait, _ since: UInt64, _ sleep: (Deadline) -> Bool) -> Bool {
    if wait.kind == .turn { wait.queue.lookAgain(for: wait.waiter!) }
    var blocked = BlockedThread(wait, since: since)
    return withUnsafeMutablePointer(to: &blocked) { blocked in
      lock.withLock { insert(blocked) }
      let isSettled = search { [blocked] }
      let isOver = sleep(isSettled ? .never : .uptime(Clock.uptime() &+ max(1, patience)))
      lock.withLock { remove(blocked) }
      return isOver
    }
  }

  private func insert(_ blocked: BlockedPointer) {
    if lists == nil {
      lists = .allocate(capacity: 2 * Self.listCount)
      lists!.initialize(repeating: nil, count: 2 * Self.listCount)
      concourse_set_blocked_threads(lists!)
    }
    let first = list(of: blocked)
    blocked.pointee.next = first.pointee
    first.pointee?.pointee.previous = blocked
    first.pointee = blocked
    // ORDERING: relaxed; the search that follows publishes them, see `searchIfAny`.
    if !blocked.pointee.places.isEmpty { readers.wrappingAdd(1, ordering: .relaxed) }
    if blocked.pointee.holdsQueues { holders.wrappingAdd(1, ordering: .relaxed) }
  }

  private func remove(_ blocked: BlockedPointer) {
    // A signal handler may fork while the thread sleeps: the child has forgotten the record.
    guard find(blocked.pointee.thread) == blocked else { return }
    let (previous, next) = (blocked.pointee.previous, blocked.pointee.next)
    next?.pointee.previous = previous
    if let previous { previous.pointee.next = next } else { list(of: blocked).pointee = next }
    // ORDERING: relaxed; a thread that sees it late makes a futile search.
    if !blocked.pointee.places.isEmpty { readers.wrappingSubtract(1, ordering: .relaxed) }
    if blocked.pointee.holdsQueues { holders.wrappingSubtract(1, ordering: .relaxed) }
  }

  private func list(of blocked: BlockedPointer) -> UnsafeMutablePointer<BlockedPointer?> {
    let half = blocked.pointee.places.isEmpty ? 0 : Self.listCount
    return lists! + Int(blocked.pointee.thread) % Self.listCount + half
  }

  // MARK: Looking

  /// The registered thread with this id. Call under the lock.
  func find(_ thread: UInt32) -> BlockedPointer? {
    guard let lists, thread != 0 else { return nil }
    for half in 0..<2 {
      var link = lists[Int(thread) % Self.listCount + half * Self.listCount]
      while let blocked = link {
        if blocked.pointee.thread == thread { return blocked }
        link = blocked.pointee.next
      }
    }
    return nil
  }

  /// The registered threads that have a reader's place on the queue at this address. Call under the lock.
  func readers(of place: UnsafeRawPointer) -> [BlockedPointer] {
    var found: [BlockedPointer] = []
    guard let lists else { return found }
    for index in Self.listCount..<2 * Self.listCount {
      var link = lists[index]
      while let blocked = link {
        if blocked.pointee.places.contains(where: { $0 == place }) { found.append(blocked) }
        link = blocked.pointee.next
      }
    }
    return found
  }

  /// Calls `body` with each registered thread, under the lock: what they wait for lives meanwhile.
  func visit(_ body: (BlockedThread) -> Void) {
    lock.withLock {
      for index in 0..<2 * Self.listCount {
        var link = lists?[index]
        while let blocked = link {
          body(blocked.pointee)
          link = blocked.pointee.next
        }
      }
    }
  }

  /// The number of registered threads; for tests.
  var registered: Int {
    var count = 0
    visit { _ in count += 1 }
    return count
  }

  /// The number of deadlocks found; for tests.
  var deadlocksFound: Int { lock.withLock { deadlocks } }

  /// Searches from some threads, and reports what is found.
  /// - Returns: whether the search met no queue between a push and its note.
  @discardableResult
  private func search(_ starts: () -> [BlockedPointer]) -> Bool {
    var reports: [(cycle: String, threads: [String])] = []
    // The targets of queues that no registered thread holds must not change during the search.
    let isSettled = Runtime.shared.targetLock.withLock {
      lock.withLock { () -> Bool in
        searches += 1
        metUnnoted = false
        for start in starts() {
          if let cycle = cycle(from: start) { reports.append(describe(cycle)) }
        }
        return !metUnnoted
      }
    }
    // Not under the locks: the output may block.
    for report in reports {
      if reaction == .trap { Trap.clientBug(115, "deadlock: \(report.cycle)", details: report.threads) }
      Trap.warn("deadlock: \(report.cycle)")
      for thread in report.threads { Trap.warn("  \(thread)") }
    }
    return isSettled
  }

  // The calling thread, which goes on, has left a queue. This may have closed a deadlock of threads that sleep.

  /// The queue was left to its target. The caller keeps it alive.
  static func queueWasLeftToTarget(_ queue: DispatchQueue) {
    let all = Runtime.shared.blockedThreads
    all.searchIfAny(all.holders) { all.threadsAhead(of: queue) }
  }

  /// The queue at this address was left to its readers, the last of which may have released it meanwhile. At an address
  /// that is in use again, the search is futile.
  static func queueWasLeftToReaders(_ queue: UnsafeRawPointer) {
    let all = Runtime.shared.blockedThreads
    all.searchIfAny(all.readers) { all.readers(of: queue) }
  }

  /// Costs one load if there are no such threads.
  private func searchIfAny(_ threads: borrowing Atomic<Int>, _ starts: () -> [BlockedPointer]) {
    #if DEBUG
      // A search needs this lock, so none that comes after it may be held, although searches are rare.
      LockRank.target.willTake()
      LockRank.target.willRelease()
    #endif
    // ORDERING: relaxed; a thread that waits for the queue and did not see that it was left has changed the queue's
    // word (`QueueState.confirmed`) after all that it waits for had registered and before this thread changed the word.
    if threads.load(ordering: .relaxed) > 0 { search(starts) }
  }

  // MARK: Forks

  /// In a forked child: the parent's threads do not exist in it. A search may have held the lock.
  func forgetThreads() {
    lock.forgetHolder()
    lists?.update(repeating: nil, count: 2 * Self.listCount)
    // ORDERING: relaxed, both; the child has one thread.
    readers.store(0, ordering: .relaxed)
    holders.store(0, ordering: .relaxed)
  }
}

// SAFETY: atomics, and fields that are GUARDED BY the lock.
extension BlockedThreads: @unchecked Sendable {}

extension DispatchQueue {
  /// Gives this queue up by a transition, although threads may wait for it, and carries out what the transition says.
  /// After it, an item may release the reference that keeps the queue for the caller.
  final func leave(_ transition: @autoclosure () -> QueueState.Wake) {
    guard state.snapshot.isNested else { return carryOut(transition()) }
    let kept = Unmanaged.passRetained(self)
    carryOut(transition())
    BlockedThreads.queueWasLeftToTarget(self)
    kept.release()
  }

  /// A thread has waited long. Looks at the list on its behalf: the entries before it may not have been noted yet, or only
  /// as a barrier that no owner has looked at.
  fileprivate final func lookAgain(for waiter: UnsafeMutablePointer<SyncWaiter>) {
    if !waiter.pointee.event.isSet, case .own = state.noteWaiter(waiter.pointee.thread) { handOn() }
  }
}

internal import CConcourse

/// The threads that sleep in waits without a time-out, for the search for deadlocks. The argument that a deadlock which
/// it reports is one, and that it finds each, is in DEADLOCKS.md.
package final class BlockedThreads {
  /// What happens when a deadlock is found, as `CONCOURSE_DEADLOCK` says.
  enum Reaction {
    case trap, report, off
  }

  private let reaction: Reaction = {
    switch Process.environment("CONCOURSE_DEADLOCK") {
    case nil, "", "trap": return .trap
    case "report": return .report
    case "off": return .off
    case let other?:
      Trap.warn("CONCOURSE_DEADLOCK=\(other) is neither trap, report nor off; going on with trap")
      return .trap
    }
  }()

  /// Nanoseconds after which a thread that sleeps is registered: shorter waits pay nothing. Only tests change it.
  var patience = UInt64(Tuning.value(40_000_000, inModel: 1_000_000))

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
  /// Where the next pass begins, in order, and the same as a set.
  private var starts: [WaitSearch.Node] = []
  private var knownStarts: Set<WaitSearch.Node> = []
  private var isSearching = false
  private var budget = SearchBudget()
  /// The number of deadlocks found.
  var deadlocks = 0
  /// The steps of all searches; for tests.
  private var steps = 0

  static let listCount = 64

  deinit { lists?.deallocate() }

  // MARK: Sleeping

  /// Runs `sleep` until it returns true. If that takes long, the calling thread is registered, and a deadlock that the
  /// wait closes is reported.
  static func during(
    _ wait: BlockedThread.Wait, ending: BlockedThread.Ending = .byQueue, _ sleep: (Deadline) -> Bool
  ) {
    ProcessQueues.shared.uncountedBlockedThreads._withUnsafeGuaranteedRef { $0.during(wait, ending, sleep) }
  }

  private func during(
    _ wait: BlockedThread.Wait, _ ending: BlockedThread.Ending, _ sleep: (Deadline) -> Bool
  ) {
    // The threads that a fork left behind do not exist in the child.
    if Process.isForkedChild || reaction == .off {
      _ = sleep(.never)
      return
    }
    let since = Clock.uptime()
    // Threads that begin to wait together do not all wake up together.
    let firstPatience = patience + patience / 64 * UInt64(CurrentThread.id % 32)
    if firstPatience > 0 && sleep(.uptime(since &+ firstPatience)) { return }
    var pause = max(1, patience)
    // A deadlock that has been reported is not reported again after a pause.
    var isReported = false
    while !self.sleep(wait, ending, since, pause, &isReported, sleep) {
      pause = min(pause * 2, 5_000_000_000)
    }
  }

  /// - Parameter pause: how long to sleep if the search has not come to its end.
  /// - Returns: whether the wait is over. If not, the queues must be looked at again.
  private func sleep(
    _ wait: BlockedThread.Wait, _ ending: BlockedThread.Ending, _ since: UInt64, _ pause: UInt64,
    _ isReported: inout Bool, _ sleep: (Deadline) -> Bool
  ) -> Bool {
    if wait.kind == .turn { wait.queue.lookAgain(for: wait.waiter!) }
    var blocked = BlockedThread(wait, ending, since: since, frame: concourse_caller_frame())
    blocked.isReported = isReported
    return withUnsafeMutablePointer(to: &blocked) { blocked in
      search(
        lock.withLock {
          insert(blocked)
          add(.thread(blocked.pointee.thread))
          return beginPass()
        })
      let isSettled = lock.withLock { !blocked.pointee.awaitsSearch }
      let isOver = sleep(isSettled ? .never : .uptime(Clock.uptime() &+ pause))
      lock.withLock { remove(blocked) }
      isReported = blocked.pointee.isReported
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
    // ORDERING: relaxed; the search that follows publishes them, see `mayMatter`.
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

  /// Calls `body` with the threads of one of the lists of those with a reader's place. Call under the lock.
  func visitReaders(list index: Int, _ body: (BlockedThread) -> Void) {
    var link = lists?[Self.listCount + index]
    while let blocked = link {
      body(blocked.pointee)
      link = blocked.pointee.next
    }
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

  var stepsTaken: Int { lock.withLock { steps } }

  /// The number of deadlocks found; for tests.
  var deadlocksFound: Int { lock.withLock { deadlocks } }

  // MARK: Searching

  /// Makes a pass, and those that have become due meanwhile.
  /// - Parameter limit: the most steps of the calling thread; nil for what the budget allows.
  private func search(_ first: WaitSearch?, limit: Int? = nil) {
    var next = first
    while var pass = next {
      let most = limit ?? pass.limit
      var reports: [Report] = []
      while !goOn(&pass, &reports) && pass.steps < most {}
      next = lock.withLock {
        end(pass, wasLimited: limit != nil)
        return pass.isOver ? beginPass() : nil
      }
      // Not under the locks: the output may block.
      reports.forEach(print)
    }
  }

  /// Makes a slice of a pass.
  /// - Returns: whether the pass is over.
  private func goOn(_ pass: inout WaitSearch, _ reports: inout [Report]) -> Bool {
    // The targets of queues that no registered thread holds must not change during a slice. Their lock is not held while
    // this thread waits for the other one.
    while true {
      ProcessQueues.shared.targetLock.lock()
      if lock.tryLock() { break }
      ProcessQueues.shared.targetLock.unlock()
      lock.withLock {}
    }
    pass.goOn(in: self) { reports.append(describe($0)) }
    lock.unlock()
    ProcessQueues.shared.targetLock.unlock()
    return pass.isOver
  }

  typealias Report = (cycle: String, threads: [(text: String, frame: UInt)])

  private func print(_ report: Report) {
    // Only a process that ends waits for the places: the symbols and lines of a large program take long to read.
    if reaction == .trap {
      Trap.clientBug(115, "deadlock: \(report.cycle)") {
        let places = CallPlace.descriptions(from: report.threads.map { $0.frame })
        return zip(report.threads, places).map { $0.text + ($1.map { ", in \($0)" } ?? "") }
      }
    }
    Trap.warn("deadlock: \(report.cycle)")
    for thread in report.threads { Trap.warn("  \(thread.text)") }
  }

  // Call these under the lock.

  private func add(_ start: WaitSearch.Node) {
    if knownStarts.insert(start).inserted { starts.append(start) }
  }

  /// - Returns: nil if another thread searches, which does this, too, or if searches have taken too many steps lately, so
  ///   that a later one does it.
  private func beginPass() -> WaitSearch? {
    guard !isSearching, !starts.isEmpty, budget.allows(at: Clock.uptime()) else { return nil }
    isSearching = true
    defer { (starts, knownStarts) = ([], []) }
    return WaitSearch(from: starts, limit: budget.limit)
  }

  private func end(_ pass: WaitSearch, wasLimited: Bool) {
    isSearching = false
    steps += pass.steps
    budget.charge(pass.steps, isOver: pass.isOver, wasLimited: wasLimited)
    guard pass.isOver else { return pass.starts.forEach(add) }
    // Where something may have been missed, the threads look again after a pause.
    if pass.isIncomplete { return }
    for case .thread(let id) in pass.starts { find(id)?.pointee.awaitsSearch = false }
  }

  // The calling thread, which goes on, has left a queue. This may have closed a deadlock of threads that sleep.

  /// The queue was left to its target. The caller keeps it alive.
  static func queueWasLeftToTarget(_ queue: DispatchQueue) {
    ProcessQueues.shared.uncountedBlockedThreads._withUnsafeGuaranteedRef { all in
      guard all.mayMatter(all.holders) else { return }
      for node in all.nodesAhead(of: queue) { all.searchBriefly(from: node) }
    }
  }

  /// The queue at this address was left to its readers, the last of which may have released it meanwhile. At an address
  /// that is in use again, the search is futile.
  static func queueWasLeftToReaders(_ queue: UnsafeRawPointer) {
    ProcessQueues.shared.uncountedBlockedThreads._withUnsafeGuaranteedRef { all in
      if all.mayMatter(all.readers) { all.searchBriefly(from: .readers(queue)) }
    }
  }

  /// For a thread that goes on.
  private func searchBriefly(from start: WaitSearch.Node) {
    let most = 256
    search(
      lock.withLock {
        add(start)
        return starts.count <= most / 4 ? beginPass() : nil
      }, limit: most)
  }

  /// Whether there are such threads. Costs one load if not.
  private func mayMatter(_ threads: borrowing Atomic<Int>) -> Bool {
    #if DEBUG
      // A search needs this lock, so none that comes after it may be held, although searches are rare.
      LockRank.target.willTake()
      LockRank.target.willRelease()
    #endif
    // ORDERING: relaxed; a thread that waits for the queue and did not see that it was left has changed the queue's
    // word (`QueueState.confirmed`) after all that it waits for had registered and before this thread changed the word.
    return threads.load(ordering: .relaxed) > 0
  }

  private func nodesAhead(of queue: DispatchQueue) -> [WaitSearch.Node] {
    ProcessQueues.shared.targetLock.withLock { lock.withLock { ahead(ofQueue: queue) } }
  }

  // MARK: Forks

  /// In a forked child: the parent's threads do not exist in it. A search may have held the lock.
  func forgetThreads() {
    lock.forgetHolder()
    lists?.update(repeating: nil, count: 2 * Self.listCount)
    (starts, knownStarts, isSearching) = ([], [], false)
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

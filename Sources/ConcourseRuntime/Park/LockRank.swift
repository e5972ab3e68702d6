/// The locks of the engine, and which of them may be taken while another is held.
///
/// Debug builds check each acquisition against `order`. The table of DESIGN.md is written from it, by
/// `Scripts/documents --write`.
@usableFromInline
package enum LockRank: UInt8, CaseIterable, Sendable {
  // ConcourseRuntime.
  case target, blockedThreads, objectExtras, workItem, group, mainQueueHandle, runLoopQueue, rootQueue
  case idleWorkers, nodeDepot

  // ConcourseEvents: sources.
  case source, timerBackend, fileBackend, signalBackend, signalHub, processBackend, processExit,
    processConnector
  case fileSystemBackend, fileGrowth, inotifyHub, memoryPressureBackend

  // ConcourseEvents: I/O.
  case channel, descriptorEntry, descriptorTable, largeBuffers, sharedRing, completionRing

  // ConcourseEvents: the event loop.
  case watchTable, fileRegistration, eventLoop, timerTable, kernelTimer

  // ConcourseInspection and ConcourseABI.
  case statistics, rawObjects

  /// A lock of a test, which may be taken at any time.
  case test

  /// What may be taken while a lock is held, and why.
  private static let order: [(held: LockRank, taken: [LockRank], why: String)] = [
    (.objectExtras, [.nodeDepot], "a ticket for a held-back item takes a node"),
    (.target, [.objectExtras], "a target is replaced under both"),
    (.target, [.blockedThreads], "a search for deadlocks follows targets"),
    (
      .group, [.nodeDepot, .rootQueue, .idleWorkers, .objectExtras],
      "notifications are submitted under it, which keeps their order"
    ),
    (
      .workItem, [.eventLoop, .timerTable, .kernelTimer],
      "a cancel finds the delayed submission either set or not begun"
    ),
    (
      .timerBackend, [.source, .eventLoop, .timerTable, .kernelTimer],
      "rescheduling discards raised events and sets the timer in one step"
    ),
    (.timerTable, [.kernelTimer], "a timer is set in the kernel before a later one is set in its table"),
    (.watchTable, [.fileRegistration], "a registration joins and leaves the table"),
    (.descriptorEntry, [.descriptorTable], "the next user of a descriptor finds it given back, or waits"),
    (
      .descriptorEntry, [.largeBuffers, .nodeDepot, .rootQueue, .idleWorkers, .objectExtras],
      "the last reference to data may be dropped there, which submits its deallocator"
    ),
    (
      .workItem, [.rootQueue, .idleWorkers], "without the loop's thread, a worker is woken to wait for events"
    ),
    (
      .timerBackend, [.rootQueue, .idleWorkers],
      "without the loop's thread, a worker is woken to wait for events"
    ),
    (
      .sharedRing, [.rootQueue, .idleWorkers],
      "without the loop's thread, a worker is woken to wait for events"
    ),
    (
      .sharedRing, [.completionRing, .eventLoop, .watchTable, .fileRegistration, .timerTable, .kernelTimer],
      "the ring is watched before it is published"
    ),
  ]
}

#if DEBUG
  extension LockRank {
    /// For each rank, the ranks that may be held when it is taken: a bit for each.
    private static let mayBeHeld: [UInt64] = order.reduce(into: Array(repeating: 0, count: allCases.count)) {
      masks, row in
      for rank in row.taken { masks[Int(rank.rawValue)] |= row.held.bit }
    }

    private var bit: UInt64 { 1 << UInt64(rawValue) }

    /// Traps if a lock is held that may not be held when this one is taken.
    @usableFromInline
    package func willTake() {
      let held = CurrentThread.state.pointee.held_locks
      let wrong = held & ~Self.mayBeHeld[Int(rawValue)]
      if wrong != 0 && self != .test {
        let first = Self.allCases.first { wrong & $0.bit != 0 }!
        Trap.runtimeBug("the lock \(self) was taken while \(first) was held, against the order of LockRank")
      }
      didTake()
    }

    @usableFromInline
    package func didTake() { CurrentThread.state.pointee.held_locks |= bit }

    @usableFromInline
    package func willRelease() { CurrentThread.state.pointee.held_locks &= ~bit }
  }
#endif

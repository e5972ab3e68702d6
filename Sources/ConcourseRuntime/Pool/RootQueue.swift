internal import CConcourse

/// The end of every hierarchy: the runnable entries of one QoS level in one shard, first in, first out.
///
/// Any thread puts entries in. The workers of one band take them out one at a time, so that items of global
/// queues start in the promised order, however long each takes.
final class RootQueue {
  let level: QoSLevel
  let band: Unmanaged<Band>
  /// What runs the entries gets this with each: the global queue of the level.
  private(set) var client: UnsafeMutableRawPointer?
  /// Separates the constants from the line that producers write.
  private let spaceBefore: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (
    0, 0, 0, 0, 0, 0, 0, 0
  )
  let list = WorkList()
  /// Separates that line from the one that consumers write. One word less than a line, so that the lock and `front` share
  /// a line wherever the object lies.
  private let space: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0, 0)
  let consumer = Lock(.rootQueue)
  /// The oldest entry, if a consumer has left it. GUARDED BY `consumer`; atomic so that the ledger counts its line.
  private let front = Atomic<NodePointer?>(nil)
  let boosted = BoostedEntries()
  let latest = LatestBatches()

  init(level: QoSLevel, band: Band) {
    self.level = level
    self.band = .passUnretained(band)
  }

  /// Sets the client, before the first entry.
  func adopt(_ client: UnsafeMutableRawPointer) { self.client = client }

  /// Puts in a queue that has become runnable.
  ///
  /// A queue that a worker of this band has just made runnable stays with that worker, which runs it next: a hop
  /// between two queues then needs neither another thread nor the kernel.
  func submitQueue(_ node: NodePointer) {
    if let worker = WorkerThread.current, worker.pointee.band.toOpaque() == band.toOpaque() {
      band._withUnsafeGuaranteedRef { $0.keep(node, on: worker) }
    } else {
      push(node)
    }
  }

  /// Puts in an item. As `push`, unless the calling worker will run it before another worker wakes up.
  @inline(__always)
  func submitItem(_ node: NodePointer) {
    _ = list.push(node)
    band._withUnsafeGuaranteedRef { $0.noteItem() }
  }

  /// Appends an entry, and makes sure that a worker takes it.
  func push(_ node: NodePointer) {
    _ = list.push(node)
    band._withUnsafeGuaranteedRef { $0.noteWork() }
  }

  /// The oldest entry, or nil.
  @inline(__always)
  func take() -> NodePointer? {
    guard !list.isEmpty else { return nil }
    return consumer.withLock { popFirst() }
  }

  /// As `take`. Consumer only.
  @inline(__always)
  func popFirst() -> NodePointer? {
    if !boosted.isEmpty { boosted.take() }
    guard let node = first() else { return nil }
    leave(at: list.advance(past: node))
    return node
  }

  /// The oldest entry, which stays. Consumer only.
  @inline(__always)
  func first() -> NodePointer? {
    // ORDERING: relaxed; under the lock.
    front.load(ordering: .relaxed) ?? list.first()
  }

  /// As `first`, but nil if the producer has yet to link the entry. Consumer only.
  var firstIfLinked: NodePointer? {
    // ORDERING: relaxed; under the lock.
    front.load(ordering: .relaxed) ?? list.firstIfLinked
  }

  /// Leaves the oldest entry, or nil, to the next consumer, without writing the line that producers write. Consumer only.
  @inline(__always)
  func leave(at node: NodePointer?) {
    // ORDERING: relaxed; under the lock.
    front.store(node, ordering: .relaxed)
  }

  /// Whether entries wait.
  var hasWork: Bool { !list.isEmpty }
  /// As `hasWork`, ordered against the announcements of workers and the monitor (Pool/README.md).
  var hasWorkInTotalOrder: Bool { !list.isEmptyInTotalOrder }

  /// Whether a worker would find an entry that was promised a thread (Queue/Hierarchy/Overcommit.swift) among the oldest.
  var hasPromisedEntry: Bool {
    guard hasWork && tryToConsume() else { return false }
    defer { consumer.unlock() }
    return lastAmongOldest { node in
      switch node.pointee.kind {
      case .item, .queue: concourse_was_promised_thread(node)
      case .boosted, .test: false
      }
    } > 0
  }
}

// SAFETY: many threads push to `list`, and taking from it is GUARDED BY `consumer`; `client` is set once, before
// the first entry; the rest is constant.
extension RootQueue: @unchecked Sendable {}

extension Runtime {
  /// The root queue that serves work of `level` in the calling thread's shard.
  @inline(__always)
  static func root(at level: QoSLevel) -> Unmanaged<RootQueue> {
    rootTable[Int(CurrentThread.state.pointee.roots) &+ Int(level.rawValue)]
  }
}

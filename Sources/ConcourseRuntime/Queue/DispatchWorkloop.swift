// SAFETY: the lists are lock-free; `firsts` is OWNED BY the queue's owner.
/// A queue that runs one item at a time, always one of the highest quality-of-service class that has items.
///
/// Items of one class keep their order, and so do the items of each serial queue that targets the workloop.
/// `sync` directly on a workloop traps; use `asyncAndWait`. Matching C type: `dispatch_workloop_t`.
public final class DispatchWorkloop: _DispatchSerialExecutorQueue, @unchecked Sendable {
  /// Properties fixed at creation; none is defined.
  public struct Attributes: OptionSet, Sendable {
    /// The bits.
    public let rawValue: UInt64
    /// A set from its bits.
    public init(rawValue: UInt64) { self.rawValue = rawValue }
  }

  /// Used in place of the list that other queues have.
  private let entries = EntriesByClass()

  /// Creates a workloop on the default global queue. Matching C function: `dispatch_workloop_create`.
  /// - Parameters:
  ///   - label: a name for debugging.
  ///   - attributes: none is defined.
  ///   - autoreleaseFrequency: accepted and without effect where there is no Objective-C.
  public init(
    label: String, attributes: Attributes = [], autoreleaseFrequency: AutoreleaseFrequency = .workItem
  ) {
    super.init(kind: .workloop, label: QueueName(label), qos: .unspecified, attributes: [], target: nil)
  }

  /// Creates an inactive workloop, to be configured before `activate()`. Submitting to it traps until then. Matching C
  /// function: `dispatch_workloop_create_inactive`.
  package init(inactive label: String) {
    super.init(
      kind: .workloop, label: QueueName(label), qos: .unspecified, attributes: .initiallyInactive, target: nil
    )
  }

  /// Whether it has no entries, for callers that must see their own pushes only, as `WorkList.isEmpty`.
  var isEmpty: Bool { entries.isEmpty }

  /// Appends a node to the list of its class.
  /// - Returns: true when that list was empty: the caller must note the work in the state. Otherwise the work of the
  ///   list's first entry is still noted, or an owner looks at all lists before it gives the workloop up.
  func push(_ node: NodePointer, beforeLink: (_ wasEmpty: Bool) -> Void = { _ in }) -> Bool {
    entries.push(node, beforeLink: beforeLink)
  }

  func hasEntries(besides entry: NodePointer?) -> Bool { entries.hasEntries(besides: entry) }

  /// The owner's next entry, which stays in its list. If there is none, or the workloop is held, gives the workloop up
  /// and returns nil.
  private func nextEntry() -> NodePointer? {
    while true {
      let first = entries.first()
      if state.snapshot.isHeld {
        if case .released = state.releaseHeld(first.map(entryLevel) ?? .unspecified) { return nil }
      } else if let first {
        return first
      } else if case .released = state.releaseEmpty() {
        return nil
      }
    }
  }

  /// Runs entries by class until none is left. The caller owns the queue.
  /// - Parameter entry: this workloop's own entry, if it is still in the list of the target.
  func drainByLevel(at entry: NodePointer?) {
    var turn = Turn(of: self)
    var left = turn.interval
    while let node = nextEntry() {
      if left == 0 {
        if ends(&turn, at: entry, leaving: node) { return }
        left = turn.interval
      }
      left -= 1
      if node.isWaiter {
        if passTurn(node) { return }
      } else {
        // The node stays in its list while its item runs, as in a serial drain.
        Frame.setLevel(node.pointee.level)
        Invocation.performInPlace(node)
        entries.remove(node)
        NodeMagazine.recycle(node)
      }
    }
  }

  /// Gives up the workloop that the calling thread owns but does not drain.
  func handOnByLevel() {
    while let node = nextEntry() {
      guard node.isWaiter else { return leaveToWorker(entryLevel(node)) }
      if passTurn(node) { return }
    }
  }

  /// Gives a waiting thread, whose node is its list's first, its turn.
  /// - Returns: whether that thread now owns the workloop.
  private func passTurn(_ node: NodePointer) -> Bool {
    entries.remove(node)
    return passTurn(toWaiterIn: node, leftovers: !entries.isEmpty)
  }
}

extension DispatchQueue {
  /// Traps on an inactive workloop: the level for its items is not known yet.
  final func requireActive() {
    guard !state.snapshot.isInactive else {
      Trap.clientBug(
        106, "an item was submitted to workloop \"\(label)\", which is inactive; activate it first")
    }
  }

  /// This queue as a workloop. Its kind must be `.workloop`.
  final var asWorkloop: DispatchWorkloop {
    // SAFETY: only DispatchWorkloop passes the kind `.workloop` to the initialiser.
    unsafeDowncast(self, to: DispatchWorkloop.self)
  }

  /// Whether the queue has no entries that this thread has pushed or seen noted in the state.
  final var hasNoEntries: Bool {
    @inline(__always) get { kind == .workloop ? asWorkloop.isEmpty : list.isEmpty }
  }
}

/// Entries in order of arrival, a list for each class. Many threads push; the owner of the queue takes, from the
/// highest class that has entries, so that an entry never has to be sorted.
private struct EntriesByClass: ~Copyable {
  /// From background up; no class is served as default.
  private static let classes = Int(QoSLevel.userInteractive.rawValue)
  private let lists: UnsafeMutablePointer<WorkList>
  /// The first entry of each list; nil if it must be read from the list. OWNED BY the owner of the queue, which thus
  /// does not write the cache lines that producers write.
  private let firsts: UnsafeMutablePointer<NodePointer?>

  init() {
    lists = .allocate(capacity: Self.classes)
    firsts = .allocate(capacity: Self.classes)
    for index in 0..<Self.classes { (lists + index).initialize(to: WorkList()) }
    firsts.initialize(repeating: nil, count: Self.classes)
  }

  deinit {
    lists.deinitialize(count: Self.classes)
    lists.deallocate()
    firsts.deallocate()
  }

  private static func index(of node: NodePointer) -> Int { Int(node.pointee.level.served.rawValue) - 1 }

  var isEmpty: Bool {
    for index in 0..<Self.classes where !lists[index].isEmpty { return false }
    return true
  }

  func hasEntries(besides entry: NodePointer?) -> Bool {
    for index in 0..<Self.classes { if let last = lists[index].last, last != entry { return true } }
    return false
  }

  @inline(__always)
  func push(_ node: NodePointer, beforeLink: (_ wasEmpty: Bool) -> Void) -> Bool {
    lists[Self.index(of: node)].push(node, beforeLink: beforeLink)
  }

  /// The first entry of the highest class that has any. Owner only.
  @inline(__always)
  func first() -> NodePointer? {
    var index = Self.classes
    while index > 0 {
      index -= 1
      if let known = firsts[index] { return known }
      if let node = lists[index].first() {
        firsts[index] = node
        return node
      }
    }
    return nil
  }

  /// Takes out an entry that is its list's first. Owner only.
  @inline(__always)
  func remove(_ node: NodePointer) {
    let index = Self.index(of: node)
    firsts[index] = lists[index].advance(past: node)
  }
}

extension DispatchWorkloop {
  /// The workloop that the running item belongs to, directly or through the targets of its queue; nil outside.
  /// Matching C function: `dispatch_workloop_copy_current`.
  package static var currentWorkloop: DispatchWorkloop? {
    var link = Frame.current?.pointee.queue.takeUnretainedValue()
    while let queue = link {
      if queue.kind == .workloop { return queue.asWorkloop }
      link = queue.targetQueue
    }
    return nil
  }

  /// Whether the running item belongs to this workloop, or was submitted synchronously by one that does. Matching C
  /// function: `dispatch_workloop_is_current`.
  package var isCurrent: Bool { Frame.hold(of: self, from: Frame.current) != .none }

  /// Whether an item that could be interrupted should end, since other work waits for its worker. Matching C function:
  /// `_dispatch_workloop_should_yield_4NW`.
  package static var shouldYield: Bool { currentWorkloop != nil && WorkerThread.shouldYield }
}

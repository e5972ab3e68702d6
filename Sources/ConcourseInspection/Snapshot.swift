@_exported public import ConcourseEvents
internal import ConcourseRecording

extension Inspection {
  /// A queue, as far as a snapshot or statistics know it.
  public struct Queue: Sendable, Equatable, Identifiable {
    /// The kind of a queue.
    public enum Kind: UInt8, Sendable {
      /// A global queue: its items go to the pool.
      case global
      /// A serial queue.
      case serial
      /// A private concurrent queue.
      case concurrent
      /// A workloop.
      case workloop
      /// The main queue.
      case main
      /// A queue that a run loop serves.
      case runLoop
    }

    /// The queue's address. After the queue is freed, another one may get it.
    public var id: UInt
    /// The label; empty if there is none. Of a private queue at most 95 bytes.
    public var label: String
    /// Its kind.
    public var kind: Kind
    /// The target's `id` when the queue was first recorded; nil if it has none. Global queues do not have one.
    public var target: UInt?
    /// Of a queue without a label that was made while the process was recorded: return addresses of the calls that made
    /// it, innermost first. Some are of the library. Otherwise empty.
    public var creationStack: [UInt] = []
    /// The items that wait to start: those submitted while there are statistics, or of an idle queue. nil while there
    /// are none. Of a global queue only its own items, not the queues that target it.
    public var waiting: Int?
    /// The items that run now; nil while there are no statistics.
    public var running: Int?
  }

  /// The pool, the blocked threads and the known queues at one time.
  public struct Snapshot: Sendable {
    /// When it was taken.
    public var time: DispatchTime
    /// The pool's threads.
    public var pool: Pool
    /// Threads that are blocked, those that wait longest first.
    public var blockedThreads: [BlockedThread]
    /// The main queue and the global queues, then each queue that has had an item since the process was first recorded,
    /// overcommitting global queues of C included, in the order of their first items. A queue that was freed stays in the list until its memory is a queue again.
    public var queues: [Queue]
  }

  /// What the process's pool and queues look like now.
  ///
  /// The parts are read one after the other while the process goes on, so a thread may be active in one part and blocked
  /// in another. Without statistics, only the main queue and the global queues are known; the runtime keeps no list of
  /// queues. O(threads + queues). It may wait some milliseconds for a reader of statistics. In a forked child the pool
  /// is empty. Matching C functions: `concourse_inspect_pool`, `concourse_inspect_blocked_threads`,
  /// `concourse_inspect_queues`.
  public static func snapshot() -> Snapshot {
    Snapshot(time: .now(), pool: .read(), blockedThreads: BlockedThread.all(), queues: knownQueues())
  }

  /// The main queue and the global queues, then those that were recorded.
  package static func knownQueues() -> [Queue] {
    let seen = StatisticsReader.shared.present()
    var queues = LastingQueue.all.map { lasting in
      Queue(
        id: lasting.id, label: lasting.label, kind: Queue.Kind(rawValue: lasting.kind.rawValue) ?? .global,
        target: nil)
    }
    guard let seen else { return queues }
    // A global queue may be several objects, of which the first that was recorded counts the items of all.
    var globals = Dictionary(
      seen.queues.filter { $0.kind == .global }.map { ($0.label, $0.id) },
      uniquingKeysWith: { first, _ in first })
    let counted = queues.map { globals.removeValue(forKey: $0.label) ?? $0.id }
    let lasting = Set(queues.map(\.id))
    // The overcommitting global queues are known once they have had an item.
    let others = seen.queues.filter {
      !lasting.contains($0.id) && ($0.kind != .global || globals[$0.label] == $0.id)
    }
    queues += others
    guard seen.isCounting else { return queues }
    for (index, id) in (counted + others.map(\.id)).enumerated() {
      queues[index].waiting = seen.waiting[id] ?? 0
      queues[index].running = seen.running[id] ?? 0
    }
    return queues
  }
}

extension Inspection.Queue {
  /// A queue whose name was recorded; without one, only its address is known.
  init(_ id: UInt, _ name: RecordedName?) {
    self.init(
      id: id, label: name?.text ?? "", kind: name.flatMap { Kind(rawValue: $0.kind) } ?? .serial,
      target: name.flatMap { $0.target == 0 ? nil : UInt($0.target) },
      creationStack: (name?.frames ?? []).map { UInt($0) })
  }
}

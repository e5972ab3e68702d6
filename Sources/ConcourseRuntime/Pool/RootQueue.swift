/// The end of every hierarchy: the runnable entries of one QoS level, first in, first out.
///
/// Any thread puts entries in. The workers of one band take them out one at a time, so that items of global
/// queues start in the promised order, however long each takes.
final class RootQueue {
  let level: QoSLevel
  let band: Unmanaged<Band>
  let list = WorkList()
  let consumer = Lock(.rootQueue)
  let boosted = BoostedEntries()
  private(set) var queue: Unmanaged<DispatchQueue>!

  init(level: QoSLevel, band: Band) {
    self.level = level
    self.band = .passUnretained(band)
  }

  /// Links the global queue of this root. It is never freed.
  func adopt(_ queue: DispatchQueue) { self.queue = .passRetained(queue) }

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
    return consumer.withLock {
      if !boosted.isEmpty { boosted.take() }
      return list.popFirst()
    }
  }

  /// Whether entries wait.
  var hasWork: Bool { !list.isEmpty }
  /// As `hasWork`, ordered against the announcements of workers and the monitor (Pool/README.md).
  var hasWorkInTotalOrder: Bool { !list.isEmptyInTotalOrder }
}

// SAFETY: many threads push to `list`, and taking from it is GUARDED BY `consumer`; `queue` is set once while the
// runtime is made; the rest is constant.
extension RootQueue: @unchecked Sendable {}

extension DispatchQueue {
  /// The global queue of a quality-of-service class: always the same object for a class.
  ///
  /// Global queues are concurrent; barriers on them are ordinary items, and suspending them has no
  /// effect. `.unspecified` gives the default queue. Matching C function: `dispatch_get_global_queue`.
  /// - Parameter qos: the class; `.unspecified` means the default class.
  public class func global(qos: DispatchQoS.QoSClass = .default) -> DispatchQueue {
    Runtime.globalQueue(QoSLevel(qos))
  }

  /// The global queue of a legacy priority. Matching C function: `dispatch_get_global_queue`.
  /// - Parameter priority: the legacy priority.
  @available(macOS, deprecated: 10.10, renamed: "global(qos:)")
  public class func global(priority: GlobalQueuePriority) -> DispatchQueue {
    switch priority {
    case .high: Runtime.globalQueue(.userInitiated)
    case .default: Runtime.globalQueue(.default)
    case .low: Runtime.globalQueue(.utility)
    case .background: Runtime.globalQueue(.background)
    }
  }
}

/// The one runtime of a process: the bands of workers, the global queues on them, the main queue.
///
/// Its tables are plain memory: for an array, Swift's runtime would first make the array's type, which takes 40 µs of
/// the start of a program.
package final class Runtime {
  /// The bands, from the most to the least urgent. Never freed.
  package let bands: UnsafeBufferPointer<Band>
  /// Indexed by `QoSLevel.rawValue`; the first is default's. Never released: counting references on each submission
  /// would make all threads write one cache line.
  let roots: UnsafeMutablePointer<Unmanaged<RootQueue>>
  private let mainQueue: DispatchQueue
  /// Watches over workers that make no progress.
  package let monitor = Monitor()
  /// The threads that sleep in waits without a time-out (Queue/DEADLOCKS.md).
  let blockedThreads = BlockedThreads()
  /// Whether there is no worker because the system has refused the last thread. A thread that waits for its turn looks
  /// at it again and again while it is true, and so needs no order.
  let lacksWorkers = Atomic<Bool>(false)
  /// Orders changes of queues' targets (Queue/DispatchQueue+Target.swift).
  let targetLock = Lock(.target)
  /// The server of the main queue.
  let mainThread: MainThread

  init() {
    mainThread = MainThread()
    mainQueue = DispatchQueue(
      kind: .main, label: QueueName("com.apple.main-thread"), qos: .unspecified, attributes: [], target: nil)
    let priority = Priority.ofProcess
    let bands = UnsafeMutablePointer<Band>.allocate(capacity: 3)
    bands.initialize(to: Band(name: "concourse", level: .default, priority, monitor))
    (bands + 1).initialize(to: Band(name: "concourse-ut", level: .utility, priority, monitor))
    (bands + 2).initialize(to: Band(name: "concourse-bg", level: .background, priority, monitor))
    self.bands = UnsafeBufferPointer(start: bands, count: 3)

    roots = .allocate(capacity: 6)
    func make(_ level: QoSLevel, _ band: Band) -> Unmanaged<RootQueue> {
      let root = RootQueue(level: level, band: band)
      root.adopt(GlobalQueue(root))
      let forEver = Unmanaged.passRetained(root)
      (roots + Int(level.rawValue)).initialize(to: forEver)
      return forEver
    }
    let byDefault = make(.default, bands[0])
    (roots + Int(QoSLevel.unspecified.rawValue)).initialize(to: byDefault)
    bands[0].serve(make(.userInteractive, bands[0]))
    bands[0].serve(make(.userInitiated, bands[0]))
    bands[0].serve(byDefault)
    bands[1].serve(make(.utility, bands[1]))
    bands[2].serve(make(.background, bands[2]))
    Self.publish(self)
    Recording.beginIfAsked()
  }

  /// The root queue that serves work of `level`.
  @inline(__always)
  static func root(at level: QoSLevel) -> Unmanaged<RootQueue> {
    rootTable[Int(level.rawValue)]
  }

  /// The global queue of `level`.
  package static func globalQueue(_ level: QoSLevel) -> DispatchQueue {
    uncountedGlobalQueue(level).takeUnretainedValue()
  }

  /// As `globalQueue`, without counting a reference: global queues are never freed.
  static func uncountedGlobalQueue(_ level: QoSLevel) -> Unmanaged<DispatchQueue> {
    shared.roots[Int(level.rawValue)]._withUnsafeGuaranteedRef { $0.queue }
  }

  /// The main queue.
  static var mainQueue: DispatchQueue { shared.mainQueue }

  /// Whether workers of normal priority run something, or look for it.
  package var hasActiveWorkers: Bool { bands[0].counters.snapshot.active > 0 }

  /// Resets the counts in a forked child, where only the calling thread exists. A submission then asks for a
  /// worker, and traps.
  func forgetThreads() {
    for band in bands { band.counters.reset() }
  }

  /// Traps in a forked child, which has no workers and must not wait for any.
  package static func requireThreads(_ deed: String) {
    if Process.isForkedChild {
      Trap.clientBug(
        407,
        "\(deed) in a forked child process, which has no worker threads; only exec and sync on idle "
          + "queues work after fork")
    }
  }
}

// SAFETY: restates the conformance of DispatchQueue; `root` is constant and never freed.
/// One of the queues in which every hierarchy ends: hands its items directly to the pool.
final class GlobalQueue: DispatchQueue, @unchecked Sendable {
  let root: Unmanaged<RootQueue>
  /// Whether its items were promised a thread each (Overcommit.swift).
  let isOvercommitting: Bool

  init(_ root: RootQueue, isOvercommitting: Bool = false) {
    self.root = .passUnretained(root)
    self.isOvercommitting = isOvercommitting
    super.init(
      kind: .global, label: QueueName(isOvercommitting ? root.level.label + ".overcommit" : root.level.label),
      qos: DispatchQoS(qosClass: root.level.qosClass, relativePriority: 0), attributes: [], target: nil)
  }
}

extension DispatchQueue {
  /// This queue as a global queue. Its kind must be `.global`.
  final var asGlobal: GlobalQueue {
    // SAFETY: only GlobalQueue passes the kind `.global` to the initialiser.
    @inline(__always) get { unsafeDowncast(self, to: GlobalQueue.self) }
  }
}

extension DispatchQueue {
  /// Whether both stand for the same global queue.
  final func isSameGlobalQueue(as other: DispatchQueue) -> Bool {
    kind == .global && other.kind == .global && asGlobal.root.toOpaque() == other.asGlobal.root.toOpaque()
  }
}

extension QoSLevel {
  /// The global queue's label: a constant, since all of them are made when a program first uses the pool.
  fileprivate var label: String {
    switch self {
    case .background: "com.apple.root.background-qos"
    case .utility: "com.apple.root.utility-qos"
    case .default, .unspecified: "com.apple.root.default-qos"
    case .userInitiated: "com.apple.root.user-initiated-qos"
    case .userInteractive: "com.apple.root.user-interactive-qos"
    }
  }
}

// SAFETY: everything is constant after `init`.
extension Runtime: @unchecked Sendable {}

/// The process, in the model.
enum Process {
  // SAFETY: both are read and written on the exploring thread only; explorations run one at a time.
  /// The process id, which is also the id of the main thread: the scenario's body unless `becomeMainThread` is called.
  private(set) nonisolated(unsafe) static var id: UInt32 = 1

  // SAFETY: as above.
  private(set) nonisolated(unsafe) static var isForkedChild = false

  static let lacksMonitor = SeldomChanged(false)

  static func beginAfresh() {
    (id, isForkedChild) = (1, false)
    lacksMonitor.value = false
  }

  static var isForked: Bool { isForkedChild }
  static var hasLeftThreads: Bool { isForkedChild }
  static func lacks(thread id: UInt32) -> Bool { isForked && !SystemThread.exists(id) }
  /// A coroutine keeps its id.
  static func hadInParent(_ id: UInt32) -> Bool { false }
  static var forks: UInt32 { isForkedChild ? 1 : 0 }
  static func hasLeft(_ id: UInt32, after count: UInt32) -> Bool {
    forks != count && !SystemThread.exists(id)
  }
  static var isAloneInChild: Bool { isForked }
  static var threadCount: Int { 1 }

  /// Makes the calling coroutine the main thread.
  static func becomeMainThread() {
    Scheduler.current?.partialOrder?.touchAll()
    id = CurrentThread.id
  }

  /// Forks: the execution goes on as the child, where only the calling coroutine exists.
  static func fork() {
    guard let scheduler = Scheduler.arrive() else { return }
    scheduler.endOthers()
    if ModelFaults.missesForks { return }
    (id, isForkedChild) = (CurrentThread.id, true)
    // As the fork handler in Runtime+Process.swift.
    (CurrentThread.state.pointee.worker, CurrentThread.state.pointee.delivering) = (nil, nil)
    NodeMagazine.depot.abandonStock()
    Runtime.shared.forgetThreads()
  }
}

/// The machine, in the model.
enum Processor {
  /// Marks the coroutine as spinning. It continues after another has changed a word, or when no other can run.
  static func pause() { Scheduler.current?.pause() }

  /// Lets another coroutine run.
  static func yield() { Scheduler.current?.pause() }

  /// A scenario's threads choose their shards.
  static func adoptShard() {}
  static func setRoots(_: Int, ofShard _: Int) {}

  /// The number of processors; a scenario sets it before it uses the engine.
  // SAFETY: read and written on the exploring thread only; explorations run one at a time.
  nonisolated(unsafe) static var affinityCount = 2
}

enum Tuning {
  /// The model's number, unless a fault has removed the one of that name.
  static func value(_ value: UInt32, inModel: UInt32, name: String = #function) -> UInt32 {
    #if LEDGER
      value
    #else
      ModelFaults.never == name ? .max : inModel
    #endif
  }
}

extension Process {
  /// The model has no environment variables: executions must not depend on the environment.
  static func environment(_ name: String) -> String? { nil }
  static func trustedEnvironment(_ name: String) -> String? { nil }
}

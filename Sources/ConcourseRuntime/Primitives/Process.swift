internal import CConcourse
internal import Glibc

/// Facts of the process that a fork changes. FORK.md lists all of them.
package enum Process {
  // ORDERING: relaxed; only rewritten by the fork handler, while the child has one thread.
  private static let lostThreads = Atomic<Bool>(false)

  /// The process id, which is also the main thread's id. The first reader makes the C library watch for forks.
  static var id: UInt32 { concourse_process_id() }

  /// Whether this process was forked and has not called exec. Its parent's other threads do not exist in it.
  static var isForked: Bool { concourse_is_forked() }

  /// Whether this process is a forked child, without exec, of one that had threads of the runtime: it has no worker
  /// threads and makes none.
  package static var isForkedChild: Bool {
    // ORDERING: relaxed; see above.
    lostThreads.load(ordering: .relaxed)
  }

  /// Whether a fork may have left threads in the parent. One of a process with a single thread, such as a daemon's, has not.
  static var hasLeftThreads: Bool { concourse_left_threads() }

  /// Whether a fork has left the thread with this id in the parent. The child's main thread may have had another id there.
  static func lacks(thread id: UInt32) -> Bool {
    hasLeftThreads && !concourse_is_former_id(id) && !SystemThread.exists(id)
  }

  /// Whether this is the id that the calling thread had in the parent.
  static func hadInParent(_ id: UInt32) -> Bool {
    isForked && CurrentThread.isMain && concourse_is_former_id(id)
  }

  /// The number of forks that have led to this process since the runtime was loaded.
  static var forks: UInt32 { concourse_forks() }

  /// Whether a thread that had this id when there had been so many forks is left in a parent.
  static func hasLeft(_ id: UInt32, after count: UInt32) -> Bool {
    forks != count && !concourse_is_former_id(id)
  }

  /// Whether threads were left in the parent, and the calling thread is the only one that can run items: a process that
  /// is refused the threads that it needs runs them on threads that wait.
  static var isAloneInChild: Bool {
    // ORDERING: relaxed; this thread has submitted the items that it waits for, or has learned of them.
    hasLeftThreads && (isForkedChild || !threadsWereMade.load(ordering: .relaxed)) && threadCount == 1
  }

  /// The number of threads of the process; 0 if the system does not say.
  static var threadCount: Int { Int(concourse_thread_count()) }

  /// Records that the calling thread is the only one of a forked child.
  static func becomeForkedChild() {
    (CurrentThread.state.pointee.worker, CurrentThread.state.pointee.delivering) = (nil, nil)
    // ORDERING: relaxed, both; the child has exactly one thread.
    if threadsWereMade.load(ordering: .relaxed) { lostThreads.store(true, ordering: .relaxed) }
    lacksMonitor.value = false
  }

  /// In a child that was made without the C library's `fork`: does what its fork handler does.
  static func noteFork() {
    if id != UInt32(getpid()) { concourse_note_fork() }
  }

  // MARK: Threads

  static let threadsWereMade = Atomic<Bool>(false)
  static let threadsAreForbidden = Atomic<Bool>(false)
  /// Whether the system has refused the monitor's thread, which asks for other threads again.
  static let lacksMonitor = SeldomChanged(false)

  /// Records that a thread is about to be made.
  static func noteThread() {
    // ORDERING: relaxed, both; a program forbids threads before it submits work that needs one.
    threadsWereMade.store(true, ordering: .relaxed)
    if threadsAreForbidden.load(ordering: .relaxed) {
      Trap.clientBug(
        409, "a worker thread is needed, but the program has forbidden the runtime to make threads")
    }
  }
}

/// The machine under the engine.
package enum Processor {
  /// Tells the processor that this is a spin loop.
  @inline(__always)
  static func pause() { concourse_pause() }

  /// Gives the calling thread the shard of the processor that it runs on, unless it is a worker.
  @inline(__always)
  static func adoptShard() { concourse_adopt_shard() }

  /// Sets the place in the table of roots for the threads on a shard's processors.
  static func setRoots(_ place: Int, ofShard shard: Int) {
    concourse_set_shard_roots(UInt32(shard), UInt32(place))
  }

  /// Processors that this process may run on; at least 1.
  static var affinityCount: Int { Int(concourse_affinity_count()) }

  /// The numbers of these processors in ascending order, the first 8,192 of them; not empty. If the system does not say,
  /// they are taken to begin at 0.
  static var allowed: [Int] {
    let numbers = [Int32](unsafeUninitializedCapacity: 8192) { buffer, count in
      // SAFETY: the call writes the first `count` numbers, at most as many as there is room for.
      count = Int(concourse_allowed_processors(buffer.baseAddress!, Int32(buffer.count)))
    }
    return numbers.isEmpty ? Array(0..<affinityCount) : numbers.map(Int.init)
  }
}

extension Processor {
  /// Lets another thread have this processor. Does nothing where a seccomp filter may kill the process for it.
  /// - Returns: whether it did.
  @discardableResult
  static func yield() -> Bool { concourse_yield() }
}

extension Process {
  /// A setting from the environment, or nil. An empty one counts as unset.
  package static func environment(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
  }
}

extension Process {
  /// As `environment`, but nil in a program that has the privileges of another user.
  static func trustedEnvironment(_ name: String) -> String? {
    concourse_recorder_setting(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
  }
}

/// Constants that decide when, not whether.
package enum Tuning {
  /// A number. The model uses a smaller one, so that it reaches rare paths.
  @inline(__always)
  package static func value(_ value: UInt32, inModel: UInt32) -> UInt32 { value }
}

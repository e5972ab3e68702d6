internal import CConcourse

/// Names the places where tasks of Swift Concurrency block a thread of the pool, as `CONCOURSE_STRICT` says: tasks on the
/// global executor. The queue of another executor is a program's own, and its items may block.
///
/// Here another thread takes the place of one that blocks. On Apple's platforms the cooperative pool has as many threads
/// as there are processors and replaces none of them, so that such a program hangs there.
///
/// A wait for what only other work can end (a semaphore, a group, a work item) is named when the thread is about to
/// sleep. `sync` and `DispatchOnce` are the locks of a program, and a program may wait for them for a moment, so these are
/// named after `patience`, and so is what the engine does not see: sleeps, `read`, mutexes of the system (SleepingTasks.swift).
package enum TaskWaits {
  enum Reaction {
    case off, report, trap
  }

  static let reaction: Reaction = {
    switch Process.trustedEnvironment("CONCOURSE_STRICT") {
    case nil: return .off
    case "report": return .report
    case "trap": return .trap
    case let other?:
      Trap.warn("CONCOURSE_STRICT=\(other) is neither report nor trap; ignored")
      return .off
    }
  }()

  /// Whether blocking tasks are named. Only threads that are about to sleep ask.
  @inline(__always)
  static var areNamed: Bool { reaction != .off }

  /// How long a thread waits for a lock before its wait is named, in nanoseconds.
  static let patience: UInt64 = 10_000_000

  /// Reads the setting, so that a bad value is named when the program begins.
  static func prepare() { _ = reaction }

  /// Makes everything that is made on first use.
  static func settle() {
    if areNamed { _ = places }
  }

  // MARK: Waits

  /// Notes that the calling thread is about to sleep.
  /// - Parameter wait: what it has called.
  @inline(__always)
  static func note(_ wait: @autoclosure () -> String) {
    if areNamed { found(wait()) }
  }

  /// As `BlockedSection.run`, and notes a wait that may sleep.
  @inline(__always)
  static func block(
    _ call: @autoclosure () -> String, until deadline: Deadline, _ wait: Recording.Wait,
    _ object: UnsafeRawPointer, _ sleep: () -> Void
  ) {
    if case .immediate = deadline {} else { note(call()) }
    BlockedSection.run(wait, object, sleep)
  }

  /// Where tasks are named, sleeps for at most `patience`, and notes a wait that takes longer.
  /// - Parameters:
  ///   - wait: what the calling thread has called.
  ///   - sleep: returns whether the wait is over.
  /// - Returns: whether the wait is over.
  @inline(__always)
  static func sleepBriefly(_ wait: @autoclosure () -> String, _ sleep: (Deadline) -> Bool) -> Bool {
    guard areNamed && blockingTask() != nil else { return false }
    // A thread that is naming a place keeps the queues that it has. Others' waits for these are not to blame.
    repeat {
      if BlockedSection.run({ sleep(.uptime(Clock.uptime() &+ patience)) }) { return true }
    } while isNaming
    found(wait())
    return false
  }

  /// The task that the calling thread runs for the global executor, if it is a thread of the pool.
  private static func blockingTask() -> CurrentTask? {
    guard WorkerThread.current != nil else { return nil }
    var next = Frame.current
    while let frame = next {
      if frame.pointee.queue.takeUnretainedValue().label == TaskThreads.label { return CurrentTask() }
      next = frame.pointee.parent
    }
    return nil
  }

  // MARK: Places

  private static let places = BlockingPlaces()
  private static let named = Atomic<Int>(0)
  /// How many threads are naming a place.
  private static let naming = Atomic<Int>(0)

  // ORDERING: relaxed; a count.
  static var isNaming: Bool { naming.load(ordering: .relaxed) > 0 }

  /// The number of places that have been named; for tests.
  // ORDERING: relaxed; a count.
  package static var namedPlaces: Int { named.load(ordering: .relaxed) }

  @inline(never)
  private static func found(_ wait: String) {
    guard let task = blockingTask() else { return }
    let stack = CallPlace.returnAddresses(from: concourse_caller_frame())
    // ORDERING: relaxed; a count.
    naming.wrappingAdd(1, ordering: .relaxed)
    // The search for the place takes milliseconds, and so may standard error.
    BlockedSection.run { name(task, wait, stack) }
    // ORDERING: relaxed; a count.
    naming.wrappingSubtract(1, ordering: .relaxed)
  }

  /// - Parameter engine: an address in the engine's code, if the first one of the stack is not there.
  static func name(_ task: CurrentTask, _ wait: String, _ stack: [UInt], engine: UInt? = nil) {
    switch places.admit(stack, place: { CallPlace.description(of: stack, engine: engine) }) {
    case .known: return
    case .tooMany(isFirst: true):
      Trap.warn(
        "CONCOURSE_STRICT: tasks have blocked their threads in \(BlockingPlaces.most) places, or with "
          + "\(BlockingPlaces.mostStacks) stacks; further ones are not named")
    case .tooMany(isFirst: false): return
    case .new(let place):
      let name = "\(task.number)" + (task.name.map { " \"\($0)\"" } ?? "")
      let what =
        wait + (place.map { ", in \($0)" } ?? "") + ", on queue \"\(TaskThreads.label)\""
        + "; on Apple's platforms no other thread would take its place, and the tasks would starve"
      if reaction == .trap { Trap.clientBug(116, "task \(name) blocks its thread in \(what)") }
      Trap.warn("task \(name) blocks its thread in \(what)")
      // ORDERING: relaxed; a count.
      named.wrappingAdd(1, ordering: .relaxed)
    }
  }
}

/// The places that have been named, in memory of fixed size. Any thread may use it at any time.
///
/// To find the place of a stack takes milliseconds, so stacks are told apart first. Two stacks may have the same place.
struct BlockingPlaces: Sendable {
  static let most = 64
  static let mostStacks = 256

  private let stacks = FixedSet(capacity: mostStacks)
  private let places = FixedSet(capacity: most)
  private let limitNotice = FixedSet(capacity: 1)

  /// For tests: the process keeps its own.
  func deallocate() {
    for set in [stacks, places, limitNotice] { set.deallocate() }
  }

  enum Admission: Equatable {
    /// A place that has not been named; nil if it cannot be told.
    case new(String?)
    case known
    /// It may be new, but there is no room. `isFirst` for one caller only.
    case tooMany(isFirst: Bool)
  }

  /// - Parameters:
  ///   - stack: return addresses, the innermost first.
  ///   - place: describes the place of the stack.
  func admit(_ stack: [UInt], place: () -> String?) -> Admission {
    switch stacks.insert(Self.hash(stack.lazy.map(UInt64.init))) {
    case .present: return .known
    case .full: return .tooMany(isFirst: limitNotice.insert(1) == .added)
    case .added: break
    }
    // Each stack without a known place counts as a new place.
    guard let text = place() else { return .new(nil) }
    switch places.insert(Self.hash(text.utf8.lazy.map(UInt64.init))) {
    case .present: return .known
    case .full: return .tooMany(isFirst: limitNotice.insert(1) == .added)
    case .added: return .new(text)
    }
  }

  /// FNV-1a, on words.
  private static func hash(_ words: some Sequence<UInt64>) -> UInt64 {
    words.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ $1) &* 0x100_0000_01B3 }
  }
}

/// A set of a few hashes, or of addresses: the lowest bit does not count.
struct FixedSet {
  private let slots: UnsafeMutableBufferPointer<Atomic<UInt64>>

  enum Insertion {
    case added, present, full
  }

  init(capacity: Int) {
    slots = .allocate(capacity: capacity)
    // SAFETY: each slot is initialized once, before another thread has the set.
    for index in 0..<capacity { (slots.baseAddress! + index).initialize(to: Atomic(0)) }
  }

  // SAFETY: atomic integers need no deinitialization.
  func deallocate() { slots.deallocate() }

  func contains(_ hash: UInt64) -> Bool {
    // ORDERING: relaxed; as in `insert`.
    slots.indices.contains { slots[$0].load(ordering: .relaxed) == hash | 1 }
  }

  func insert(_ hash: UInt64) -> Insertion {
    // 0 is an empty slot.
    let value = hash | 1
    for index in slots.indices {
      // ORDERING: relaxed; the hashes stand for themselves.
      let (isAdded, former) = slots[index].compareExchange(expected: 0, desired: value, ordering: .relaxed)
      if isAdded { return .added }
      if former == value { return .present }
    }
    return .full
  }
}

// SAFETY: the slots are atomic, and the pointer is constant.
extension FixedSet: @unchecked Sendable {}

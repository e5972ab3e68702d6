extension DispatchQueue {
  /// Runs a function once for each number from 0 to `iterations - 1`, and returns after the last: in parallel if the
  /// items of the queue may overlap, in order otherwise. nil means the global queue of the caller's level.
  ///
  /// Matching C function: `dispatch_apply_f`.
  package static func apply(
    _ iterations: Int, on queue: DispatchQueue?, _ context: UnsafeMutableRawPointer?,
    _ function: @convention(c) (UnsafeMutableRawPointer?, Int) -> Void
  ) {
    guard iterations > 0 else { return }
    func run(_ range: Range<Int>) { for index in range { function(context, index) } }
    guard let queue else { return ParallelLoop.run(iterations, run) }
    queue.sync {
      if queue.letsItemsOverlap {
        ParallelLoop.run(iterations, on: queue, run)
      } else {
        run(0..<iterations)
      }
    }
  }

  /// Whether this queue and all its targets are concurrent.
  private final var letsItemsOverlap: Bool {
    var link: DispatchQueue? = self
    while let queue = link {
      if queue.kind.isSerial { return false }
      link = queue.targetQueue
    }
    return true
  }
}

extension DispatchQueue {
  /// Runs `work` once for each number from 0 to `iterations - 1`, in parallel, and returns after the last.
  ///
  /// The calling thread takes part. At most as many threads as there are processors run at a time, including nested
  /// loops. The runtime chooses how many iterations a thread claims at once by how long they take, so manual striding
  /// is not needed. The call returns at once for zero or fewer iterations. Matching C function: `dispatch_apply` with
  /// `DISPATCH_APPLY_AUTO`.
  /// - Parameters:
  ///   - iterations: The number of iterations.
  ///   - work: Called with each index, on several threads at the same time.
  @inlinable
  public class func concurrentPerform(iterations: Int, execute work: (Int) -> Void) {
    // This loop is compiled into the caller, where the compiler can inline `work`.
    ParallelLoop.run(iterations) { range in
      for index in range { work(index) }
    }
  }
}

/// A parallel loop: a counter from which the participants claim ranges of iterations.
@usableFromInline
final class ParallelLoop {
  /// The target duration of one claim, in nanoseconds: long compared with the cost of claiming, too short for a user
  /// to notice.
  private static let claimTarget: UInt64 = 20_000

  private let iterations: Int
  private let claimed = Atomic<Int>(0)
  private let finished = Atomic<Int>(0)
  private let done = ThreadEvent()
  /// Points to the caller's closure, on the caller's stack.
  private let body: UnsafePointer<(Range<Int>) -> Void>
  private let threads: Int
  /// The queue whose items the iterations are, unless it is global. The caller holds a place on it.
  private let queue: Unmanaged<DispatchQueue>?

  private init(
    _ iterations: Int, participants: Int, queue: Unmanaged<DispatchQueue>?,
    _ body: UnsafePointer<(Range<Int>) -> Void>
  ) {
    self.iterations = iterations
    threads = participants
    self.queue = queue
    self.body = body
  }

  @usableFromInline
  static func run(_ iterations: Int, _ body: (Range<Int>) -> Void) {
    guard iterations > 0 else { return }
    let level = Frame.current?.pointee.level ?? .unspecified
    let queue = DispatchQueue.uncountedGlobal(at: level)
    let frame = Frame(queue: queue, parent: Frame.current, exclusive: false, level: level)
    Frame.run(frame) { Runtime.root(at: level)._withUnsafeGuaranteedRef { run(iterations, body, $0) } }
  }

  /// As `run(_:_:)`, with the iterations as items of a queue whose items may overlap. The caller runs one of its
  /// items.
  static func run(_ iterations: Int, on queue: DispatchQueue, _ body: (Range<Int>) -> Void) {
    guard iterations > 0 else { return }
    let level = max(Frame.current?.pointee.level ?? .unspecified, queue.level)
    Runtime.root(at: level)._withUnsafeGuaranteedRef {
      run(iterations, body, $0, queue: queue.kind == .global ? nil : .passUnretained(queue))
    }
  }

  private static func run(
    _ iterations: Int, _ body: (Range<Int>) -> Void, _ root: RootQueue, queue: Unmanaged<DispatchQueue>? = nil
  ) {
    // The caller joins before it pushes helpers: helpers of nested loops must not take its place.
    let participating = participants.join()
    if iterations > 1 { PoolSize.settleWidthOfLoop() }
    // More helpers than free processors would only wait in the root queue.
    let helpers = min(iterations - 1, PoolSize.width - participating)
    // A forked child has no worker threads.
    guard helpers > 0 && !Process.isForkedChild else {
      body(0..<iterations)
      return participants.leave()
    }
    withoutActuallyEscaping(body) { body in
      withUnsafePointer(to: body) { body in
        let loop = ParallelLoop(iterations, participants: helpers + 1, queue: queue, body)
        for _ in 0..<helpers {
          root.push(NodeMagazine.make(.engine { loop.help() }, level: root.level))
        }
        loop.takePart()
        participants.leave()
        // A body has forked, and threads of the parent run the others.
        if !loop.done.isSet { Runtime.requireThreads("a parallel loop from before the fork") }
        loop.done.wait(for: .parallelLoop, Unmanaged.passUnretained(loop).toOpaque())
      }
    }
  }

  private func takePart(asHelper: Bool = false) {
    var size = 1
    while true {
      // ORDERING: acquiring on the claim. The queue publishes the caller's earlier writes to a helper; claims need no
      // order among themselves. Relaxed on the first load: it only saves a claim past the end.
      let start =
        claimed.load(ordering: .relaxed) < iterations
        ? claimed.wrappingAdd(size, ordering: .acquiring).oldValue : iterations
      guard start < iterations else { return }
      let end = min(start &+ size, iterations)
      let began = Clock.uptime()
      runBody(start..<end)
      if asHelper { WorkerThread.requirePool() }
      let spent = Clock.uptime() &- began
      // ORDERING: acquiring and releasing; pairs with the other participants' additions: the last one sees all their
      // work and publishes it through `done`.
      let counted = finished.wrappingAdd(end - start, ordering: .acquiringAndReleasing).newValue
      if counted == iterations {
        done.signal()
        return
      }
      // Double the claim while it is too short to be worth claiming, but keep it small enough that the end of the
      // loop does not wait for one thread.
      if spent < Self.claimTarget / 2 {
        size = max(1, min(size &* 2, (iterations - end) / (2 * threads)))
      } else if spent > Self.claimTarget * 2 {
        size = max(1, size / 2)
      }
    }
  }

  /// Never inlined, so that no reference to the caller's closure outlives the addition that lets the caller return.
  @inline(never)
  private func runBody(_ range: Range<Int>) { body.pointee(range) }

  /// Runs a helper. It takes part unless as many threads as there are processors already run loops.
  private func help() {
    let count = Self.participants.join()
    if count <= PoolSize.width {
      if let queue {
        let level = Frame.current?.pointee.level ?? .unspecified
        Frame.run(Frame(queue: queue, parent: Frame.current, exclusive: false, level: level)) {
          takePart(asHelper: true)
        }
      } else {
        takePart(asHelper: true)
      }
    }
    Self.participants.leave()
  }

  static let participants = Participants()
}

/// Counts the threads in parallel loops, each thread once even if its loops are nested.
struct Participants: ~Copyable {
  let count = Atomic<Int>(0)

  /// - Returns: the number of participating threads, including the caller.
  func join() -> Int {
    let thread = CurrentThread.state
    thread.pointee.loop_depth += 1
    // ORDERING: relaxed; the count is a heuristic and publishes nothing.
    return thread.pointee.loop_depth == 1
      ? count.wrappingAdd(1, ordering: .relaxed).newValue : count.load(ordering: .relaxed)
  }

  func leave() {
    let thread = CurrentThread.state
    thread.pointee.loop_depth -= 1
    // ORDERING: relaxed; the count is a heuristic and publishes nothing.
    if thread.pointee.loop_depth == 0 { count.wrappingSubtract(1, ordering: .relaxed) }
  }
}

// SAFETY: the counters are atomic. `body` is called only for claimed ranges, and the caller, which owns it, returns
// only after every claimed iteration has been counted.
extension ParallelLoop: @unchecked Sendable {}

extension DispatchQueue {
  /// Runs a function once for each number from 0 to `iterations - 1` and returns after the last: in parallel if the
  /// queue lets its items overlap, in order if not. nil stands for the global queue of the caller's level.
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

  /// Whether neither this queue nor one above it is serial.
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
  /// The calling thread takes part; at most as many threads as there are processors run at a time, nested
  /// loops included. The runtime chooses how many iterations to hand out at once, by how long they
  /// take, so striding by hand is not needed. Zero or fewer iterations return at once. Matching C function:
  /// `dispatch_apply` with `DISPATCH_APPLY_AUTO`.
  @inlinable
  public class func concurrentPerform(iterations: Int, execute work: (Int) -> Void) {
    // The loop over a range is compiled into the caller, where `work` may be inlined into it.
    ParallelLoop.run(iterations) { range in
      for index in range { work(index) }
    }
  }
}

/// One parallel loop: a counter that participants claim ranges of iterations from.
@usableFromInline
final class ParallelLoop {
  /// Nanoseconds that one claim should take: long against the cost of claiming, short against the time a
  /// user notices.
  private static let claimTarget: UInt64 = 20_000

  private let iterations: Int
  private let claimed = Atomic<Int>(0)
  private let finished = Atomic<Int>(0)
  private let done = ThreadEvent()
  /// Points to the caller's closure, on the caller's stack.
  private let body: UnsafePointer<(Range<Int>) -> Void>
  private let threads: Int
  /// The queue whose items the iterations are, when that is no global queue. The caller holds a place on it.
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
    // `shared` first: a loop may be the first thing a process asks of the runtime.
    let root = Runtime.shared.roots[Int(level.rawValue)].takeUnretainedValue()
    root.queue._withUnsafeGuaranteedRef { queue in
      let frame = Frame(
        queue: .passUnretained(queue), parent: Frame.current, exclusive: false, level: level)
      Frame.run(frame) { run(iterations, body, root) }
    }
  }

  /// The same as items of a queue that lets them overlap; the caller runs one of its items.
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
    // The caller counts before it asks for help: helpers of helpers must not take its place.
    let participating = participants.join()
    PoolSize.settleWidth()
    // More helpers than free processors would only lie about in the root queue.
    let helpers = min(iterations - 1, PoolSize.width - participating)
    // A forked child has no threads to help.
    guard helpers > 0 && !Process.isForkedChild else {
      body(0..<iterations)
      return participants.leave()
    }
    withoutActuallyEscaping(body) { body in
      withUnsafePointer(to: body) { body in
        let loop = ParallelLoop(iterations, participants: helpers + 1, queue: queue, body)
        for _ in 0..<helpers {
          root.push(NodeMagazine.make(.closure { loop.help() }, level: root.level))
        }
        loop.takePart()
        participants.leave()
        loop.done.wait()
      }
    }
  }

  /// Claims and runs ranges until none is left.
  private func takePart() {
    var size = 1
    while true {
      // ORDERING: acquiring; a helper sees what the caller wrote before the loop (the queue it came
      // through orders that too); claims need no order among themselves.
      let start =
        claimed.load(ordering: .relaxed) < iterations
        ? claimed.wrappingAdd(size, ordering: .acquiring).oldValue : iterations
      guard start < iterations else { return }
      let end = min(start &+ size, iterations)
      let began = Clock.uptime()
      runBody(start..<end)
      let spent = Clock.uptime() &- began
      // ORDERING: acquiring and releasing; the last one to count sees all others' work and passes it on.
      let counted = finished.wrappingAdd(end - start, ordering: .acquiringAndReleasing).newValue
      if counted == iterations {
        done.signal()
        return
      }
      // Larger claims while they are too short to be worth claiming, but never so large that the end
      // waits for one thread.
      if spent < Self.claimTarget / 2 {
        size = max(1, min(size &* 2, (iterations - end) / (2 * threads)))
      } else if spent > Self.claimTarget * 2 {
        size = max(1, size / 2)
      }
    }
  }

  /// Never inlined: no reference to the caller's closure may outlive the count that lets it return.
  @inline(never)
  private func runBody(_ range: Range<Int>) { body.pointee(range) }

  /// A helper that comes when as many threads as there are processors run loops has nothing to add.
  private func help() {
    let count = Self.participants.join()
    if count <= PoolSize.width {
      if let queue {
        let level = Frame.current?.pointee.level ?? .unspecified
        Frame.run(Frame(queue: queue, parent: Frame.current, exclusive: false, level: level)) { takePart() }
      } else {
        takePart()
      }
    }
    Self.participants.leave()
  }

  private static let participants = Participants()
}

/// Threads that take part in parallel loops, each counted once however deep its loops are nested.
private struct Participants: ~Copyable {
  private let count = Atomic<Int>(0)

  /// - Returns: how many threads take part, the caller included.
  func join() -> Int {
    let thread = CurrentThread.state
    thread.pointee.loop_depth += 1
    // ORDERING: relaxed; a number to steer by.
    return thread.pointee.loop_depth == 1
      ? count.wrappingAdd(1, ordering: .relaxed).newValue : count.load(ordering: .relaxed)
  }

  func leave() {
    let thread = CurrentThread.state
    thread.pointee.loop_depth -= 1
    // ORDERING: relaxed; a number to steer by.
    if thread.pointee.loop_depth == 0 { count.wrappingSubtract(1, ordering: .relaxed) }
  }
}

// SAFETY: the counters are atomic. `body` is called only for claimed ranges, and the caller, to whom it
// belongs, does not return before every claimed iteration has been counted.
extension ParallelLoop: @unchecked Sendable {}

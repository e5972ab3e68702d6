@testable import ConcourseModel

/// One hot path: what its threads do, on as many processors as there are threads.
struct LedgerPath: Sendable {
  let name: String
  /// The row of `bench-c` that measures the path on two cores, and the number of the model's threads for it.
  var row: (name: String, threads: Int)?
  /// Operations of one thread; fewer with many threads.
  var perThread = 2_000
  /// Whether the first quarter of the operations only warms up.
  var warmsUp = true
  /// Makes what the path needs, starts `threads` threads, and says how often each calls `Ledger.operation` if it is
  /// asked to do so `count` times.
  let start: @Sendable (_ threads: Int, _ count: Int) -> Void

  /// Runs the path.
  func run(threads: Int, seed: UInt64 = 1) -> (result: ModelResult, ledger: Ledger) {
    let (count, total) = operations(threads)
    return Model.ledger("\(name), \(threads)", seed: seed, countingFrom: warmsUp ? total / 4 : 0, to: total) {
      scenario(threads, count)
    }
  }

  /// Runs the path in the order of its threads' clocks.
  /// - Returns: The nanoseconds of an operation.
  func time(threads: Int, _ costs: Costs) throws -> Double {
    let (count, total) = operations(threads)
    let (result, ledger, nanoseconds) = Model.timed(
      "\(name), \(threads), timed", costs, countingFrom: warmsUp ? total / 4 : 0, to: total
    ) { scenario(threads, count) }
    guard result.failure == nil else { throw LedgerLimit.Failure("\(result)") }
    return nanoseconds / Double(ledger.counted)
  }

  private func operations(_ threads: Int) -> (each: Int, all: Int) {
    let each = max(perThread / threads, 64)
    return (each, each * threads)
  }

  private func scenario(_ threads: Int, _ count: Int) {
    // As on a machine with eight processors at each cache.
    if threads > 8 { Model.setTopology("\(threads / 8)x8") } else { Model.setProcessors(threads) }
    start(threads, count)
    Model.run()
  }

  // No path has closures with captures of its own: their lines would be the client's.

  /// Each thread performs the operation `count` times.
  private static func threads(
    _ threads: Int, _ count: Int, _ operation: @escaping @Sendable (_ thread: Int) -> Void
  ) {
    for thread in 0..<threads {
      Model.thread("thread") {
        enterShard(of: thread)
        for _ in 0..<count { operation(thread) }
      }
    }
  }

  /// The calling thread is one of the eight of its shard.
  fileprivate static func enterShard(of thread: Int) {
    CurrentThread.state.pointee.roots = UInt32(Shard(number: thread / Topology.mostInShard).firstRoot)
  }

  // SAFETY: coroutines share one system thread.
  private nonisolated(unsafe) static var submitted = 0

  /// Each thread submits items, which count. At most 4 for each thread are pending: otherwise most would be
  /// submitted before the first has run.
  private static func producers(
    _ threads: Int, _ count: Int, _ submit: @escaping @Sendable (_ thread: Int) -> Void
  ) {
    submitted = 0
    Self.threads(threads, count) { thread in
      while submitted - Ledger.current.operations >= 4 * threads { Processor.pause() }
      submitted += 1
      submit(thread)
    }
  }

  private static let item: ContextFunction = { _ in Ledger.operation() }

  // SAFETY: as above.
  private nonisolated(unsafe) static var allFired = DispatchSemaphore(value: 0)
  // SAFETY: as above.
  private nonisolated(unsafe) static var total = 0

  /// Time passes only while a thread of the scenario waits.
  private static func timerFired() {
    Ledger.operation()
    if Ledger.current.operations == total { allFired.signal() }
  }

  static let all: [LedgerPath] = [
    LedgerPath(name: "async, one serial queue", row: ("async-f", 1)) { threads, count in
      let queue = DispatchQueue(label: "serial")
      producers(threads, count) { _ in queue.asyncFunction(nil, item, barrier: false) }
    },
    LedgerPath(name: "async, a serial queue each") { threads, count in
      let queues = (0..<threads).map { DispatchQueue(label: "serial \($0)") }
      producers(threads, count) { queues[$0].asyncFunction(nil, item, barrier: false) }
    },
    LedgerPath(name: "async, global queue", row: ("global-async-f", 1)) { threads, count in
      let queue = DispatchQueue.global()
      producers(threads, count) { _ in queue.asyncFunction(nil, item, barrier: false) }
    },
    LedgerPath(name: "async, one concurrent queue") { threads, count in
      let queue = DispatchQueue(label: "concurrent", attributes: .concurrent)
      producers(threads, count) { _ in queue.asyncFunction(nil, item, barrier: false) }
    },
    LedgerPath(name: "sync, a queue each", row: ("sync-f", 1)) { threads, count in
      let queues = (0..<threads).map { DispatchQueue(label: "serial \($0)") }
      Self.threads(threads, count) { queues[$0].sync { Ledger.operation() } }
    },
    LedgerPath(name: "sync, one queue", row: ("sync-f-two-threads", 2)) { threads, count in
      let queue = DispatchQueue(label: "serial")
      Self.threads(threads, count) { _ in queue.sync { Ledger.operation() } }
    },
    // Each thread learns where its place is, once.
    LedgerPath(name: "sync, one concurrent queue", row: ("concurrent-sync-f", 1), perThread: 32_000) {
      threads, count in
      let queue = DispatchQueue(label: "concurrent", attributes: .concurrent)
      Self.threads(threads, count) { _ in queue.sync { Ledger.operation() } }
    },
    LedgerPath(name: "hop between two queues", row: ("hop-f", 1)) { threads, count in
      Hop.start(pairs: threads, count: count)
    },
    LedgerPath(name: "group async, global queue", row: ("group-async-f", 1)) { threads, count in
      let queue = DispatchQueue.global()
      let group = DispatchGroup()
      producers(threads, count) { _ in queue.asyncFunction(group: group, nil, item) }
    },
    LedgerPath(name: "group, enter and leave", row: ("group-enter-leave", 1)) { threads, count in
      let group = DispatchGroup()
      Self.threads(threads, count) { _ in
        group.enter()
        group.leave()
        Ledger.operation()
      }
    },
    LedgerPath(name: "semaphore, signal and wait", row: ("semaphore-signal-wait", 1)) { threads, count in
      let semaphore = DispatchSemaphore(value: threads)
      Self.threads(threads, count) { _ in
        semaphore.wait()
        semaphore.signal()
        Ledger.operation()
      }
    },
    LedgerPath(name: "semaphores, ping-pong in pairs", row: ("semaphore-ping-pong", 2)) { threads, count in
      let semaphores = (0..<threads + threads % 2).map { _ in DispatchSemaphore(value: 0) }
      Self.threads(threads, count) { thread in
        guard threads > 1 else { return Ledger.operation() }
        // The operation is a turn of the pair: one wakes the other, and is woken.
        if thread % 2 == 0 {
          semaphores[thread].signal()
          semaphores[thread + 1].wait()
        } else {
          semaphores[thread - 1].wait()
          semaphores[thread].signal()
        }
        Ledger.operation()
      }
    },
    LedgerPath(name: "parallel loop, an index", row: ("apply-f", 2), perThread: 40_000) { threads, count in
      Model.thread("caller") {
        DispatchQueue.concurrentPerform(iterations: count * threads) { _ in Ledger.operation() }
      }
    },
    LedgerPath(name: "actor job, an actor each") { threads, count in
      Job.start(actors: threads, count: count)
    },
    LedgerPath(name: "asyncAfter, 1 ms", row: ("after-f", 1), warmsUp: false) { threads, count in
      EventLoop.use()
      allFired = DispatchSemaphore(value: 0)
      total = threads * count
      let queue = DispatchQueue(label: "timers")
      let deadline = DispatchTime(uptimeNanoseconds: Clock.uptimeAtStart + 1_000_000)
      Self.threads(threads, count) { _ in queue.asyncAfter(deadline: deadline) { timerFired() } }
      Model.thread("waiter") { allFired.wait() }
    },
    LedgerPath(name: "timer, set and cancelled") { threads, count in
      EventLoop.use()
      Self.threads(threads, count) { _ in
        let timer = LoopTimer(owner: nil)
        timer.set(.uptime(Clock.uptimeAtStart + 1_000_000_000))
        timer.cancel()
        Ledger.operation()
      }
    },
    LedgerPath(name: "event of a pipe, a source each", row: ("pipe-source", 1), perThread: 400) {
      threads, count in
      Pipe.start(pipes: threads, count: count)
    },
  ]
}

extension LedgerPath {
  /// The global queue, with a word that all producers change: what the limits must not let pass.
  static let withPlantedCounter = LedgerPath(name: "planted") { threads, count in
    let queue = DispatchQueue.global()
    // SAFETY: all that is done with it is an atomic operation.
    nonisolated(unsafe) let counter = UnsafeMutableRawPointer.allocate(byteCount: 64, alignment: 64)
      .bindMemory(to: Atomic<Int>.self, capacity: 1)
    counter.initialize(to: Atomic(0))
    producers(threads, count) { _ in
      // ORDERING: relaxed; no thread reads it.
      counter.pointee.wrappingAdd(1, ordering: .relaxed)
      queue.asyncFunction(nil, item, barrier: false)
    }
  }
}

/// An item that passes between two queues.
private final class Hop: @unchecked Sendable {
  private let queues = [DispatchQueue(label: "left"), DispatchQueue(label: "right")]
  // SAFETY: only the running item uses it.
  private var rest: Int

  private init(_ count: Int) { rest = count }

  static func start(pairs: Int, count: Int) {
    for pair in 0..<pairs {
      let context = Unmanaged.passRetained(Hop(count)).toOpaque()
      Model.thread("starter") {
        LedgerPath.enterShard(of: pair)
        Hop.step(context)
      }
    }
  }

  private static func step(_ context: UnsafeMutableRawPointer) {
    Unmanaged<Hop>.fromOpaque(context)._withUnsafeGuaranteedRef { hop in
      hop.queues[hop.rest & 1].asyncFunction(context, Hop.item, barrier: false)
    }
  }

  private static let item: ContextFunction = { context in
    Ledger.operation()
    let isOver = Unmanaged<Hop>.fromOpaque(context!)._withUnsafeGuaranteedRef { hop in
      hop.rest -= 1
      return hop.rest == 0
    }
    if !isOver { step(context!) }
  }
}

/// Jobs for actors with a queue each; a thread for each actor awaits its job before it submits the next.
private enum Job {
  static func start(actors: Int, count: Int) {
    for number in 0..<actors {
      let queue = DispatchQueue(label: "actor \(number)")
      let done = DispatchSemaphore(value: 0)
      let context = Unmanaged.passRetained(done).toOpaque()
      Model.thread("caller") {
        LedgerPath.enterShard(of: number)
        for _ in 0..<count {
          queue.asyncFunction(qos: .unspecified, flags: [], context, Job.item)
          done.wait()
        }
      }
    }
  }

  private static let item: ContextFunction = { context in
    Ledger.operation()
    _ = Unmanaged<DispatchSemaphore>.fromOpaque(context!)._withUnsafeGuaranteedRef { $0.signal() }
  }
}

/// Pipes with a read source each; a thread for each writes a byte and waits until the handler has read it.
private enum Pipe {
  static func start(pipes: Int, count: Int) {
    EventLoop.use()
    for number in 0..<pipes {
      let pipe = ModelKernel.make(.pipe)
      let done = DispatchSemaphore(value: 0)
      let source = DispatchSource.makeReadSource(
        fileDescriptor: pipe, queue: DispatchQueue(label: "pipe \(number)"))
      source.setEventHandler {
        _ = ModelKernel.readAll(pipe)
        Ledger.operation()
        done.signal()
      }
      source.activate()
      _ = Unmanaged.passRetained(source as AnyObject)
      Model.thread("writer") {
        LedgerPath.enterShard(of: number)
        for _ in 0..<count {
          ModelKernel.write(pipe)
          done.wait()
        }
      }
    }
  }
}

import CBench

extension Row {
  // MARK: Actors

  /// An actor that is never contended is entered without a call of the library.
  private static let callers = 4

  static let actors = Row(
    "actor-each", "an actor for each processor, which four tasks on actors of their own call"
  ) { units in
    let calls = units * 10
    let done = DispatchSemaphore(value: 0)
    let count = Cell()
    let time = elapsed {
      Task.detached {
        await withTaskGroup(of: Int.self) { group in
          for _ in 0..<processors {
            group.addTask {
              let shared = Counter()
              await withTaskGroup(of: Void.self) { group in
                for _ in 0..<callers {
                  let caller = Caller(shared)
                  group.addTask { await caller.call(calls) }
                }
              }
              return await shared.count
            }
          }
          count.value = await group.reduce(0, +)
        }
        done.signal()
      }
      done.wait()
    }
    verify(count.value, equals: processors * callers * calls, "calls that excluded each other")
    return (count.value, time)
  }

  // MARK: Timers

  /// Timers that one unit sets. Few would measure the deadline, of which a thread would wait for too much.
  private static let timers = 10_000

  static let asyncAfter = Row(
    "async-after",
    "a thread for each processor sets timers 1 ms ahead, 20,000 at once, onto a serial queue of its own"
  ) { units in
    let time = elapsed(onThreads: processors) { thread in
      let queue = DispatchQueue(label: "timers \(thread)")
      let fired = Cell()
      let room = DispatchSemaphore(value: 0)
      room.signal()
      room.signal()
      for _ in 0..<units {
        room.wait()
        for _ in 0..<timers {
          queue.asyncAfter(deadline: .now() + .milliseconds(1)) {
            fired.add(1)
            if fired.value % timers == 0 { room.signal() }
          }
        }
      }
      room.wait()
      room.wait()
      verify(queue.sync { fired.value }, equals: units * timers, "timers that fired")
    }
    verify(time >= 1_000_000, equals: true, "the last timer did not fire early")
    return (processors * units * timers, time)
  }

  // MARK: Echo

  private static let connections = 1_000

  static let echo = Row(
    "echo-1000-connections",
    "TCP echo, a source and a serial queue for each connection, beside a client for each two processors"
  ) { milliseconds in
    bench_raise_descriptor_limit()
    let server = EchoServer()
    let passes = 3
    var (nanoseconds, bytes, trips) = (0, 0, 0)
    let failure = bench_run_echo_loads(
      server.port, Int32(connections), Int32((processors + 1) / 2), max(milliseconds / passes, 1),
      Int32(passes),
      &nanoseconds, &bytes, &trips)
    verify(failure, equals: 0, "the load's status")
    server.stop()
    verify(server.bytes.value, equals: bytes, "bytes that the server echoed")
    verify(server.accepted.value, equals: connections, "connections accepted")
    return Measurement(value: Double(trips) * 1e9 / Double(nanoseconds), operations: trips, check: trips)
  }

  // MARK: Parallel loop

  /// Indices of one unit.
  private static let indices = 10_000

  static let parallelLoop = Row(
    "parallel-loop", "one thread runs a parallel loop whose body does nothing"
  ) { units in
    let time = elapsed { DispatchQueue.concurrentPerform(iterations: units * indices) { bench_opaque($0) } }
    // The empty body leaves no trace, so one more loop, untimed, leaves one.
    let slots = Slots(count: indices)
    DispatchQueue.concurrentPerform(iterations: indices) { slots.mark($0) }
    verify(slots.takeMarkedOnce(), equals: indices, "indices visited exactly once")
    slots.free()
    return (units * indices, time)
  }
}

private actor Counter {
  private(set) var count = 0
  func add() { count += 1 }
}

private actor Caller {
  private let shared: Counter
  private var calls = 0

  init(_ shared: Counter) { self.shared = shared }

  func call(_ count: Int) async {
    for _ in 0..<count {
      await shared.add()
      calls += 1
    }
  }
}

import CBench
import Glibc
import Synchronization

/// Runs `body` on `count` threads of its own that start together, and returns the nanoseconds from
/// the first start to the last end. The threads belong to the benchmark, not to the runtime. Each stays
/// on a core of its own: left alone, the kernel may run them in turn on one, and nothing contends.
func elapsed(onThreads count: Int, _ body: @escaping @Sendable (Int) -> Void) -> Int {
  let race = Race(count: count, body: body)
  var threads: [pthread_t] = []
  for index in 0..<count {
    var thread = pthread_t()
    // SAFETY: runThread takes this reference back, once.
    let runner = Unmanaged.passRetained(Runner(race: race, index: index)).toOpaque()
    let error = pthread_create(&thread, nil, { runThread($0) }, runner)
    verify(error, equals: 0, "pthread_create")
    threads.append(thread)
  }
  for thread in threads { pthread_join(thread, nil) }
  // ORDERING: relaxed: the threads were joined.
  return race.lastEnd.load(ordering: .relaxed) - race.firstStart.load(ordering: .relaxed)
}

private func runThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  guard let argument else { return nil }
  // SAFETY: the pointer carries the one reference that `elapsed(onThreads:)` gave away.
  let runner = Unmanaged<Runner>.fromOpaque(argument).takeRetainedValue()
  runner.race.run(runner.index)
  return nil
}

private final class Runner: Sendable {
  let race: Race
  let index: Int

  init(race: Race, index: Int) {
    self.race = race
    self.index = index
  }
}

private final class Race: Sendable {
  let count: Int
  let body: @Sendable (Int) -> Void
  let arrived = Atomic<Int>(0)
  let firstStart = Atomic<Int>(.max)
  let lastEnd = Atomic<Int>(0)

  init(count: Int, body: @escaping @Sendable (Int) -> Void) {
    self.count = count
    self.body = body
  }

  func run(_ index: Int) {
    verify(bench_pin_to_core(Int32(index)), equals: 0, "a thread is pinned to its core")
    // ORDERING: relaxed: a starting line orders nothing but the clock readings around it; the
    // times themselves are published by pthread_join.
    arrived.wrappingAdd(1, ordering: .relaxed)
    // ORDERING: relaxed, as above. Spinning: a sleeping thread would start late.
    while arrived.load(ordering: .relaxed) < count {}
    let start = now()
    body(index)
    let end = now()
    // ORDERING: relaxed; read after pthread_join only.
    firstStart.min(start, ordering: .relaxed)
    lastEnd.max(end, ordering: .relaxed)
  }
}

import CBench

extension Row {
  /// Entries that one unit makes.
  private static let window = 1_000

  static let entries = [readers, contendedSync]

  private static let readers = Row(
    "readers", "a thread for each processor, pinned, reads with sync on the same concurrent queue"
  ) { units in
    let queue = DispatchQueue(label: "concurrent", attributes: .concurrent)
    let (value, sums) = (Cell(), (0..<processors).map { _ in Cell() })
    queue.sync(flags: .barrier) { value.value = 1 }
    let time = elapsed(onThreads: processors, pinned: true) { thread in
      var sum = 0
      for _ in 0..<(units * window) { sum += queue.sync { value.value } }
      sums[thread].value = sum
    }
    verify(sums.map(\.value).reduce(0, +), equals: processors * units * window, "the sum of what was read")
    return (processors * units * window, time)
  }

  private static let contendedSync = Row(
    "sync-contended", "a thread for each processor, pinned, enters the same serial queue with sync"
  ) { units in
    let queue = DispatchQueue(label: "serial")
    let entries = Cell()
    let time = elapsed(onThreads: processors, pinned: true) { _ in
      for _ in 0..<(units * window) { queue.sync { entries.add(1) } }
    }
    verify(entries.value, equals: processors * units * window, "entries that excluded each other")
    return (entries.value, time)
  }
}

/// Runs `body` on so many threads of the benchmark's own, which start together. Returns the nanoseconds from the first
/// start to the last end.
func elapsed(onThreads count: Int, pinned: Bool = false, _ body: @escaping @Sendable (Int) -> Void) -> Int {
  final class Box: Sendable {
    let body: @Sendable (Int) -> Void
    init(_ body: @escaping @Sendable (Int) -> Void) { self.body = body }
  }
  let box = Box(body)
  // SAFETY: all threads have ended when the call returns, and `box` lives until then.
  return withExtendedLifetime(box) {
    bench_time_threads(
      Int32(count), pinned,
      { context, thread in
        guard let context else { return }
        Unmanaged<Box>.fromOpaque(context).takeUnretainedValue().body(Int(thread))
      }, Unmanaged.passUnretained(box).toOpaque())
  }
}

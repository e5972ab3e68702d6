import CBench

extension Row {
  static let createAndReleaseSerialQueue = Row(
    "create-and-release-serial-queue", .nanoseconds,
    "one thread creates a labelled serial queue and lets go of it"
  ) { scale in
    let count = scale.count(1_000_000)
    let value = nanosecondsPerOperation(count) {
      elapsed {
        for _ in 0..<count {
          let queue = DispatchQueue(label: "short-lived")
          // The queue's address escapes, so that the compiler cannot do without the queue.
          // SAFETY: the address is never followed.
          bench_opaque(Int(bitPattern: Unmanaged.passUnretained(queue).toOpaque()))
        }
      }
    }
    // A queue made like those above must be a working one.
    let sum = Cell()
    DispatchQueue(label: "short-lived").sync { sum.add(count) }
    verify(sum.value, equals: count, "a queue works")
    return Measurement(value: value, operations: count, check: sum.value)
  }
}

import CBench

extension Row {
  static let concurrentPerformEmptyBody = Row(
    "concurrent-perform-empty-body", .nanoseconds,
    "a parallel loop over 10 million indices whose body does nothing: cost of an index"
  ) { scale in
    let count = scale.count(10_000_000)
    // "Nothing" is an instruction-free statement that the compiler may not remove: each index must
    // still be produced, on every runtime and by the rivals.
    let value = nanosecondsPerOperation(count) {
      elapsed {
        DispatchQueue.concurrentPerform(iterations: count) { bench_opaque($0) }
      }
    }
    // The empty body leaves no trace, so one more loop of the same size, untimed, leaves one.
    let slots = Slots(count: count)
    DispatchQueue.concurrentPerform(iterations: count) { slots.mark($0) }
    let visited = slots.takeMarkedOnce()
    verify(visited, equals: count, "indices visited exactly once")
    return Measurement(value: value, operations: count, check: visited)
  }
}

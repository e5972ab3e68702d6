extension Row {
  static let semaphoreSignalWait = Row(
    "semaphore-signal-wait", .nanoseconds,
    "one thread signals a semaphore and takes the signal back"
  ) { scale in
    let count = scale.count(5_000_000)
    let semaphore = DispatchSemaphore(value: 0)
    let value = nanosecondsPerOperation(count) {
      let time = elapsed {
        for _ in 0..<count {
          semaphore.signal()
          semaphore.wait()
        }
      }
      verify(semaphore.wait(timeout: .now()), equals: .timedOut, "no signal is left over")
      return time
    }
    return Measurement(value: value, operations: count, check: count)
  }
}

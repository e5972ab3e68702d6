import CBench

extension Row {
  static let coordination: [Row] = [
    globalAsyncGroupWait,
    groupEnterLeave,
    semaphoreSignalWait,
    concurrentPerformEmptyBody,
  ]

  private static let globalAsyncGroupWait = Row(
    "global-async-group-wait", count: 500_000,
    "fan-out: one thread asyncs tasks of a group onto a global queue, then waits for the group"
  ) { count in
    let queue = DispatchQueue.global()
    let slots = Slots(count: count)
    return perOperation(count) {
      let group = DispatchGroup()
      let time = elapsed {
        for index in 0..<count {
          queue.async(group: group) { slots.mark(index) }
        }
        group.wait()
      }
      verify(slots.takeMarkedOnce(), equals: count, "tasks that ran exactly once")
      return time
    }
  }

  private static let groupEnterLeave = Row(
    "group-enter-leave", count: 5_000_000,
    "one thread enters an empty group and leaves it"
  ) { count in
    let group = DispatchGroup()
    return perOperation(count) {
      let time = elapsed {
        for _ in 0..<count {
          group.enter()
          group.leave()
        }
      }
      verify(group.wait(timeout: .now()), equals: .success, "the group is empty")
      return time
    }
  }

  private static let semaphoreSignalWait = Row(
    "semaphore-signal-wait", count: 5_000_000,
    "one thread signals a semaphore and takes the signal back"
  ) { count in
    let semaphore = DispatchSemaphore(value: 0)
    return perOperation(count) {
      let time = elapsed {
        for _ in 0..<count {
          semaphore.signal()
          semaphore.wait()
        }
      }
      verify(semaphore.wait(timeout: .now()), equals: .timedOut, "no signal is left over")
      return time
    }
  }

  private static let concurrentPerformEmptyBody = Row(
    "concurrent-perform-empty-body", count: 10_000_000,
    "a parallel loop over 10 million indices whose body does nothing: cost of an index"
  ) { count in
    // The body is a statement without instructions that the compiler may not remove: every runtime and rival must
    // still produce each index.
    let result = perOperation(count) {
      elapsed {
        DispatchQueue.concurrentPerform(iterations: count) { bench_opaque($0) }
      }
    }
    // The empty body leaves no trace, so one more loop of the same size, untimed, leaves one.
    let slots = Slots(count: count)
    DispatchQueue.concurrentPerform(iterations: count) { slots.mark($0) }
    verify(slots.takeMarkedOnce(), equals: count, "indices visited exactly once")
    return result
  }
}

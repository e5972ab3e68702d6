import Glibc

extension Row {
  static let submit: [Row] = [
    serialAsyncOneProducer,
    asyncWorkItem,
    concurrentAsyncThenBarrierSync,
    roundTripWithoutPause,
    wakeSleepingWorker,
    sleepingTasksOnGlobalQueue,
    hopBetweenSerialQueues,
  ]

  private static let serialAsyncOneProducer = Row(
    "serial-async-one-producer", count: 500_000,
    "one thread asyncs small tasks onto a serial queue: cost of a task until all have run"
  ) { count in
    let queue = DispatchQueue(label: "serial")
    let sum = Cell()
    return perOperation(count, adding: sumOfIndices(below: count), to: sum, "sum over all tasks") {
      elapsed {
        for index in 0..<count {
          queue.async { sum.add(index) }
        }
        queue.sync {}
      }
    }
  }

  private static let asyncWorkItem = Row(
    "async-work-item", count: 300_000,
    "one thread makes a DispatchWorkItem for each task and asyncs it onto a serial queue"
  ) { count in
    let queue = DispatchQueue(label: "serial")
    let sum = Cell()
    return perOperation(count, adding: sumOfIndices(below: count), to: sum, "sum over all work items") {
      elapsed {
        for index in 0..<count {
          queue.async(execute: DispatchWorkItem { sum.add(index) })
        }
        queue.sync {}
      }
    }
  }

  private static let concurrentAsyncThenBarrierSync = Row(
    "concurrent-async-then-barrier-sync", count: 500_000,
    "one thread asyncs tasks onto a concurrent queue, then waits for them with a barrier"
  ) { count in
    let queue = DispatchQueue(label: "concurrent", attributes: .concurrent)
    let slots = Slots(count: count)
    return perOperation(count) {
      let time = elapsed {
        for index in 0..<count {
          queue.async { slots.mark(index) }
        }
        queue.sync(flags: .barrier) {}
      }
      verify(slots.takeMarkedOnce(), equals: count, "tasks that ran exactly once, before the barrier")
      return time
    }
  }

  private static let roundTripWithoutPause = Row(
    "round-trip-without-pause", count: 50_000,
    "async onto a queue and wait for its semaphore, again and again: the round trip"
  ) { count in
    let queue = DispatchQueue(label: "wakeful")
    let answer = DispatchSemaphore(value: 0)
    let trips = Cell()
    return perOperation(count, adding: count, to: trips, "round trips") {
      elapsed {
        for _ in 0..<count {
          queue.async {
            trips.add(1)
            answer.signal()
          }
          answer.wait()
        }
      }
    }
  }

  private static let wakeSleepingWorker = Row(
    "wake-sleeping-worker", count: 1_000,
    "async onto a queue whose workers all sleep, and be woken by its semaphore: the round trip"
  ) { count in
    let queue = DispatchQueue(label: "sleepy")
    let answer = DispatchSemaphore(value: 0)
    let trips = Cell()
    return perOperation(count, adding: count, to: trips, "round trips") {
      var time = 0
      for _ in 0..<count {
        waitUntilOtherThreadsSleep()
        time += elapsed {
          queue.async {
            trips.add(1)
            answer.signal()
          }
          answer.wait()
        }
      }
      return time
    }
  }

  private static let sleepingTasksOnGlobalQueue = Row(
    "sleeping-tasks-on-global-queue", .seconds, count: 2_000,
    "2,000 tasks on a global queue block for 100 ms each in a foreign call: wall seconds for all"
  ) { count in
    let nap = 100_000_000
    let queue = DispatchQueue.global()
    let group = DispatchGroup()
    let slots = Slots(count: count)
    // One pass in a cold pool: the question is how the pool grows.
    let time = elapsed {
      for index in 0..<count {
        queue.async(group: group) {
          // A foreign call, which the runtime cannot foresee.
          var rest = timespec(tv_sec: 0, tv_nsec: nap)
          var left = timespec()
          while nanosleep(&rest, &left) != 0 { rest = left }
          slots.mark(index)
        }
      }
      group.wait()
    }
    verify(slots.takeMarkedOnce(), equals: count, "tasks that slept and ran exactly once")
    verify(time >= nap, equals: true, "the tasks slept")
    return Measurement(value: Double(time) / 1e9, operations: count, check: count)
  }

  private static let hopBetweenSerialQueues = Row(
    "hop-between-serial-queues", count: 300_000,
    "each task asyncs the next one onto the other of two serial queues: cost of a hop"
  ) { count in
    let court = Court()
    return perOperation(count, adding: count, to: court.hops, "hops, one after the other") {
      elapsed {
        court.hop(remaining: count)
        court.done.wait()
      }
    }
  }
}

private final class Court: Sendable {
  let even = DispatchQueue(label: "even")
  let odd = DispatchQueue(label: "odd")
  let done = DispatchSemaphore(value: 0)
  /// Written by one hop at a time: each hop submits the next one.
  let hops = Cell()

  func hop(remaining: Int) {
    guard remaining > 0 else {
      done.signal()
      return
    }
    let queue = remaining & 1 == 0 ? even : odd
    queue.async {
      self.hops.add(1)
      self.hop(remaining: remaining - 1)
    }
  }
}

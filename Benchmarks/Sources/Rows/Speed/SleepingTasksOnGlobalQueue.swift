import Glibc

extension Row {
  static let sleepingTasksOnGlobalQueue = Row(
    "sleeping-tasks-on-global-queue", .seconds,
    "2,000 tasks on a global queue block for 100 ms each in a foreign call: wall seconds for all"
  ) { scale in
    let count = scale.count(2_000)
    let nap = 100_000_000
    let queue = DispatchQueue.global()
    let group = DispatchGroup()
    let slots = Slots(count: count)
    // One pass in a cold pool: how the pool grows is the question.
    let time = elapsed {
      for index in 0..<count {
        queue.async(group: group) {
          // Not the runtime's own waiting: a call that it cannot see coming.
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
}

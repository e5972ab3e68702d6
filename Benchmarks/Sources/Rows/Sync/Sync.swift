import CBench

extension Row {
  static let sync: [Row] = [
    syncUncontended,
    syncTwoThreadsContending,
    concurrentQueueSyncRead,
    barrierSyncUncontended,
  ]

  private static let syncUncontended = Row(
    "sync-uncontended", count: 5_000_000,
    "one thread enters and leaves an idle serial queue"
  ) { count in
    let queue = DispatchQueue(label: "serial")
    let sum = Cell()
    return perOperation(count, adding: sumOfIndices(below: count), to: sum, "sum over all entries") {
      elapsed {
        for index in 0..<count {
          queue.sync { sum.add(index) }
        }
      }
    }
  }

  private static let syncTwoThreadsContending = Row(
    "sync-two-threads-contending", count: 200_000,
    "two threads on two cores enter the same serial queue as fast as they can: time for an entry"
  ) { count in
    let queue = DispatchQueue(label: "serial")
    let entries = Cell()
    let previous = Cell()
    let handovers = Cell()
    return perOperation(count, adding: count, to: entries, "entries that excluded each other") {
      previous.value = -1
      handovers.value = 0
      let time = elapsed(onTwoThreads: { thread in
        for _ in 0..<(count / 2) {
          queue.sync {
            entries.add(1)
            if previous.value != thread {
              previous.value = thread
              handovers.add(1)
            }
          }
        }
      })
      // One thread after the other makes two handovers, without contention. A single core cannot do better.
      verify(handovers.value > 2 || bench_core_count() == 1, equals: true, "the threads met")
      return time
    }
  }

  private static let concurrentQueueSyncRead = Row(
    "concurrent-queue-sync-read", count: 5_000_000,
    "one thread reads a value under the shared side of a concurrent queue"
  ) { count in
    let queue = DispatchQueue(label: "concurrent", attributes: .concurrent)
    let guarded = Cell()
    guarded.value = 3
    let total = Cell()
    return perOperation(count, adding: 3 * count, to: total, "sum of what was read") {
      elapsed {
        for _ in 0..<count {
          queue.sync { total.add(guarded.value) }
        }
      }
    }
  }

  private static let barrierSyncUncontended = Row(
    "barrier-sync-uncontended", count: 2_000_000,
    "one thread writes under the barrier of an idle concurrent queue"
  ) { count in
    let queue = DispatchQueue(label: "concurrent", attributes: .concurrent)
    let sum = Cell()
    return perOperation(count, adding: sumOfIndices(below: count), to: sum, "sum over all barriers") {
      elapsed {
        for index in 0..<count {
          queue.sync(flags: .barrier) { sum.add(index) }
        }
      }
    }
  }
}

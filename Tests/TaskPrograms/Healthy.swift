import Concourse
import Glibc
import Synchronization

/// Programs that also run where tasks have few threads.
enum Healthy {
  static let all: [Program] = [
    .healthy("children") {
      let sum = await withTaskGroup(of: Int.self) { group in
        for number in 0..<100 { group.addTask { number } }
        return await group.reduce(0, +)
      }
      precondition(sum == 4950)
    },
    .healthy("actor-of-many") {
      let counter = Counter()
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<100 { group.addTask { await counter.increment() } }
      }
      let count = await counter.count
      precondition(count == 100)
    },
    .healthy("stream") {
      let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
      Task.detached {
        for number in 0..<100 { continuation.yield(number) }
        continuation.finish()
      }
      let sum = await stream.reduce(0, +)
      precondition(sum == 4950)
    },
    .healthy("continuation") {
      for _ in 0..<20 {
        await withCheckedContinuation { continuation in DispatchQueue.global().async { continuation.resume() }
        }
      }
    },
    .healthy("free-queue") {
      let queue = DispatchQueue(label: "free")
      for _ in 0..<20 { syncNow(queue) }
    },
    .healthy("free-places") {
      let semaphore = DispatchSemaphore(value: 1)
      for _ in 0..<20 { takePlace(semaphore) }
    },
    .healthy("awaited-queue") {
      let queue = DispatchQueue(label: "awaited")
      let group = DispatchGroup()
      for _ in 0..<20 {
        queue.async(group: group) {}
        await queue.run {}
      }
      await group.finished()
    },
    .healthy("sleepers") {
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<20 { group.addTask { try? await Task.sleep(for: .milliseconds(1)) } }
      }
    },
    .healthy("main-actor") {
      for _ in 0..<20 { await MainActor.run {} }
    },
    .healthy("mutex") {
      let count = Count()
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<100 { group.addTask { count.value.withLock { $0 += 1 } } }
      }
      precondition(count.value.withLock { $0 } == 100)
    },
    // Its holder may have no processor for a while, but does not sleep with it.
    .healthy("crowded-mutex") {
      let count = Count()
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<64 {
          group.addTask { for _ in 0..<500 { count.value.withLock { $0 = busy($0, steps: 200) } } }
        }
      }
      precondition(count.value.withLock { $0 } == 32_000)
    },
    // More than there are processors.
    .healthy("computing") {
      await withTaskGroup(of: Int.self) { group in
        for _ in 0..<16 { group.addTask { busy(0, steps: 10_000_000) } }
        for await number in group { precondition(number == 1) }
      }
    },
    .healthy("page-faults") {
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<4 {
          group.addTask {
            let bytes = [UInt8](repeating: 1, count: 1 << 25)
            precondition(bytes.last == 1)
          }
        }
      }
    },
    .healthy("short-sleeps") {
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<8 { group.addTask { for _ in 0..<10 { usleep(1000) } } }
      }
    },
    // The queue of an executor of the program's own is not that of the tasks.
    .healthy("executors-queue") {
      let disk = DispatchQueue(label: "disk", attributes: .concurrent)
      let end = DispatchSemaphore(value: 0)
      let reader = Task(executorPreference: disk) { sleep(until: end) }
      while Inspection.Pool.read().blocked == 0 {}
      end.signal()
      await reader.value
    },
    // An item of a queue may block.
    .healthy("blocking-item") {
      let (begun, end) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      let group = DispatchGroup()
      DispatchQueue.global().async(group: group) {
        begun.signal()
        end.wait()
      }
      await withCheckedContinuation { continuation in
        DispatchQueue.global().async {
          begun.wait()
          while Inspection.Pool.read().blocked == 0 {}
          continuation.resume()
        }
      }
      end.signal()
      await group.finished()
    },
  ]

  private static func syncNow(_ queue: DispatchQueue) { queue.sync {} }

  private static func sleep(until end: DispatchSemaphore) { end.wait() }

  private static func takePlace(_ semaphore: DispatchSemaphore) {
    semaphore.wait()
    semaphore.signal()
  }
}

/// Takes some time, and returns the next number.
private func busy(_ number: Int, steps: Int) -> Int {
  var value = UInt64(truncatingIfNeeded: number)
  for step in 0..<steps { value = value &* 6_364_136_223_846_793_005 &+ UInt64(truncatingIfNeeded: step) }
  return value == 0 ? number : number + 1
}

private actor Counter {
  private(set) var count = 0
  func increment() { count += 1 }
}

private final class Count: Sendable {
  let value = Mutex(0)
}

// Programs for `concourse explore --races`, built with the thread sanitizer: `orders NAME` accesses a variable from several
// threads without an order, `orders NAME mended` with the order that its name says. Without a name it prints all names.

import Dispatch
import Glibc
import Synchronization

/// A variable that nothing guards.
final class Plain: @unchecked Sendable {
  var value = 0
  func add() { value += 1 }
  /// The compiler's own accessor is not instrumented.
  func read() -> Int { value }
}

/// What guards it, if it is mended.
let isMended = CommandLine.arguments.count > 2
let plain = Plain()

@MainActor var onMain = 0

actor Counter {
  var value = 0
  func add() { value += 1 }
  func add(to plain: Plain) { plain.add() }
}

final class Guarded: Sendable {
  let value = Mutex(0)
}

/// Lets the main thread wait for a task, without a word to the sanitizer beyond the semaphore's.
func wait(for body: @escaping @Sendable () async -> Void) {
  let done = DispatchSemaphore(value: 0)
  Task.detached {
    await body()
    done.signal()
  }
  done.wait()
}

let programs: [(String, @Sendable () -> Void)] = [
  // Two queues each change it; or one.
  (
    "serial",
    {
      let first = DispatchQueue(label: "first")
      let second = isMended ? first : DispatchQueue(label: "second")
      let group = DispatchGroup()
      first.async(group: group) { plain.add() }
      second.async(group: group) { plain.add() }
      group.wait()
      plain.add()
    }
  ),
  // Two queues each change it; mended, both stand above one.
  (
    "targets",
    {
      let base = DispatchQueue(label: "base")
      let first = DispatchQueue(label: "first", target: isMended ? base : nil)
      let second = DispatchQueue(label: "second", attributes: .concurrent, target: isMended ? base : nil)
      let group = DispatchGroup()
      first.async(group: group) { plain.add() }
      second.async(group: group) { plain.add() }
      second.sync { plain.add() }
      group.wait()
    }
  ),
  // A writer on a concurrent queue is no barrier.
  (
    "barrier",
    {
      let queue = DispatchQueue(label: "queue", attributes: .concurrent)
      let group = DispatchGroup()
      for _ in 0..<2 { queue.async { _ = plain.read() } }
      queue.async(group: group, execute: DispatchWorkItem(flags: isMended ? .barrier : []) { plain.add() })
      queue.async(flags: isMended ? .barrier : []) { plain.add() }
      for _ in 0..<2 { queue.async(group: group) { _ = plain.read() } }
      queue.sync(flags: isMended ? .barrier : []) { plain.add() }
      group.wait()
    }
  ),
  // The check and the act are on two queues.
  (
    "check-then-act",
    {
      let queue = DispatchQueue(label: "queue")
      let other = isMended ? queue : DispatchQueue(label: "other")
      let group = DispatchGroup()
      DispatchQueue.global().async(group: group) {
        if queue.sync(execute: { plain.read() }) == 0 { other.sync { plain.add() } }
      }
      DispatchQueue.global().async(group: group) {
        if queue.sync(execute: { plain.read() }) == 0 { other.sync { plain.add() } }
      }
      group.wait()
    }
  ),
  // What a group's item has written is read before the wait for it.
  (
    "group",
    {
      let group = DispatchGroup()
      DispatchQueue.global().async(group: group) { plain.add() }
      group.enter()
      DispatchQueue.global().async {
        if !isMended { plain.add() }
        group.leave()
      }
      let notified = DispatchSemaphore(value: 0)
      if isMended { group.wait() }
      plain.add()
      group.notify(queue: .global()) {
        plain.add()
        notified.signal()
      }
      notified.wait()
      plain.add()
    }
  ),
  // The signal comes too early.
  (
    "semaphore",
    {
      let semaphore = DispatchSemaphore(value: 0)
      let queue = DispatchQueue(label: "queue")
      queue.async {
        if !isMended { semaphore.signal() }
        plain.add()
        if isMended { semaphore.signal() }
      }
      semaphore.wait()
      plain.add()
    }
  ),
  // A flag, in place of a lock.
  (
    "flag",
    {
      let group = DispatchGroup()
      let lock = Guarded()
      for _ in 0..<3 {
        DispatchQueue.global().async(group: group) {
          if isMended {
            lock.value.withLock {
              $0 += 1
              plain.add()
            }
          } else {
            plain.add()
          }
        }
      }
      group.wait()
    }
  ),
  (
    "perform",
    {
      let queue = DispatchQueue(label: "queue")
      plain.add()
      DispatchQueue.concurrentPerform(iterations: 3) { _ in
        if isMended { queue.sync { plain.add() } } else { plain.add() }
      }
      plain.add()
    }
  ),
  (
    "work-item",
    {
      let item = DispatchWorkItem { plain.add() }
      let notified = DispatchSemaphore(value: 0)
      item.notify(queue: .global()) {
        plain.add()
        notified.signal()
      }
      DispatchQueue.global().async(execute: item)
      if isMended { notified.wait() }
      plain.add()
      let second = DispatchWorkItem { plain.add() }
      DispatchQueue(label: "queue").async(execute: second)
      second.wait()
      plain.add()
    }
  ),
  (
    "timer",
    {
      let queue = DispatchQueue(label: "queue")
      let fired = DispatchSemaphore(value: 0)
      let timer = DispatchSource.makeTimerSource(queue: queue)
      plain.add()
      timer.setEventHandler {
        plain.add()
        timer.cancel()
      }
      timer.setCancelHandler {
        plain.add()
        fired.signal()
      }
      timer.schedule(deadline: .now() + 0.01)
      timer.activate()
      queue.asyncAfter(deadline: .now() + 0.02) { plain.add() }
      if isMended {
        fired.wait()
        queue.sync { plain.add() }
      } else {
        plain.add()
        fired.wait()
      }
    }
  ),
  (
    "merge",
    {
      let done = DispatchSemaphore(value: 0)
      let source = DispatchSource.makeUserDataAddSource(queue: .global())
      source.setEventHandler {
        plain.add()
        done.signal()
      }
      source.activate()
      plain.add()
      source.add(data: 1)
      if isMended { done.wait() }
      plain.add()
      if isMended { source.add(data: 1) }
      done.wait()
      plain.add()
    }
  ),
  (
    "actor",
    {
      wait {
        let counter = Counter()
        await withTaskGroup(of: Void.self) { group in
          for _ in 0..<3 {
            group.addTask { if isMended { await counter.add(to: plain) } else { plain.add() } }
          }
        }
        await counter.add()
        plain.add()
      }
    }
  ),
  (
    "task-group",
    {
      wait {
        plain.add()
        let sum = await withTaskGroup(of: Int.self) { group in
          for _ in 0..<3 {
            group.addTask {
              if !isMended { plain.add() }
              return plain.read()
            }
          }
          var sum = 0
          for await value in group { sum += value }
          return sum
        }
        plain.value = sum
      }
    }
  ),
  (
    "tasks",
    {
      wait {
        let first = Task { plain.add() }
        if isMended { await first.value }
        let second = Task.detached { plain.add() }
        await first.value
        await second.value
        async let third: Void = plain.add()
        await third
        plain.add()
        try? await Task.sleep(for: .milliseconds(5))
        plain.add()
      }
    }
  ),
  (
    "main-actor",
    {
      wait {
        await withTaskGroup(of: Void.self) { group in
          for _ in 0..<3 {
            group.addTask { if isMended { await MainActor.run { plain.add() } } else { plain.add() } }
          }
        }
        await MainActor.run { plain.add() }
      }
    }
  ),
  (
    "continuation",
    {
      wait {
        let queue = DispatchQueue(label: "queue")
        await withCheckedContinuation { continuation in
          queue.async {
            if !isMended { continuation.resume() }
            plain.add()
            if isMended { continuation.resume() }
          }
        }
        plain.add()
      }
    }
  ),
  // `sync` runs the item, and another thread waits for it.
  (
    "item-in-sync",
    {
      nonisolated(unsafe) let item = DispatchWorkItem { plain.add() }
      let queue = DispatchQueue(label: "queue")
      let group = DispatchGroup()
      DispatchQueue.global().async(group: group) { queue.sync(execute: item) }
      if isMended { item.wait() }
      plain.add()
      group.wait()
    }
  ),
  // What is written before the handler is set, the canceller's thread reads in it.
  (
    "cancellation",
    {
      wait {
        let task = Task.detached {
          if isMended { plain.add() }
          await withTaskCancellationHandler {
            if !isMended { plain.add() }
          } onCancel: {
            plain.add()
          }
        }
        let canceller = Task.detached { task.cancel() }
        await canceller.value
        await task.value
      }
    }
  ),
  (
    "stream",
    {
      wait {
        let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
        let producer = Task.detached {
          for number in 0..<3 {
            plain.add()
            continuation.yield(number)
          }
          continuation.finish()
        }
        if !isMended { plain.add() }
        for await _ in stream {}
        plain.add()
        await producer.value
      }
    }
  ),
]

@main struct Orders {
  static func main() {
    guard CommandLine.arguments.count > 1 else { return print(programs.map(\.0).joined(separator: "\n")) }
    guard let program = programs.first(where: { $0.0 == CommandLine.arguments[1] }) else {
      fatalError("no such program")
    }
    // The main thread serves the main queue.
    if program.0 == "main-actor" {
      DispatchQueue.global().async {
        program.1()
        exit(0)
      }
      dispatchMain()
    }
    program.1()
  }
}

import ConcourseEvents
import Glibc

/// Two threads that wait for each other, for the tests of the report on a process that has trapped: one has a queue, and
/// the other one runs what it waits for.
enum Deadlock {
  static func run(_ kind: String) -> Never {
    let held = DispatchQueue(label: "held")
    let (begun, taken) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let needsQueue: @Sendable () -> Void = {
      begun.signal()
      taken.wait()
      held.sync {}
    }
    let group = DispatchGroup()
    let once = DispatchOnce()
    nonisolated(unsafe) let item = DispatchWorkItem(block: needsQueue)
    switch kind {
    case "group": DispatchQueue.global().async(group: group, execute: needsQueue)
    case "work-item": DispatchQueue.global().async(execute: item)
    default: startThread("in-once") { once.perform(needsQueue) }
    }
    begun.wait()
    held.async {
      taken.signal()
      switch kind {
      case "group": group.wait()
      case "work-item": item.wait()
      default: once.perform {}
      }
    }
    while true { pause() }
  }
}

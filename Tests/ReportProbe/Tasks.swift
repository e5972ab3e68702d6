import Concourse
import Glibc

/// Jobs of Swift Concurrency on queues: of a task that prefers a queue and submits an item, and of an actor.
enum Tasks {
  actor Counter {
    private nonisolated let queue = DispatchSerialQueue(label: "com.example.actor")
    nonisolated var unownedExecutor: UnownedSerialExecutor { queue.asUnownedSerialExecutor() }
    func count() {}
  }

  static func run() -> Never {
    let queue = DispatchQueue(label: "com.example.tasks")
    let counter = Counter()
    let name = "fetch " + String(repeating: "é", count: 50)
    let named = Task(name: name, executorPreference: queue, priority: .high) {
      queue.async {}
      await counter.count()
    }
    Task.detached(executorPreference: queue, priority: .background) {
      await named.value
      exit(0)
    }
    dispatchMain()
  }
}

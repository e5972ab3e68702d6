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

/// Tasks that stay on their threads: one sleeps, one computes.
enum Jobs {
  @_silgen_name("swift_task_getJobTaskId")
  private static func number(_ task: UnsafeRawPointer) -> UInt64

  private static func tell(_ label: String) {
    withUnsafeCurrentTask { task in
      // SAFETY: the structure is the address of the task.
      print("\(label) \(number(unsafeBitCast(task!, to: UnsafeRawPointer.self)))")
    }
  }

  static func run() -> Never {
    let (sleeping, computing) = (DispatchQueue(label: "sleeping"), DispatchQueue(label: "computing"))
    Task(executorPreference: sleeping, priority: .high) {
      tell("sleeping")
      Task(executorPreference: computing, priority: .low) {
        tell("computing")
        print("ready")
        fflush(nil)
        while true {}
      }
      while true { pause() }
    }
    dispatchMain()
  }
}

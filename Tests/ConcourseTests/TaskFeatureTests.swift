import Concourse
import Testing

/// What Swift 6.2 and 6.3 added to tasks, on queues.
@Suite("Names, immediate tasks, isolated conformances", .timeLimit(.minutes(10)))
struct TaskFeatureTests {
  @Test("a task keeps its name on queues and actors, and a child has its own")
  func names() async {
    let queue = DispatchSerialQueue(label: "preferred")
    let scribe = Scribe(DispatchSerialQueue(label: "actor"))
    let task = Task(name: "loader", executorPreference: queue) {
      var names = [Task.name]
      await Task.yield()
      names.append(Task.name)
      names.append(await scribe.perform { Task.name })
      names.append(await queue.run { Task.name })
      await withTaskGroup(of: String?.self) { group in
        group.addTask(name: "child") { Task.name }
        for await name in group { names.append(name) }
      }
      return names
    }
    // A closure of `run` is an item of the queue, in which no task runs.
    #expect(await task.value == ["loader", "loader", "loader", nil, "child"])
  }

  @Test("an immediate task begins in the item that makes it, and goes on where it prefers to run")
  func immediate() async {
    let (here, preferred) = (DispatchSerialQueue(label: "here"), DispatchSerialQueue(label: "preferred"))
    let (labels, channel) = AsyncStream.makeStream(of: String.self)
    here.sync {
      _ = Task.immediate(executorPreference: preferred) {
        channel.yield(DispatchQueue.currentLabel)
        await Task.yield()
        channel.yield(DispatchQueue.currentLabel)
        channel.finish()
      }
    }
    var seen: [String] = []
    for await label in labels { seen.append(label) }
    #expect(seen == ["here", "preferred"])
  }

  @Test("an isolated conformance holds in items of the main queue, and in no others")
  func isolatedConformance() async {
    let queue = DispatchQueue(label: "other")
    let target = DispatchQueue(label: "below the main queue", target: .main)
    func conforms(on queue: DispatchQueue) async -> Bool {
      await queue.run { (Page() as Any) is any Titled }
    }
    #expect(await conforms(on: .main))
    #expect(await conforms(on: target))
    #expect(await !conforms(on: queue))
    #expect(await MainActor.run { ((Page() as Any) as? any Titled)?.title } == "page")
  }
}

private protocol Titled { var title: String { get } }

private struct Page: Sendable {}

extension Page: @MainActor Titled {
  @MainActor var title: String { "page" }
}

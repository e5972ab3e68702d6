/// The report on a process: what was read, the graph of the waits, and the conclusions.
struct Report {
  let snapshot: EngineSnapshot
  let graph: WaitGraph
  let verdicts: [Verdict]
  /// The file that has the engine, and the engine's version.
  let library: String
  let version: String?

  static func make(of process: TargetProcess) throws(TargetProcess.Failure) -> Report {
    let images = MappedImage.all(of: process)
    let record = try InspectionRecord.find(in: process, images)
    let runtime = SwiftRuntime(process, images)
    var snapshot = try EngineReader.read(process, record, taskClass: runtime?.tasks.taskClass ?? 0)
    let symbols = Symbols(process, images, engine: record.image)
    snapshot.readStacks(symbols) { thread in
      if case .idle = thread.wait { return false }
      return thread.isBlocked || !thread.frames.isEmpty || thread.role == .main
        || thread.id == process.crash?.thread
    }
    if let runtime { snapshot.readTasks(runtime, symbols) }
    var graph = WaitGraph(snapshot)
    let verdicts = Verdicts(snapshot, graph) {
      guard let runtime, StalledTasks.areStalled(snapshot) else { return false }
      return StalledTasks.isConfirmed(process) { process in
        var again = try? EngineReader.read(process, record, taskClass: runtime.tasks.taskClass)
        again?.readTasks(runtime, symbols)
        return again
      }
    }
    graph.cycles = verdicts.cycles
    return Report(
      snapshot: snapshot, graph: graph, verdicts: verdicts.all, library: record.image.path,
      version: record.version)
  }

  var busyQueues: [QueueInfo] {
    snapshot.queues.values.filter { $0.isBusy && $0.kind != .global }.sorted {
      ($0.items + $0.heldBack, $1.label, $1.address) > ($1.items + $1.heldBack, $0.label, $0.address)
    }
  }

  var idleQueues: [QueueInfo] {
    snapshot.queues.values.filter { !$0.isBusy && $0.kind != .global }.sorted {
      ($0.label, $0.address) < ($1.label, $1.address)
    }
  }

  /// Threads that wait, or that run an item.
  var busyThreads: [ThreadInfo] {
    snapshot.threads.filter { thread in
      if case .idle = thread.wait { return false }
      return thread.isBlocked || !thread.frames.isEmpty
    }
  }
}

extension EngineSnapshot {
  /// Threads whose stacks are read; of thousands, most are alike.
  private static let mostStacks = 2000

  mutating func readStacks(_ symbols: Symbols, of isWanted: (ThreadInfo) -> Bool) {
    let shown = threads.indices.filter { isWanted(threads[$0]) }.prefix(Self.mostStacks)
    let stacks = symbols.resolve(
      shown.map {
        StackWalk.addresses(of: threads[$0].thread, in: process, function: symbols.function(at:))
      })
    for (index, stack) in zip(shown, stacks) { threads[index].stack = stack }
  }
}

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
    let readAgain: HoldWatch.ReadAgain = { snapshot.readAgain($0, symbols) }
    let verdicts = Verdicts(snapshot, graph, readAgain: readAgain) {
      guard let runtime, StalledTasks.areStalled(snapshot) else { return false }
      return StalledTasks.isConfirmed(process) { process in
        var again = try? EngineReader.read(process, record, taskClass: runtime.tasks.taskClass)
        again?.readTasks(runtime, symbols)
        return again
      }
    }
    graph.cycles = verdicts.cycles
    return Report(
      snapshot: verdicts.snapshot, graph: graph, verdicts: verdicts.all, library: record.image.path,
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
  /// The threads of a running process as they are now, with their stacks. Of one that waits for something else, only the
  /// call is known.
  func readAgain(_ threads: [ThreadInfo], _ symbols: Symbols) -> [ThreadInfo] {
    var now = self
    now.threads = threads.compactMap { before in
      guard var thread = TargetThread(process: process.id, thread: Int32(before.thread.idHere)) else {
        return nil
      }
      if thread.threadPointer == nil { thread.threadPointer = before.thread.threadPointer }
      var info = before
      if thread.call?.number != before.thread.call?.number
        || thread.call?.arguments != before.thread.call?.arguments
      {
        info.wait =
          thread.call.map { .call(process.processor.name(ofSystemCall: $0.number), nil) } ?? .running
        info.blockedFor = nil
      }
      info.thread = thread
      return info
    }
    now.readStacks(symbols) { _ in true }
    return now.threads
  }

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

/// The tasks of Swift Concurrency, where they are suspended, and who has what they wait for.
extension EngineSnapshot {
  /// More places are not those of a program. Each takes time to look up.
  private static let mostFunctions = 10_000

  mutating func readTasks(_ runtime: SwiftRuntime, _ symbols: Symbols) {
    let onThreads = SwiftTasks(process, runtime)
    swiftThreads = onThreads
    for (index, thread) in threads.enumerated() {
      threads[index].task = thread.thread.threadPointer.flatMap { onThreads?.current($0) }
      // A thread that has woken up since may run a task that the sleeping one did not.
      if thread.isBlocked && !thread.isStillAsleep(in: process) { threads[index].task = nil }
    }
    guard runtime.problem == nil else {
      tasksProblem = runtime.problem
      return
    }
    taskLayout = runtime.tasks
    tasks = TaskReader.tasks(at: taskCandidates, in: process, runtime.tasks)
    var known: Set<UInt64> = []
    let frames = tasks.map { task -> [UInt64] in
      guard known.count < Self.mostFunctions else { return [] }
      known.formUnion(task.frames)
      return task.frames
    }
    let stacks = symbols.resolve(frames, areReturns: false)
    for (index, stack) in stacks.enumerated() {
      tasks[index].isOfRuntime = tasks[index].state == .created && stack.first?.origin == .system
      tasks[index].stack = Self.functions(stack)
      if tasks[index].awaits == .continuation {
        tasks[index].awaits = Self.continuation(tasks[index].stack)
        // `Task.yield` resumes its continuation at once.
        if case .executor = tasks[index].awaits { tasks[index].state = .enqueued }
      }
    }
    let makers = Set(tasks.lazy.filter(\.isOfRuntime).map(\.address))
    tasks.removeAll(where: \.isOfRuntime)
    let sleepers = Set(tasks.lazy.filter { $0.awaits == .sleep }.map(\.address))
    let left = TaskSleeps(self, sleepers: sleepers, makers: makers).left
    for index in tasks.indices { tasks[index].sleepLeft = left[tasks[index].address] }
    var runners: [UInt64: UInt32] = [:]
    for thread in threads { if let task = thread.task { runners[task.task] = thread.id } }
    for index in tasks.indices where tasks[index].state == .running {
      // A thread has the lower half of the number.
      tasks[index].thread = runners[tasks[index].id & 0xFFFF_FFFF]
    }
    readExecutors(onThreads)
  }

  /// Without what the compiler and the runtime put between functions, or before them by the same name.
  private static func functions(_ stack: [StackEntry]) -> [StackEntry] {
    var kept: [StackEntry] = []
    for var entry in stack where !entry.isThunk {
      // Of the standard library, compiled into the program; an extension of the program's own has lines.
      if entry.line == nil, let symbol = entry.symbol, symbol.hasPrefix("$sSc") || symbol.hasPrefix("$ss") {
        entry.origin = .system
      }
      if entry.origin == .system, !(entry.symbol?.hasPrefix("$s") ?? false) { continue }
      if let last = kept.last, last.function == entry.function, entry.line == nil { continue }
      kept.append(entry)
    }
    return kept
  }

  /// What a continuation stands for, by the functions of the standard library that await it for the program.
  private static func continuation(_ stack: [StackEntry]) -> TaskInfo.Awaited {
    for entry in stack.prefix(while: { $0.origin == .system }) {
      guard let symbol = entry.symbol else { continue }
      // `AsyncStream` and `AsyncThrowingStream`.
      if symbol.hasPrefix("$sScS") || symbol.hasPrefix("$sScs") { return .stream }
      let function = entry.function.split(separator: ".").last ?? ""
      if function.hasPrefix("sleep(") || function.hasPrefix("_sleep(") { return .sleep }
      if function == "yield()" { return .executor(0) }
    }
    return .continuation
  }

  /// More are not those of a program.
  private static let mostExecutors = 10_000

  private mutating func readExecutors(_ onThreads: SwiftTasks?) {
    var wanted: Set<UInt64> = []
    for task in tasks {
      if case .executor(let executor) = task.awaits, executor != 0 { wanted.insert(executor) }
    }
    guard !wanted.isEmpty else { return }
    for executor in wanted.prefix(Self.mostExecutors) {
      let type = process.memory.word(executor).flatMap { SwiftType(metadata: $0, in: process.memory) }
      executors[executor] = ExecutorInfo(name: type?.name, isActor: type?.isActor ?? false)
    }
    for thread in threads {
      for executor in onThreads?.executors(of: thread.thread) ?? [] {
        executors[executor]?.threads.append(thread.id)
      }
    }
  }
}

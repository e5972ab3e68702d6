import ConcourseRecording

/// What Swift's runtime keeps for a thread: the task that it runs, and the actor.
///
/// The runtime keeps their addresses in thread-local variables. Which ones those are, is not exported, but only one of
/// them leads to a task: an object of the class whose address the runtime exports for debuggers.
struct SwiftTasks {
  private let process: TargetProcess
  private let taskClass: UInt64
  /// The number of the runtime's module, and the size of its thread-local variables.
  private let module: UInt64
  private let size: UInt64
  /// From the thread pointer to the address of the table of its variables.
  private let placeOfTable: UInt64

  private var memory: any TargetMemory { process.memory }

  /// nil if the runtime's variables cannot be found.
  init?(_ process: TargetProcess, _ runtime: SwiftRuntime) {
    self.process = process
    placeOfTable = process.processor == .arm64 ? 0 : 8
    let image = runtime.image
    guard image.threadLocalSize > 0, image.threadLocalSize <= 4096, let number = runtime.file.moduleNumber,
      let module = process.memory.word(number &+ image.bias), module > 0, module < 10_000
    else { return nil }
    (taskClass, self.module, size) = (runtime.tasks.taskClass, module, image.threadLocalSize)
  }

  /// - Parameter threadPointer: of a thread that may run meanwhile.
  func current(_ threadPointer: UInt64) -> RecordedJob? {
    for word in variables(threadPointer) {
      if let task = task(at: word) { return task }
    }
    return nil
  }

  /// The actor that a thread is in; 0 for none. Only an actor is known by its address: the caller compares.
  ///
  /// A variable has the address of a record on the thread's own stack, which begins with the executor.
  func executors(of thread: TargetThread) -> Set<UInt64> {
    guard let pointer = thread.threadPointer, let stack = process.region(of: thread.stackPointer) else {
      return []
    }
    var found: Set<UInt64> = []
    for word in variables(pointer) where word >= thread.stackPointer && stack.contains(word) && word % 8 == 0
    {
      if let executor = memory.word(word), executor != 0 { found.insert(executor) }
    }
    return found
  }

  /// The words of the runtime's variables of a thread.
  private func variables(_ threadPointer: UInt64) -> [UInt64] {
    // glibc's table of the thread's variables has 16 bytes for each module; the first word is their address.
    guard let table = memory.word(threadPointer &+ placeOfTable),
      let variables = memory.word(table &+ module &* 16)
    else { return [] }
    return stride(from: 0, to: size, by: 8).compactMap { memory.word(variables &+ $0) }
  }

  /// The header of a job: class, reference counts, two words of the scheduler, flags and number. The lowest byte of the
  /// flags is the kind, 0 for a task; the next one is the priority.
  private func task(at address: UInt64) -> RecordedJob? {
    guard address > 4096, address % 16 == 0, memory.word(address) == taskClass,
      let flags: UInt32 = memory.number(at: address &+ 32), flags & 0xFF == 0,
      let number: UInt32 = memory.number(at: address &+ 36), number > 0
    else { return nil }
    return RecordedJob(priority: UInt8(truncatingIfNeeded: flags >> 8), task: UInt64(number))
  }
}

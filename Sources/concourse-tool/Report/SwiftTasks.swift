import ConcourseRecording

/// The task of Swift Concurrency that a thread runs.
///
/// Swift's runtime keeps its address in a thread-local variable. Which one that is, is not exported, but only that one
/// leads to a task: an object of the class whose address the runtime exports for debuggers.
struct SwiftTasks {
  private let memory: any TargetMemory
  /// The class of tasks.
  private let metadata: UInt64
  /// The number of the runtime's module, and the size of its thread-local variables.
  private let module: UInt64
  private let size: UInt64
  /// From the thread pointer to the address of the table of its variables.
  private let placeOfTable: UInt64

  /// What a class of tasks has in place of a superclass.
  private static let kindOfTasks: UInt64 = 0x502

  /// nil without Swift Concurrency, or if the program contains it.
  init?(_ process: TargetProcess, _ images: [MappedImage]) {
    memory = process.memory
    placeOfTable = process.processor == .arm64 ? 0 : 8
    guard let image = images.first(where: { FilePath.lastPart(of: $0.path) == "libswift_Concurrency.so" }),
      image.threadLocalSize > 0, image.threadLocalSize <= 4096,
      let file = try? ElfImage(path: image.file(of: process)),
      let exported = file.variable(named: "_swift_concurrency_debug_asyncTaskMetadata"),
      let metadata = memory.word(exported &+ image.bias),
      memory.word(metadata) == Self.kindOfTasks,
      let number = file.moduleNumber, let module = memory.word(number &+ image.bias), module > 0,
      module < 10_000
    else { return nil }
    (self.metadata, self.module, size) = (metadata, module, image.threadLocalSize)
  }

  /// - Parameter threadPointer: of a thread that may run meanwhile.
  func current(_ threadPointer: UInt64) -> RecordedJob? {
    // glibc's table of the thread's variables has 16 bytes for each module; the first word is their address.
    guard let table = memory.word(threadPointer &+ placeOfTable),
      let variables = memory.word(table &+ module &* 16)
    else { return nil }
    for offset in stride(from: 0, to: size, by: 8) {
      if let address = memory.word(variables &+ offset), let task = task(at: address) { return task }
    }
    return nil
  }

  /// The header of a job: class, reference counts, two words of the scheduler, flags and number. The lowest byte of the
  /// flags is the kind, 0 for a task; the next one is the priority.
  private func task(at address: UInt64) -> RecordedJob? {
    guard address > 4096, address % 16 == 0, memory.word(address) == metadata,
      let flags: UInt32 = memory.number(at: address &+ 32), flags & 0xFF == 0,
      let number: UInt32 = memory.number(at: address &+ 36), number > 0
    else { return nil }
    return RecordedJob(priority: UInt8(truncatingIfNeeded: flags >> 8), task: UInt64(number))
  }
}

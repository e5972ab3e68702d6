/// Where Swift's runtime keeps its tasks, by the variables that it exports for debuggers.
struct SwiftRuntime {
  /// The layout of tasks that `TaskReader` reads, as the runtime numbers it.
  static let layout: UInt32 = 1

  let image: MappedImage
  let file: ElfImage
  let tasks: TaskLayout
  /// Why its tasks cannot be read; nil if they can.
  let problem: String?

  /// What a class of tasks has in place of a superclass.
  private static let kindOfTasks: UInt64 = 0x502

  /// nil without Swift Concurrency.
  init?(_ process: TargetProcess, _ images: [MappedImage]) {
    let memory = process.memory
    guard let image = images.first(where: { FilePath.lastPart(of: $0.path) == "libswift_Concurrency.so" }),
      let path = image.file(of: process), let file = try? ElfImage(path: path)
    else { return nil }
    func place(_ name: String) -> UInt64? {
      file.variable(named: "_swift_concurrency_debug_" + name).map { $0 &+ image.bias }
    }
    guard let metadata = place("asyncTaskMetadata").flatMap(memory.word),
      memory.word(metadata) == Self.kindOfTasks
    else { return nil }
    (self.image, self.file) = (image, file)
    let taskSize = place("asyncTaskSize").flatMap(memory.word) ?? 0
    let adapters = ["future_adapter", "non_future_adapter"].compactMap { place($0).flatMap(memory.word) }
    tasks = TaskLayout(taskClass: metadata, size: taskSize, startAdapters: Set(adapters))
    let layout: UInt32? = place("internal_layout_version").flatMap { memory.number(at: $0) }
    // A runtime that raises priorities has another word of the state.
    let raises: UInt8? = place("supportsPriorityEscalation").flatMap { memory.number(at: $0) }
    if layout == Self.layout && (200...256).contains(taskSize) && taskSize % 8 == 0 && raises == 0 {
      problem = nil
    } else {
      let known = layout.map { "layout \($0), \(taskSize) bytes" } ?? "no layout"
      problem = "the tasks of this Swift runtime (\(known)) are unknown to this command"
    }
  }
}

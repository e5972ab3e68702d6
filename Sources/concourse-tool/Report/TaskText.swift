/// The section of the tasks of Swift Concurrency.
struct TaskText {
  private let snapshot: EngineSnapshot
  private let words: TaskWording
  private let showsAll: Bool
  private(set) var lines: [String] = []

  /// Rows without `--tasks`.
  private static let mostRows = 8
  /// Functions of a task with `--tasks`, but without `--all`.
  private static let mostFrames = 3
  /// How deep the tree is indented.
  private static let mostLevels = 16

  /// - Parameter showsEach: Each task, in a tree, instead of a row for each place.
  init(_ snapshot: EngineSnapshot, showsEach: Bool, showsAll: Bool) {
    (self.snapshot, self.showsAll) = (snapshot, showsAll)
    words = TaskWording(snapshot)
    if showsEach { writeTree() } else { writeRows() }
  }

  /// How many tasks there are in which state.
  static func summary(of tasks: [TaskInfo]) -> String {
    TaskCounts(tasks).words.map { "\($0.number) \($0.name)" }.joined(separator: ", ")
  }

  private mutating func add(_ text: String, indent: Int) {
    lines += ReportText.wrap(text, indent: indent + 2).enumerated().map { index, line in
      String(repeating: " ", count: index == 0 ? indent : 0) + line
    }
  }

  private mutating func writeRows() {
    let rows = words.rows
    let shown = showsAll ? rows.count : Self.mostRows
    for row in rows.prefix(shown) {
      add(words.sentence(row), indent: 2)
      if let place = row.place { lines.append("    at \(place)") }
    }
    if rows.count > shown {
      let tasks = rows.dropFirst(shown).reduce(0) { $0 + $1.tasks.count }
      lines.append(
        "  … and \(count(tasks, "task")) at \(count(rows.count - shown, "other place")); --tasks lists all")
    }
  }

  private mutating func writeTree() {
    // Damaged memory may have cycles, or children of what is no task.
    var isWritten: Set<UInt64> = []
    let roots = snapshot.tasks.filter { words.task($0.parent) == nil }
    var next = (roots + snapshot.tasks).reversed().map { (task: $0, level: 0) }
    while let (task, level) = next.popLast() {
      guard isWritten.insert(task.address).inserted else { continue }
      write(task, level: min(level, Self.mostLevels))
      next += (words.children[task.address] ?? []).reversed().map { ($0, level + 1) }
    }
  }

  private mutating func write(_ task: TaskInfo, level: Int) {
    var facts = [TaskWording.priority(task.priority)]
    if task.basePriority < task.priority && task.basePriority > 0 {
      facts[0] += ", raised from \(TaskWording.priority(task.basePriority))"
    }
    if task.kind == .asyncLet { facts.append("async let") }
    if task.isCancelled { facts.append("cancelled") }
    let indent = 2 + 2 * level
    add("\(words.name(task)) (\(facts.joined(separator: ", "))) \(words.activity(task))", indent: indent)
    let spaces = String(repeating: " ", count: indent + 2)
    if showsAll {
      lines += task.stack.map { spaces + "at " + Wording.place($0) }
    } else if task.stack.isEmpty {
      if let place = words.place(task) { lines.append(spaces + "at " + place) }
    } else {
      lines += task.clients.prefix(Self.mostFrames).map { spaces + "at " + Wording.place($0) }
    }
  }
}

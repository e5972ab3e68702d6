/// What a trace says of the tasks of Swift Concurrency that waited when the recording ended. A recording has the jobs
/// that ran, but not what a suspended task awaits: that is read from the process, as `concourse report` does.
struct TasksAtEnd {
  static let title = "Tasks at the end of the recording"
  private static let mostPlaces = 3

  /// How many there are in which state, then where most of those are that wait.
  let lines: [String]
  /// The names of all tasks, by the number that a job has in a recording.
  var names: [UInt64: String] = [:]

  /// nil if no task is suspended or enqueued.
  init?(_ tasks: TaskSummary) {
    guard tasks.counts[.suspended] + tasks.counts[.enqueued] > 0 else { return nil }
    let words = tasks.counts.words.filter { $0.state != .completed }
    let waiting = tasks.places.filter { [.suspended, .enqueued].contains($0.state) }
    let shown = waiting.prefix(Self.mostPlaces)
    var lines = tasks.deadlock.map { [$0] } ?? []
    lines += [words.map { "\($0.number) \($0.name)" }.joined(separator: ", ")]
    lines += shown.map {
      ($0.count == 1 ? "" : "\($0.count) ") + $0.sentence + ($0.place.map { " at \($0)" } ?? "")
    }
    if waiting.count > shown.count {
      let rest = waiting.dropFirst(shown.count)
      let number = rest.reduce(0) { $0 + $1.count }
      lines.append("\(number) more at \(count(rest.count, "other place"))")
    }
    // A name must not begin a line of its own on the page.
    self.lines = lines.map(ForeignText.line)
  }

  /// Of a running process. No thread is stopped.
  static func read(_ process: Int32) -> TasksAtEnd? {
    guard let target = try? TargetProcess.live(process, stopsThreads: false) else { return nil }
    let images = MappedImage.all(of: target)
    guard let record = try? InspectionRecord.find(in: target, images),
      let runtime = SwiftRuntime(target, images),
      var snapshot = try? EngineReader.read(target, record, taskClass: runtime.tasks.taskClass)
    else { return nil }
    snapshot.readTaskPlaces(runtime, Symbols(target, images, engine: record.image))
    var tasks = TasksAtEnd(TaskSummary(snapshot))
    for task in snapshot.tasks where task.name != nil {
      tasks?.names[task.id] = task.name
    }
    return tasks
  }

  /// One line for a terminal.
  var text: String { "\(Self.title): \(lines.joined(separator: "; "))" }
}

func count(_ number: Int, _ singular: String, _ plural: String? = nil) -> String {
  "\(number) \(number == 1 ? singular : plural ?? singular + "s")"
}

/// Phrases of the report.
struct Wording {
  private let snapshot: EngineSnapshot

  init(_ snapshot: EngineSnapshot) { self.snapshot = snapshot }

  func quoted(_ queue: UInt64) -> String {
    guard let info = snapshot.queues[queue] else { return "0x" + String(queue, radix: 16) }
    if info.kind == .main { return "the main queue" }
    if info.kind == .global { return "the global queue of class \(LevelNames.name(info.level))" }
    return info.label.isEmpty ? "0x" + String(queue, radix: 16) : "\"\(info.label)\""
  }

  private func queueName(_ queue: UInt64) -> String {
    let name = quoted(queue)
    return name.hasPrefix("the ") ? name : "queue " + name
  }

  func name(of thread: ThreadInfo) -> String {
    thread.role == .main ? "the main thread" : "thread \(thread.id)"
  }

  /// What a thread waits for.
  func object(of thread: ThreadInfo) -> String {
    switch thread.wait {
    case .turn(let queue, let named):
      queue == named ? queueName(queue) : "\(queueName(queue)), the target of \(quoted(named))"
    case .service(let queue, let named):
      queue == named ? queueName(queue) : "\(queueName(queue)), the target of \(quoted(named))"
    case .group(let group): groupText(group)
    case .semaphore: "a semaphore"
    case .workItem: "a work item"
    case .once(let runner): "a once body that thread \(runner) runs"
    case .loop: "the other threads of a parallel loop"
    case .engine: "another thread"
    case .mutex(_, let owner): "a mutex of thread \(owner)"
    case .call(let name, let detail): detail.map { "\(name) of \($0)" } ?? name
    case .idle: "work"
    case .running: "nothing"
    }
  }

  private func groupText(_ group: UInt64) -> String {
    guard let info = snapshot.groups[group] else { return "a group" }
    var parts: [String] = []
    if info.word.items > 0 { parts.append(count(info.word.items, "item")) }
    if info.word.entered > 0 { parts.append("\(count(info.word.entered, "enter")) without leave") }
    return parts.isEmpty ? "a group" : "a group with \(parts.joined(separator: " and "))"
  }

  /// What a thread does: a predicate.
  func activity(of thread: ThreadInfo) -> String {
    let time = thread.blockedFor.map { " for \(Self.time($0))" } ?? ""
    switch thread.wait {
    case .running: return "is running"
    case .idle: return "waits for work"
    case .turn, .service: return "waits in sync\(time) for \(object(of: thread))"
    case .call(let name, let detail): return detail.map { "is in \(name) of \($0)" } ?? "is in \(name)"
    case .group, .semaphore, .workItem, .once, .loop, .engine, .mutex:
      return "waits\(time) for \(object(of: thread))"
    }
  }

  /// Where in the program a thread is: the innermost function of the program's.
  func place(_ thread: ThreadInfo) -> String? {
    let clients = thread.stack.filter { $0.origin == .client && !$0.isThunk }
    guard let first = clients.first(where: { $0.line != nil }) ?? clients.first else { return nil }
    return Self.place(first)
  }

  /// The function of the item that a thread runs, if it is not the innermost one.
  func item(_ thread: ThreadInfo) -> String? {
    let stack = thread.stack.filter { $0.origin != .system && !$0.isThunk }
    guard let innermost = stack.firstIndex(where: { $0.origin == .client }) else { return nil }
    let end = stack[innermost...].firstIndex { $0.origin == .engine } ?? stack.count
    let outermost = stack[innermost..<end].last!
    return end - innermost > 1 && end < stack.count ? Self.place(outermost) : nil
  }

  static func place(_ entry: StackEntry) -> String {
    guard let file = entry.file, let line = entry.line else { return entry.function }
    return "\(entry.function)  \(FilePath.lastPart(of: file)):\(line)"
  }

  /// Threads that do the same at the same place, the most first.
  func grouped(_ threads: [ThreadInfo]) -> [(text: String, place: String?, count: Int)] {
    var groups: [String: (String, String?, Int)] = [:]
    for thread in threads {
      let text: String
      switch thread.wait {
      case .running: text = "running"
      case .call: text = "in \(object(of: thread))"
      default: text = "waiting for \(object(of: thread))"
      }
      let place = place(thread)
      groups["\(text) \(place ?? "")", default: (text, place, 0)].2 += 1
    }
    return groups.values.sorted { $0.2 > $1.2 }.map { (text: $0.0, place: $0.1, count: $0.2) }
  }

  static func time(_ nanoseconds: UInt64) -> String {
    let milliseconds = nanoseconds / 1_000_000
    switch milliseconds {
    case ..<1000: return "\(milliseconds) ms"
    case ..<60_000: return "\(milliseconds / 1000).\(milliseconds % 1000 / 100) s"
    case ..<3_600_000: return "\(milliseconds / 60_000) min \(milliseconds % 60_000 / 1000) s"
    default: return "\(milliseconds / 3_600_000) h \(milliseconds % 3_600_000 / 60_000) min"
    }
  }
}

/// The report for people: 80 columns where names allow it.
struct ReportText {
  private let report: Report
  private let words: Wording
  private let showsAll: Bool
  private let showsTasks: Bool
  private let isColoured: Bool
  private var lines: [String] = []
  /// The codes of the terminal for the beginnings of some lines, and their numbers of characters.
  private var styles: [Int: (code: String, length: Int)] = [:]

  private static let width = 80
  /// Rows of a section that are shown without `--all`.
  private static let most = 20

  static func text(_ report: Report, showsAll: Bool, showsTasks: Bool = false, isColoured: Bool) -> String {
    var text = ReportText(report, showsAll, showsTasks, isColoured)
    text.writeAll()
    return text.lines.enumerated().map { text.styled($0.element, $0.offset) }.joined(separator: "\n")
  }

  private init(_ report: Report, _ showsAll: Bool, _ showsTasks: Bool, _ isColoured: Bool) {
    self.report = report
    self.showsAll = showsAll
    self.showsTasks = showsTasks
    self.isColoured = isColoured
    words = Wording(report.snapshot)
  }

  private var snapshot: EngineSnapshot { report.snapshot }

  private mutating func writeAll() {
    writeVerdicts()
    writeProcess()
    if snapshot.isStarted {
      writePool()
      writeQueues()
    }
    writeThreads()
    writeTasks()
    if snapshot.isStarted {
      writeWaits()
      writeEvents()
    }
  }

  // MARK: Words

  private func styled(_ line: String, _ index: Int) -> String {
    let line = ForeignText.line(line)
    guard isColoured, let style = styles[index] else { return line }
    return "\u{1B}[\(style.code)m\(line.prefix(style.length))\u{1B}[0m\(line.dropFirst(style.length))"
  }

  private func pad(_ text: String, _ width: Int, right: Bool = false) -> String {
    let missing = width - text.count
    guard missing > 0 else { return text }
    let spaces = String(repeating: " ", count: missing)
    return right ? spaces + text : text + spaces
  }

  private func cut(_ text: String, _ width: Int) -> String {
    text.count <= width ? text : text.prefix(width - 1) + "…"
  }

  private mutating func heading(_ title: String, _ summary: String) {
    lines += ["", pad(title, 10) + summary]
    styles[lines.count - 1] = ("1", 10)
  }

  /// Breaks a line at spaces; further lines begin with `indent` spaces.
  static func wrap(_ text: String, indent: Int) -> [String] {
    var wrapped: [String] = []
    var line = ""
    for word in text.split(separator: " ") {
      if !line.isEmpty && line.count + 1 + word.count > width {
        wrapped.append(line)
        line = String(repeating: " ", count: indent) + word
      } else {
        line += (line.isEmpty ? "" : " ") + word
      }
    }
    return wrapped + [line]
  }

  // MARK: Sections

  private mutating func writeVerdicts() {
    let shown = report.verdicts.prefix(showsAll ? .max : 8)
    for verdict in shown {
      let text = verdict.summary.prefix(1).uppercased() + verdict.summary.dropFirst()
      for line in Self.wrap(text, indent: 2) {
        styles[lines.count] = (verdict.kind == .nothing ? "1" : "1;31", line.count)
        lines.append(line)
      }
      for detail in verdict.details {
        let row = Self.wrap("- " + detail.text, indent: 2)
        lines += row.map { "  " + $0 }
        if let place = detail.place { lines.append("      at " + place) }
      }
    }
    let hidden = report.verdicts.count - shown.count
    if hidden > 0 { lines.append("… and \(hidden) more like these; --all shows them") }
  }

  private mutating func writeProcess() {
    let process = snapshot.process
    let state: String
    if process.core != nil {
      state = process.signal.map { "core dump after signal \($0)" } ?? "core dump"
    } else if process.isStopped {
      state = "stopped"
    } else {
      state = "live"
    }
    heading("PROCESS", "\(process.id)  \(process.name)  \(count(process.threads.count, "thread")), \(state)")
    if let own = process.threads.first(where: { $0.id != $0.idHere }) {
      lines.append(
        pad("", 10) + "Its threads are named as in its own namespace: \(own.id) is \(own.idHere) here.")
    }
    lines.append(pad("", 10) + "Concourse\(report.version.map { " " + $0 } ?? "") is in \(report.library)")
  }

  private mutating func writePool() {
    let pool = snapshot
    guard pool.cap > 0 else { return heading("POOL", "has no threads yet") }
    heading(
      "POOL",
      "\(pool.width) active at once in each band, \(pool.cap) threads at most, \(pool.poolThreads) now")
    lines.append("  " + pad("band", 14) + columns(["active", "blocked", "parked", "threads", "waiting"]))
    for band in pool.bands where band.counts.threads > 0 || band.waiting > 0 {
      let counts = band.counts
      let blocked = max(0, counts.threads - counts.active - counts.parked)
      let active =
        band.activeLimit == pool.width ? "\(counts.active)" : "\(counts.active)/\(band.activeLimit)"
      lines.append(
        "  " + pad(band.name, 14)
          + columns([active, "\(blocked)", "\(counts.parked)", "\(counts.threads)", "\(band.waiting)"]))
      if band.waiting > 0 && counts.active >= band.activeLimit {
        lines.append("    entries wait because all processors that the pool may use are busy")
      } else if band.waiting > 0 && pool.poolThreads >= pool.cap {
        lines.append("    entries wait because the pool has its limit of threads (CONCOURSE_MAX_THREADS)")
      }
    }
  }

  private func columns(_ numbers: [String]) -> String { numbers.map { pad($0, 9, right: true) }.joined() }

  private mutating func writeQueues() {
    let busy = report.busyQueues
    heading("QUEUES", "\(busy.count) busy of \(busy.count + report.idleQueues.count)")
    let shown = showsAll ? busy + report.idleQueues : Array(busy.prefix(Self.most))
    guard !shown.isEmpty else { return }
    lines.append("  " + pad("label", 30) + pad("kind", 11) + pad("items", 7, right: true) + "  " + "state")
    for queue in shown {
      let label = queue.label.isEmpty ? "0x" + String(queue.address, radix: 16) : queue.label
      let items = queue.items + queue.heldBack
      var line = "  " + pad(cut(label, 29), 30) + pad(queue.kind.name, 11) + pad("\(items)", 7, right: true)
      line += "  " + queue.state
      lines.append(line)
      var more: [String] = []
      if let target = snapshot.queues[queue.target], target.kind != .global {
        more.append("target \(words.quoted(target.address))")
      }
      if queue.level > 0 && queue.kind != .main { more.append(LevelNames.name(queue.level)) }
      if let width = queue.width { more.append("width \(width)") }
      if !queue.waiters.isEmpty {
        more.append("waiting in sync: \(queue.waiters.prefix(8).map(String.init).joined(separator: ", "))")
      }
      if let time = snapshot.heldForAtLeast(queue) { more.append("held for at least \(Wording.time(time))") }
      if let holder = queue.holders.first.flatMap({ snapshot.thread($0) }), let time = holder.blockedFor {
        more.append("its thread has slept for \(Wording.time(time))")
      }
      if !more.isEmpty { lines += Self.wrap(more.joined(separator: ", "), indent: 0).map { "    " + $0 } }
    }
    if shown.count < busy.count { lines.append("  … and \(busy.count - shown.count) more; --all shows them") }
  }

  private mutating func writeThreads() {
    let busy = report.busyThreads
    let blocked = busy.filter(\.isBlocked).count
    heading(
      "THREADS", "\(blocked) blocked, \(busy.count - blocked) running an item, of \(snapshot.threads.count)")
    // Many threads that do the same are one row.
    var rows: [[ThreadInfo]] = []
    var places: [String: Int] = [:]
    for thread in busy {
      let key =
        busy.count > Self.most ? "\(words.object(of: thread)) \(words.place(thread) ?? "")" : "\(thread.id)"
      if let place = places[key] {
        rows[place].append(thread)
      } else {
        places[key] = rows.count
        rows.append([thread])
      }
    }
    let shown = showsAll ? rows : Array(rows.prefix(Self.most))
    for row in shown {
      let thread = row[0]
      var line = "\(thread.id)"
      if row.count > 1 { line += " and \(row.count - 1) more" }
      line += " (\(roleName(thread)))\(row.count > 1 ? ", each" : "") \(words.activity(of: thread))"
      if thread.hasTimeout { line += ", with a time-out" }
      lines += Self.wrap(line, indent: 0).enumerated().map { ($0.offset == 0 ? "  " : "    ") + $0.element }
      if let frame = thread.frames.first {
        let task = thread.task.map { ", " + $0.name(nil) } ?? ""
        let item = words.item(thread).map { ": " + $0 } ?? ""
        lines.append("    in an item of \(words.quoted(frame.queue))\(task)\(item)")
      } else if let task = thread.task {
        lines.append("    in \(task.name(nil))")
      }
      if let place = words.place(thread) { lines.append("    at \(place)") }
      if showsAll { writeStack(thread.stack) }
    }
    let hidden = rows.dropFirst(shown.count).reduce(0) { $0 + $1.count }
    if hidden > 0 { lines.append("  … and \(hidden) more; --all shows them") }
  }

  /// The frames of the engine between two of others are one line.
  private mutating func writeStack(_ stack: [StackEntry]) {
    var rest = stack[...]
    while let entry = rest.first {
      let engine = rest.prefix { $0.origin == .engine }
      lines.append(
        "       " + (engine.count > 1 ? "\(engine.count) frames of Concourse" : Wording.place(entry)))
      rest = rest.dropFirst(max(1, engine.count))
    }
  }

  private mutating func writeTasks() {
    if let problem = snapshot.tasksProblem { heading("TASKS", problem) }
    guard !snapshot.tasks.isEmpty else { return }
    heading("TASKS", TaskText.summary(of: snapshot.tasks))
    lines += TaskText(snapshot, showsEach: showsTasks, showsAll: showsAll).lines
  }

  private func roleName(_ thread: ThreadInfo) -> String {
    switch thread.role {
    case .main: "main thread"
    case .worker(let band): band
    case .monitor, .events, .other: thread.thread.name ?? "thread"
    }
  }

  private mutating func writeWaits() {
    let cyclic = Set(report.graph.cycles.flatMap { $0 })
    let paths = snapshot.threads.map { WaitGraph.Node.thread($0.id) }.filter {
      !cyclic.contains($0) && !(report.graph.edges[$0] ?? []).isEmpty
    }
    let count = report.graph.cycles.count + paths.count
    guard count > 0 else { return }
    let most = showsAll ? count : Self.most
    var rows = report.graph.cycles.prefix(most).map { cycle in
      "* " + (cycle + cycle.prefix(1)).map(name).joined(separator: " → ")
    }
    rows += paths.prefix(most - rows.count).map { "  " + path(from: $0, to: cyclic) }
    heading("WAITS", cyclic.isEmpty ? "who waits for whom" : "who waits for whom; * is a cycle")
    for row in rows {
      let wrapped = Self.wrap(String(row.dropFirst(2)), indent: 2)
      lines += [row.prefix(2) + wrapped[0]] + wrapped.dropFirst().map { "  " + $0 }
    }
    if count > rows.count { lines.append("  … and \(count - rows.count) more; --all shows them") }
  }

  /// The chain of waits that begins at `start`, up to a thread or queue of a cycle. At most 64 names.
  private func path(from start: WaitGraph.Node, to cyclic: Set<WaitGraph.Node>) -> String {
    var (node, path, seen) = (start, [name(start)], Set([start]))
    while let next = report.graph.edges[node]?.first {
      guard path.count < 64 else { return path.joined(separator: " → ") + " → …" }
      path.append(name(next))
      guard !cyclic.contains(next), seen.insert(next).inserted else { break }
      node = next
    }
    return path.joined(separator: " → ")
  }

  private func name(_ node: WaitGraph.Node) -> String {
    switch node {
    case .thread(let id): "\(id)"
    case .queue(let queue): words.quoted(queue)
    }
  }

  private mutating func writeEvents() {
    let sources = snapshot.sources.filter { showsAll || ($0.isActive && !$0.isCancelled) }
    if !sources.isEmpty {
      heading("SOURCES", "\(sources.count)")
      for source in sources.prefix(showsAll ? .max : Self.most) {
        var parts = [source.kind]
        if ["read", "write", "fileSystemObject"].contains(source.kind) {
          parts[0] += " of descriptor \(source.handle)"
        }
        if source.kind == "signal" || source.kind == "process" { parts[0] += " \(source.handle)" }
        if snapshot.queues[source.queue]?.kind != .global { parts.append("on \(words.quoted(source.queue))") }
        if let due = source.dueIn { parts.append(Self.due(due)) }
        if source.pending > 0 || source.isVisiting { parts.append("an event waits for its handler") }
        if source.handlerThread != 0 { parts.append("thread \(source.handlerThread) runs its handler") }
        if source.suspensions > 0 { parts.append("suspended") }
        if source.isCancelled { parts.append("cancelled") }
        if !source.isActive { parts.append("inactive") }
        lines += Self.wrap(parts.joined(separator: ", "), indent: 2).map { "  " + $0 }
      }
    }
    if let timers = snapshot.timers {
      heading("TIMERS", "\(timers.count) set\(timers.nextIn.map { ", the next is \(Self.due($0))" } ?? "")")
    }
    let channels = snapshot.channels.filter { $0.channels > 0 || $0.unfinished > 0 }
    if !channels.isEmpty {
      heading("CHANNELS", count(channels.count, "descriptor"))
      for channel in channels {
        lines.append(
          "  \(count(channel.channels, "open channel")), \(count(channel.unfinished, "operation")) not finished"
        )
      }
    }
  }

  private static func due(_ nanoseconds: Int64) -> String {
    let time = Wording.time(nanoseconds.magnitude)
    return nanoseconds < 0 ? "overdue by \(time)" : "due in \(time)"
  }
}

import ConcourseRecording

/// A frame for programs: one object on one line. Times are in nanoseconds.
enum TopJSON {
  static func line(_ frame: TopFrame, _ rows: [TopFrame.Queue]) -> String {
    let interval = frame.interval
    return JSONValue.object([
      ("format", .int(1)), ("time", .int(frame.wall)),
      ("interval", .int(interval.nanoseconds)),
      ("process", .object([("id", .int(frame.process)), ("name", .string(frame.program))])),
      (
        "pool",
        frame.pool.map {
          .object([
            ("width", .int($0.width)), ("threadLimit", .int($0.limit)), ("threads", .int($0.threads)),
            ("active", .int($0.active)), ("blocked", .int($0.blocked)), ("parked", .int($0.parked)),
            ("waitingEntries", .int($0.waiting)),
          ])
        } ?? .null
      ),
      (
        "items",
        .object([
          ("submitted", .int(frame.submitted)), ("started", .int(frame.started)),
          ("running", .int(interval.running)),
        ])
      ),
      (
        "threads",
        .object([
          ("made", .int(interval.made)), ("parked", .int(interval.parked)), ("woken", .int(interval.woken)),
        ])
      ),
      ("lostEvents", .int(interval.lost)), ("pauses", .int(interval.pauses)),
      ("alarm", .optional(frame.alarm)),
      ("queues", .array(rows.map { queue($0, interval) })), ("blocked", .array(frame.blocked.map(blocked))),
      (
        "events",
        .array(
          frame.events.map {
            .object([
              ("name", .string($0.name)), ("count", .int($0.count)),
              ("rate", .number(interval.rate($0.count))), ("detail", .string($0.detail)),
            ])
          })
      ),
      ("taskCounts", frame.tasks.map(counts) ?? .null),
      (
        "taskPlaces",
        .array(
          (frame.tasks?.places ?? []).map { ReportJSON.place($0.place, $0.count, $0.state, $0.activity) })
      ),
      ("tasksProblem", .optional(frame.tasks?.problem)),
      ("tasksAge", frame.tasks.map { .int($0.age) } ?? .null),
    ]).line
  }

  private static func counts(_ tasks: TaskSummary) -> JSONValue {
    let states: [TaskInfo.State] = [.running, .enqueued, .suspended, .created, .completed]
    return .object(states.map { ($0.rawValue, .int(tasks.counts[$0])) })
  }

  private static func queue(_ queue: TopFrame.Queue, _ interval: EventInterval) -> JSONValue {
    let activity = queue.activity
    return .object([
      ("id", .address(queue.id)), ("label", .string(queue.label)), ("kind", .string(queue.kind)),
      ("rate", .number(interval.rate(activity.started))), ("submitted", .int(activity.submitted)),
      ("started", .int(activity.started)), ("ended", .int(activity.ended)),
      ("depth", queue.depth.map { .int($0) } ?? .null), ("busy", .int(activity.busy)),
      ("wait", times(activity.wait)), ("run", times(activity.run)), ("syncWait", times(activity.syncWait)),
      ("state", .string(queue.state)),
    ])
  }

  private static func times(_ histogram: DurationHistogram) -> JSONValue {
    func number(_ time: UInt64?) -> JSONValue { time.map { .int($0) } ?? .null }
    return .object([
      ("count", .int(histogram.count)), ("median", number(histogram.median)),
      ("p99", number(histogram.percentile(0.99))), ("longest", .int(histogram.longest)),
    ])
  }

  private static func blocked(_ row: TopFrame.Blocked) -> JSONValue {
    .object([
      ("threads", .array(row.threads.map { .int($0) })), ("role", .string(row.role)),
      ("what", .string(row.text)), ("item", .optional(row.item)),
      ("blockedFor", row.blockedFor.map { .int($0) } ?? .null),
    ])
  }
}

import ConcourseRecording

/// What a trace shows at a glance.
struct TraceVerdict {
  /// A title and a sentence.
  private(set) var lines: [(String, String)] = []

  init(_ recording: RecordedRun, _ timeline: Timeline) {
    let labels = recording.namesByQueue
    func label(_ queue: UInt64) -> String { recording.label(of: queue, at: timeline.start, labels) }
    let duration = max(timeline.end - timeline.start, 1)
    // Sums of damaged times may overflow.

    var busy: [UInt64: (time: UInt64, count: Int)] = [:]
    for item in timeline.items {
      let before = busy[item.queue] ?? (0, 0)
      busy[item.queue] = (before.time &+ (item.end - item.start), before.count + 1)
    }
    if let (queue, sum) = busy.max(by: { ($0.value.time, $0.key) < ($1.value.time, $1.key) }) {
      lines.append(
        (
          "Busiest queue",
          "\(label(queue)): \(sum.count) items in \(RecordingText.duration(sum.time)), "
            + "\(sum.time &* 100 / duration) % of the time"
        ))
    }

    var longest: (waited: UInt64, item: Timeline.Item)?
    for item in timeline.items {
      guard let submission = item.submission.map({ timeline.submissions[$0] }) else { continue }
      let waited = item.start - min(submission.time, item.start)
      if waited > longest?.waited ?? 0 { longest = (waited, item) }
    }
    if let longest {
      lines.append(
        (
          "Longest wait of an item",
          "\(RecordingText.duration(longest.waited)) on \(label(longest.item.queue))"
        ))
    }

    let syncs = timeline.waits.filter { $0.kind <= 2 }
    var contended: [UInt64: UInt64] = [:]
    for wait in syncs { contended[wait.object, default: 0] &+= wait.end - wait.start }
    if let (queue, time) = contended.max(by: { ($0.value, $0.key) < ($1.value, $1.key) }) {
      let count = syncs.filter { $0.object == queue }.count
      lines.append(
        (
          "Contended sync",
          "\(label(queue)): \(count) wait\(count == 1 ? "" : "s"), \(RecordingText.duration(time)) in all"
        ))
    }
    if let wait = timeline.waits.max(by: { $0.end - $0.start < $1.end - $1.start }) {
      lines.append(
        (
          "Longest sleep in a wait",
          "\(RecordingText.duration(wait.end - wait.start)) in \(RecordedRun.wait(wait.kind))"
            + (wait.kind <= 2 ? " on \(label(wait.object))" : "") + (wait.hasEnded ? "" : ", not ended")
        ))
    }

    var running: UInt64 = 0
    var most = 0
    for (place, level) in timeline.running.enumerated() {
      let end = place + 1 < timeline.running.count ? timeline.running[place + 1].time : timeline.end
      running &+= UInt64(max(level.value, 0)) &* (end - level.time)
      most = max(most, level.value)
    }
    let tenths = running &* 10 / duration
    lines.append(("Parallelism", "\(tenths / 10).\(tenths % 10) threads on average, \(most) at most"))
  }
}

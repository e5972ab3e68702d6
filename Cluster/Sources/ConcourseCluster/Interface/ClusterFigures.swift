internal import Synchronization

// Figures for Prometheus. A process counts what it has done itself; only `pending` is asked of the engine, and is the same
// for all processes.

/// What this process has done with the items of one queue.
final class QueueFigures: Sendable {
  struct Counts: Sendable {
    /// Submissions that have returned.
    var submitted = 0
    var started = 0
    /// Starts that have ended well, that have failed and are followed by another one, and items that were put aside.
    var (finished, failed, putAside) = (0, 0, 0)
    var running = 0
  }

  private let guarded = Mutex(Counts())
  var counts: Counts { guarded.withLock { $0 } }
  func change(_ body: (inout Counts) -> Void) { guarded.withLock { body(&$0) } }
}

extension Cluster {
  /// What this process has done with the queues that it uses, and how many items those have, as Prometheus reads it (text
  /// format 0.0.4). An endpoint of the program serves it; `Examples/Sources/metrics` shows one.
  ///
  /// - `concourse_cluster_submitted_total`: submissions of this process that have returned without an error.
  /// - `concourse_cluster_started_total`: starts of handlers here.
  /// - `concourse_cluster_ended_total`: with `outcome`: `finished`, `failed` (another start follows) or `put_aside`.
  /// - `concourse_cluster_running`: handlers that run here.
  /// - `concourse_cluster_pending`: items of the queue in the whole cluster. It is asked of the servers, and is missing for
  ///   a queue for which they do not answer within some seconds.
  public func prometheusText() async -> String {
    let pending = await withTaskGroup(of: (String, Int?).self, returning: [String: Int].self) { group in
      for (label, queue) in openQueues {
        group.addTask {
          // The other figures are there without it, and a missing one shows that there is no answer.
          (label, await Self.first(within: .seconds(2)) { try? await queue.value.pendingCount() })
        }
      }
      return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }
    return Self.text(figures.mapValues(\.counts), pending: pending)
  }

  /// What the body returns, or `nil` after that time; then the body is cancelled.
  private static func first(within time: Duration, _ body: @escaping @Sendable () async -> Int?) async -> Int?
  {
    await withTaskGroup(of: Int?.self) { group in
      group.addTask { await body() }
      group.addTask {
        try? await Task.sleep(for: time)
        return nil
      }
      defer { group.cancelAll() }
      return await group.next() ?? nil
    }
  }

  static func text(_ figures: [String: QueueFigures.Counts], pending: [String: Int]) -> String {
    let queues = figures.sorted { $0.key < $1.key }
    var text = ""
    func family(_ name: String, _ type: String, _ help: String, _ lines: [(labels: String, value: Int)]) {
      text += "# HELP concourse_cluster_\(name) \(help)\n# TYPE concourse_cluster_\(name) \(type)\n"
      for (labels, value) in lines { text += "concourse_cluster_\(name){\(labels)} \(value)\n" }
    }
    func queue(_ label: String) -> String { "queue=\"\(escaped(label))\"" }
    family(
      "submitted_total", "counter", "Submissions of this process that have returned.",
      queues.map { (queue($0.key), $0.value.submitted) })
    family(
      "started_total", "counter", "Starts of handlers in this process.",
      queues.map { (queue($0.key), $0.value.started) })
    family(
      "ended_total", "counter", "Ends of handlers in this process.",
      queues.flatMap { label, counts in
        [("finished", counts.finished), ("failed", counts.failed), ("put_aside", counts.putAside)].map {
          ("\(queue(label)),outcome=\"\($0)\"", $1)
        }
      })
    family(
      "running", "gauge", "Handlers that run in this process.",
      queues.map { (queue($0.key), $0.value.running) })
    family(
      "pending", "gauge", "Items in the whole cluster that are not finished.",
      pending.sorted { $0.key < $1.key }.map { (queue($0.key), $0.value) })
    return text
  }

  private static func escaped(_ label: String) -> String {
    // By scalars: a carriage return and a line feed are one character.
    label.unicodeScalars.reduce(into: "") { text, scalar in
      switch scalar {
      case "\\": text += "\\\\"
      case "\"": text += "\\\""
      case "\n": text += "\\n"
      default: text.unicodeScalars.append(scalar)
      }
    }
  }
}

import ExampleSupport

/// Durations in classes whose limits never change, as scrapers need them: each count includes those of shorter ones.
struct Histogram: Equatable {
  static let limits: [Duration] = [
    .microseconds(10), .microseconds(100), .milliseconds(1), .milliseconds(10), .milliseconds(100),
    .seconds(1),
    .seconds(10),
  ]

  private(set) var counts = [Int](repeating: 0, count: limits.count)
  private(set) var count = 0
  /// In seconds.
  private(set) var sum = 0.0

  mutating func add(_ durations: Inspection.Durations) {
    for (place, more) in durations.counts(upTo: Histogram.limits).enumerated() { counts[place] += more }
    count += durations.count
    sum += Histogram.seconds(durations.total)
  }

  static func seconds(_ duration: Duration) -> Double {
    let (seconds, attoseconds) = duration.components
    return Double(seconds) + Double(attoseconds) / 1e18
  }
}

/// Statistics, summed up since the start, as scrapers want them.
///
/// Queues with the same label are one series: labels name a purpose, and a scraper refuses two equal series. A program that
/// makes queues with ever new labels would fill the scraper's memory, so only so many have series of their own.
struct Totals {
  struct Queue: Equatable {
    var submitted = 0
    var started = 0
    var ended = 0
    /// In seconds.
    var busy = 0.0
    var wait = Histogram()
    var run = Histogram()
    var waiting = 0
    var running = 0
  }

  static let limit = 1000
  static let others = "(others)"
  static let unnamed = "(no label)"

  private(set) var queues: [String: Queue] = [:]
  private(set) var lost = 0
  private(set) var events = 0
  private var pool: Inspection.Pool?
  private var blockedThreads = 0

  mutating func add(_ interval: Inspection.Statistics) {
    for label in queues.keys { (queues[label]!.waiting, queues[label]!.running) = (0, 0) }
    for queue in interval.queues {
      var label = queue.queue.label.isEmpty ? Totals.unnamed : queue.queue.label
      if queues[label] == nil && queues.count >= Totals.limit { label = Totals.others }
      var total = queues[label] ?? Queue()
      total.submitted += queue.submitted
      total.started += queue.started
      total.ended += queue.ended
      total.busy += Histogram.seconds(queue.busy)
      total.wait.add(queue.wait)
      total.run.add(queue.run)
      total.waiting += queue.queue.waiting ?? 0
      total.running += queue.queue.running ?? 0
      queues[label] = total
    }
    lost += interval.lost
    events += interval.events
    pool = interval.pool
    blockedThreads = interval.blockedThreads.count
  }

  func text(_ format: Exposition.Format) -> String {
    var text = Exposition(format)
    let sorted = queues.sorted { $0.key < $1.key }

    func counter(_ name: String, unit: String? = nil, _ help: String, _ value: (Queue) -> Double) {
      text.family(name, .counter, unit: unit, help: help)
      for (label, queue) in sorted { text.sample(name + "_total", [("queue", label)], value(queue)) }
    }
    func gauge(_ name: String, _ help: String, _ value: (Queue) -> Int) {
      text.family(name, .gauge, help: help)
      for (label, queue) in sorted { text.sample(name, [("queue", label)], Double(value(queue))) }
    }
    func histogram(_ name: String, _ help: String, _ value: (Queue) -> Histogram) {
      text.family(name, .histogram, unit: "seconds", help: help)
      for (label, queue) in sorted { text.histogram(name, [("queue", label)], value(queue)) }
    }

    counter("concourse_queue_items_submitted", "Items submitted.") { Double($0.submitted) }
    counter("concourse_queue_items_started", "Items started.") { Double($0.started) }
    counter("concourse_queue_items_ended", "Items that have ended.") { Double($0.ended) }
    counter("concourse_queue_busy_seconds", unit: "seconds", "Time during which items ran.") { $0.busy }
    gauge("concourse_queue_items_waiting", "Items that wait to start.") { $0.waiting }
    gauge("concourse_queue_items_running", "Items that run.") { $0.running }
    histogram("concourse_queue_wait_seconds", "From the submission of an item to its start.") { $0.wait }
    histogram("concourse_queue_run_seconds", "From the start of an item to its end.") { $0.run }

    if let pool {
      text.family("concourse_pool_threads", .gauge, help: "Threads of the pool by what they do.")
      for band in pool.bands {
        for (state, count) in [("active", band.active), ("blocked", band.blocked), ("parked", band.parked)] {
          text.sample(
            "concourse_pool_threads", [("band", band.name), ("state", state)], Double(count))
        }
      }
      text.family("concourse_pool_width", .gauge, help: "Threads of each band that may run at once.")
      text.sample("concourse_pool_width", [], Double(pool.width))
      text.family("concourse_pool_threads_limit", .gauge, help: "Threads that all bands may have.")
      text.sample("concourse_pool_threads_limit", [], Double(pool.limit))
      text.family("concourse_blocked_threads", .gauge, help: "Threads that have long waited for a queue.")
      text.sample("concourse_blocked_threads", [], Double(blockedThreads))
    }
    text.family("concourse_source_events", .counter, help: "Events of timers and sources.")
    text.sample("concourse_source_events_total", [], Double(events))
    text.family("concourse_events_lost", .counter, help: "Events that were not counted.")
    text.sample("concourse_events_lost_total", [], Double(lost))
    text.end()
    return text.text
  }
}

public import ConcourseEvents
internal import ConcourseRecording

extension Inspection {
  /// What happened in one interval.
  public struct Statistics: Sendable {
    /// When the interval began.
    public var start: DispatchTime
    /// When it ended.
    public var end: DispatchTime
    /// The queues that had an item in the interval, or have one, those with the most items started first.
    public var queues: [QueueStatistics]
    /// The pool at the end of the interval.
    public var pool: Pool
    /// The threads that were blocked at its end.
    public var blockedThreads: [BlockedThread]
    /// The sum of the times during which threads ran items and did not wait.
    public var running: Duration
    /// How often a thread of the pool went to sleep for want of work, and was woken.
    public var parked: Int
    /// How often a parked thread was woken.
    public var woken: Int
    /// Threads that the pool has made.
    public var threadsMade: Int
    /// Events of timers, delayed submissions and sources.
    public var events: Int
    /// Events that were not counted: a thread made more than its ring holds before they were read, or there were more
    /// threads than rings. Counts are too low then, and items that had begun are forgotten.
    public var lost: Int

    /// The length of the interval.
    public var duration: Duration { .nanoseconds(end.uptimeNanoseconds - start.uptimeNanoseconds) }
  }

  /// What happened on a queue in one interval.
  public struct QueueStatistics: Sendable, Identifiable {
    /// The queue, with its depth at the end of the interval.
    public var queue: Queue
    /// Items submitted.
    public var submitted: Int
    /// Items started, calls of source handlers included, but not bodies of `sync`.
    public var started: Int
    /// Items that have ended.
    public var ended: Int
    /// From submission to start, for the items that started.
    public var wait: Durations
    /// From start to end, for the items that ended.
    public var run: Durations
    /// Of calls of `sync` that had to sleep until their turn.
    public var syncWait: Durations
    /// The sum of the times during which its items ran within the interval, those that have not ended included.
    public var busy: Duration

    /// The queue's `id`.
    public var id: UInt { queue.id }
  }

  /// How many durations there were of each size. Percentiles are off by 2 % at most.
  public struct Durations: Sendable, Equatable {
    var histogram: DurationHistogram

    /// How many there are.
    public var count: Int { histogram.count }
    /// Their sum.
    public var total: Duration { .nanoseconds(histogram.sum) }
    /// The longest; zero if there are none.
    public var longest: Duration { .nanoseconds(histogram.longest) }
    /// The duration that half of them do not exceed; nil if there are none.
    public var median: Duration? { percentile(0.5) }

    /// The duration that this share of them does not exceed. O(1): at most 2,000 classes are looked at.
    /// - Parameter share: From 0 to 1, such as 0.99. A smaller number counts as 0, a larger one as 1.
    /// - Returns: nil if there are none, or `share` is not a number.
    public func percentile(_ share: Double) -> Duration? {
      histogram.percentile(share).map { .nanoseconds($0) }
    }

    /// How many are at most as long as each limit, give or take 2 % of the limit.
    /// - Parameter limits: In ascending order.
    /// - Returns: A count for each limit, each with those before it.
    public func counts(upTo limits: [Duration]) -> [Int] {
      let counts = histogram.counts(upTo: limits.map(\.clampedNanoseconds))
      var sum = 0
      return counts.dropLast().map { count in
        sum += count
        return sum
      }
    }
  }
}

extension Inspection.Statistics {
  init(_ interval: EventInterval, _ names: [UInt64: RecordedName]) {
    var queues: [Inspection.QueueStatistics] = []
    queues.reserveCapacity(interval.queues.count)
    for (address, activity) in interval.queues {
      let name = names[address]
      var queue = Inspection.Queue(UInt(name?.queue ?? address), name)
      queue.waiting = activity.waiting
      queue.running = interval.open[address] ?? 0
      queues.append(
        Inspection.QueueStatistics(
          queue: queue, submitted: activity.submitted, started: activity.started, ended: activity.ended,
          wait: .init(histogram: activity.wait), run: .init(histogram: activity.run),
          syncWait: .init(histogram: activity.syncWait), busy: .nanoseconds(activity.busy)))
    }
    queues.sort { ($1.started, $0.id) < ($0.started, $1.id) }
    self.init(
      start: DispatchTime(uptimeNanoseconds: interval.start),
      end: DispatchTime(uptimeNanoseconds: interval.end),
      queues: queues, pool: .read(), blockedThreads: Inspection.BlockedThread.all(),
      running: .nanoseconds(interval.running), parked: interval.parked, woken: interval.woken,
      threadsMade: interval.made, events: interval.events.values.reduce(0, +),
      lost: Int(clamping: interval.lost))
  }
}

extension Duration {
  /// Zero if it is negative, the largest number if it is too long.
  package var clampedNanoseconds: UInt64 {
    let (seconds, attoseconds) = components
    if seconds < 0 || attoseconds < 0 { return 0 }
    let (product, overflows) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, overflowsToo) = product.addingReportingOverflow(UInt64(attoseconds) / 1_000_000_000)
    return overflows || overflowsToo ? .max : sum
  }
}

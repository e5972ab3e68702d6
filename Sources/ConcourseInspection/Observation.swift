public import ConcourseEvents

extension Inspection {
  /// Statistics that go to a handler until they are cancelled.
  ///
  /// Made by `observe`. Releasing the last reference cancels it, too.
  public final class Observation: Sendable {
    private let stream: StatisticsStream?

    fileprivate init(_ stream: StatisticsStream?) { self.stream = stream }

    deinit { stream?.cancel() }

    /// Whether there are statistics at all: false in a forked child, which records nothing, and if the system refused a
    /// thread or memory.
    public var isPossible: Bool { stream != nil }

    /// Stops the statistics. A handler that runs, or has been submitted, is not stopped. May be called repeatedly, from
    /// any thread, in the handler too. Matching C function: `concourse_statistics_end`.
    public func cancel() { stream?.cancel() }
  }

  /// Calls a handler with what happened on the queues, again and again.
  ///
  /// While at least one observation or sequence of statistics lives, the process records its items, and one thread reads
  /// the records. An item takes 30 to 50 ns longer, or up to 150 if there is no free processor for that thread. A tool may
  /// record the same process meanwhile.
  ///
  /// - Parameters:
  ///   - interval: The shortest time between two calls. The first comes after one interval. A call may be 50 ms late.
  ///     Nothing is buffered: while the handler runs, the next interval becomes longer, and has all that happened.
  ///   - queue: The queue on which the handler runs, as an item. Its own items are among those counted.
  ///   - handler: Called with one interval after the other.
  /// - Returns: What keeps the statistics going.
  ///
  /// Matching C functions: `concourse_statistics_begin`, `concourse_statistics_next`.
  public static func observe(
    every interval: DispatchTimeInterval, on queue: DispatchQueue,
    _ handler: @escaping @Sendable (Statistics) -> Void
  ) -> Observation {
    let stream = StatisticsStream.begin(every: interval.clampedNanoseconds)
    if let stream { deliver(stream, queue, handler) }
    return Observation(stream)
  }

  private static func deliver(
    _ stream: StatisticsStream, _ queue: DispatchQueue, _ handler: @escaping @Sendable (Statistics) -> Void
  ) {
    stream.next { statistics in
      guard let statistics else { return }
      queue.async {
        handler(statistics)
        deliver(stream, queue, handler)
      }
    }
  }
}

extension DispatchTimeInterval {
  /// Zero if it is negative.
  fileprivate var clampedNanoseconds: UInt64 {
    switch self {
    case .seconds(let count): Duration.seconds(count).clampedNanoseconds
    case .milliseconds(let count): Duration.milliseconds(count).clampedNanoseconds
    case .microseconds(let count): Duration.microseconds(count).clampedNanoseconds
    case .nanoseconds(let count): Duration.nanoseconds(count).clampedNanoseconds
    case .never: .max
    }
  }
}

public import ConcourseInspection

extension Inspection {
  /// What happens on the queues, interval by interval, as an asynchronous sequence. Made by `statistics(every:)`.
  ///
  /// **Back-pressure:** nothing is buffered. While the loop's body runs, the next interval becomes longer, and has all that
  /// happened.
  ///
  /// **Ownership:** recording begins with `makeAsyncIterator`, and each iterator has intervals of its own. It ends when
  /// the iterating task is cancelled and when the loop exits.
  public struct StatisticsSequence: AsyncSequence, Sendable {
    /// One interval.
    public typealias Element = Statistics

    fileprivate let interval: Duration

    /// Begins to record.
    public func makeAsyncIterator() -> Iterator { Iterator(interval) }

    /// Waits for the ends of intervals, one at a time.
    public struct Iterator: AsyncIteratorProtocol {
      /// Ends the stream when the last copy of the iterator is released.
      private final class Ownership: Sendable {
        let stream: StatisticsStream?
        init(_ stream: StatisticsStream?) { self.stream = stream }
        deinit { stream?.cancel() }
      }

      private let ownership: Ownership

      fileprivate init(_ interval: Duration) {
        ownership = Ownership(StatisticsStream.begin(every: interval.clampedNanoseconds))
      }

      /// The next interval; nil after the task was cancelled, and where there are no statistics: in a forked child, or if
      /// the system refused a thread or memory. Comes up to 50 ms late.
      public func next() async -> Statistics? {
        guard let stream = ownership.stream else { return nil }
        return await withTaskCancellationHandler {
          await withCheckedContinuation { continuation in
            if !stream.next({ continuation.resume(returning: $0) }) { continuation.resume(returning: nil) }
          }
        } onCancel: {
          stream.cancel()
        }
      }
    }
  }

  /// What happens on the queues: rates, depths, and times of waiting and running, interval by interval.
  ///
  /// ```swift
  /// for await statistics in Inspection.statistics(every: .seconds(1)) {
  ///   for queue in statistics.queues {
  ///     print(queue.queue.label, queue.started, queue.wait.percentile(0.99) ?? .zero)
  ///   }
  /// }
  /// ```
  ///
  /// While at least one sequence is iterated, or one observation lives, the process records its items, and one thread
  /// reads the records. An item takes 30 to 50 ns longer, or up to 150 if there is no free processor for that thread. A tool
  /// may record the same process meanwhile. Intervals that are too short for the reader, below about a millisecond,
  /// become longer.
  ///
  /// - Parameter interval: The shortest length of an interval.
  ///
  /// Matching C functions: `concourse_statistics_begin`, `concourse_statistics_next`, `concourse_statistics_end`.
  public static func statistics(every interval: Duration) -> StatisticsSequence {
    StatisticsSequence(interval: interval)
  }
}

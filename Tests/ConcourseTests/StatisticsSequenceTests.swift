import Concourse
import Testing

/// Statistics are of the whole process: one test at a time.
@Suite("Statistics as a sequence", .serialized, .timeLimit(.minutes(10)))
struct StatisticsSequenceTests {
  /// Whether the process records for statistics.
  private var isCounting: Bool { Inspection.snapshot().queues[0].waiting != nil }

  @Test("a loop sees what a queue does, and recording ends with it")
  func loop() async {
    let queue = DispatchQueue(label: "test.sequence.loop")
    let feeder = Task {
      while !Task.isCancelled {
        queue.async {}
        try await Task.sleep(for: .milliseconds(1))
      }
    }
    var ended = 0
    for await statistics in Inspection.statistics(every: .milliseconds(1)) {
      #expect(statistics.duration >= .milliseconds(1))
      #expect(isCounting)
      ended += statistics.queues.filter { $0.queue.label == "test.sequence.loop" }.reduce(0) { $0 + $1.ended }
      if ended >= 3 { break }
    }
    feeder.cancel()
    #expect(ended >= 3)
    #expect(!isCounting)
  }

  @Test("a task that waits for an interval goes on when it is cancelled, and its sequence ends")
  func cancelled() async {
    let task = Task {
      var count = 0
      for await _ in Inspection.statistics(every: .seconds(3600)) { count += 1 }
      return count
    }
    while !isCounting { await Task.yield() }
    task.cancel()
    #expect(await task.value == 0)
    #expect(!isCounting)
  }
}

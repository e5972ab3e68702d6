import Testing

@testable import ConcourseRecording
@testable import ConcourseTool

@Suite("The numbers of concourse top")
struct TopStatisticsTests {
  private func event(
    _ time: UInt64, _ kind: RecordedEvent.Kind, thread: UInt32 = 1, node: UInt64 = 0, object: UInt64 = 0xA0,
    function: UInt64 = 7
  ) -> RecordedEvent {
    RecordedEvent(time: time, thread: thread, kind: kind, node: node, object: object, function: function)
  }

  private func recording(_ events: [RecordedEvent], names: [RecordedName] = [], lost: UInt64 = 0)
    -> RecordedRun
  {
    RecordedRun(
      process: 1, start: 0, wall: 0, events: events, threads: [:], names: names, modules: [],
      overwritten: lost)
  }

  @Test("a recording's queues, items, waits and times")
  func sample() throws {
    let reader = try RecordingReader(BytesInMemory(RecordingBuilder.sample.bytes))
    reader.poll()
    let start = RecordingBuilder.firstUptime
    var statistics = EventStatistics(start: start)
    statistics.add(reader.take(), before: start + 1000)
    let interval = statistics.finish(at: start + 1000)
    let first = try #require(interval.queues[0xA0])
    #expect([first.submitted, first.started, first.ended] == [2, 1, 1])
    #expect(first.wait.median == 150)
    #expect(first.run.count == 1)
    #expect(first.run.longest == 250)
    #expect(first.busy == 250)
    #expect(first.functions[0x1010]?.count == 1)
    // Still running at the end.
    let second = try #require(interval.queues[0xB0])
    #expect([second.submitted, second.started, second.ended] == [1, 1, 0])
    #expect(second.busy == 450)
    // Not while it waits for the semaphore.
    #expect(interval.running == 250 - 100 + 450)
    #expect(statistics.names[0xA0]?.text == "queue \"a\"\n")
  }

  @Test("an item that is submitted, starts and ends in three intervals")
  func overIntervals() throws {
    var statistics = EventStatistics(start: 0)
    statistics.add(recording([event(10, .submitted, node: 5)]), before: 100)
    let first = try #require(statistics.finish(at: 100).queues[0xA0])
    #expect(first.submitted == 1 && first.waiting == 1)
    // It still waits.
    #expect(statistics.finish(at: 110).queues[0xA0]?.waiting == 1)
    statistics.add(recording([event(150, .started, thread: 2, node: 5)]), before: 200)
    var activity = try #require(statistics.finish(at: 200).queues[0xA0])
    #expect(activity.wait.longest == 140)
    #expect(activity.waiting == 0 && activity.unknownStarts == 0)
    #expect(activity.busy == 50)
    // Nothing new: it goes on.
    #expect(statistics.finish(at: 300).queues[0xA0]?.busy == 100)
    statistics.add(recording([event(320, .ended, thread: 2, node: 5)]), before: 400)
    let last = statistics.finish(at: 400)
    activity = try #require(last.queues[0xA0])
    #expect(activity.run.longest == 170)
    #expect(activity.busy == 20)
    #expect(last.running == 20)
  }

  @Test("a start that is read before its submission waits for the next part")
  func order() throws {
    var statistics = EventStatistics(start: 0)
    // The ring of the submitter was read before it submitted.
    statistics.add(recording([event(120, .started, thread: 2, node: 5)]), before: 100)
    statistics.add(recording([event(110, .submitted, node: 5), event(130, .ended, thread: 2)]), before: 200)
    let activity = try #require(statistics.finish(at: 200).queues[0xA0])
    #expect(activity.wait.longest == 10)
    #expect(activity.run.longest == 10)
  }

  @Test("after a loss no item runs for ever, and the loss is counted")
  func loss() throws {
    var statistics = EventStatistics(start: 0)
    statistics.add(recording([event(10, .started, node: 5)]), before: 100)
    _ = statistics.finish(at: 100)
    statistics.add(recording([event(150, .woken)], lost: 30), before: 200)
    var interval = statistics.finish(at: 200)
    #expect(interval.lost == 30)
    #expect(interval.queues.isEmpty)
    #expect(interval.running == 0)
    statistics.add(recording([], lost: 30), before: 300)
    interval = statistics.finish(at: 300)
    #expect(interval.lost == 0)
  }

  @Test("after a pause of the recording no item of before it runs, and the pause is counted")
  func pause() throws {
    var statistics = EventStatistics(start: 0)
    var recording = recording([
      event(10, .started, node: 5), event(20, .submitted, node: 6), event(90, .started, thread: 2, node: 7),
    ])
    recording.pauses = [80]
    statistics.add(recording, before: 100)
    var interval = statistics.finish(at: 100)
    #expect(interval.pauses == 1)
    #expect(interval.open == [0xA0: 1])
    #expect(interval.queues[0xA0]?.waiting == 0)
    recording = self.recording([])
    recording.pauses = [150]
    statistics.add(recording, before: 120)
    #expect(statistics.finish(at: 120).open == [0xA0: 1])
    statistics.add(self.recording([]), before: 200)
    interval = statistics.finish(at: 200)
    #expect(interval.pauses == 0)
    #expect(interval.open.isEmpty)
  }

  @Test("a start without a submission, and a node that is used again, leave nothing waiting")
  func unknown() throws {
    var statistics = EventStatistics(start: 0)
    statistics.add(
      recording([
        event(10, .started, node: 5), event(20, .ended, node: 5), event(30, .submitted, node: 6),
        event(40, .submitted, node: 6, object: 0xB0), event(50, .started, thread: 2, node: 6, object: 0xB0),
      ]), before: 100)
    let interval = statistics.finish(at: 100)
    #expect(interval.queues[0xA0]?.unknownStarts == 1)
    #expect(interval.queues[0xA0]?.waiting == 0)
    #expect(interval.queues[0xB0]?.waiting == 0)
    #expect(interval.queues[0xB0]?.wait.longest == 10)
  }

  @Test("the objects of one global queue are one row, and timers are counted")
  func globals() {
    var statistics = EventStatistics(start: 0)
    let names = [UInt64(1), 2].map { RecordedName(queue: $0, time: 0, target: 0, kind: 0, text: "global") }
    statistics.add(
      recording(
        [
          event(10, .submitted, node: 5, object: 1), event(20, .started, node: 5, object: 2),
          event(25, .timer, object: 9), event(30, .ended, object: 2), event(35, .timer, object: 9),
        ], names: names), before: 100)
    let interval = statistics.finish(at: 100)
    #expect(interval.queues.count == 1)
    #expect(interval.queues.values.first?.wait.longest == 10)
    #expect(interval.events == [9: 2])
  }

  @Test("percentiles are off by two in a hundred at most, also of very long times")
  func percentiles() throws {
    var histogram = DurationHistogram()
    #expect(histogram.median == nil)
    for value in 1...100_000 as ClosedRange<UInt64> { histogram.add(value * 10) }
    for (share, exact) in [(0.01, 10_000.0), (0.5, 500_000), (0.99, 990_000)] {
      let found = Double(try #require(histogram.percentile(share)))
      #expect(abs(found / exact - 1) < 0.02, "\(share): \(found)")
    }
    #expect(histogram.counts(upTo: [1000, 100_000]).reduce(0, +) == 100_000)
    #expect(histogram.mean == 500_005)
    var long = DurationHistogram()
    long.add(.max)
    long.add(0)
    #expect(long.percentile(1) == .max)
    #expect(long.percentile(0) == 0)
  }

  @Test("two queues that have the same memory in one interval, one after the other, are two")
  func sameMemory() throws {
    func name(_ text: String, _ time: UInt64) -> RecordedName {
      RecordedName(queue: 0xA0, time: time, target: 0, kind: 1, text: text)
    }
    func items(_ times: [UInt64]) -> [RecordedEvent] {
      times.flatMap {
        [event($0, .submitted, node: $0), event($0 + 1, .started, node: $0), event($0 + 2, .ended)]
      }
    }
    var statistics = EventStatistics(start: 0)
    statistics.add(
      recording(items([10, 20, 50]), names: [name("first", 9), name("second", 49)]), before: 100)
    let interval = statistics.finish(at: 100)
    let counts = interval.queues.map { (statistics.names[$0.key]?.text ?? "", $0.value.ended) }
    #expect(Dictionary(uniqueKeysWithValues: counts) == ["first": 2, "second": 1])
    #expect(interval.queues.keys.allSatisfy { statistics.names[$0]?.queue == 0xA0 })
    statistics.add(recording(items([110])), before: 200)
    #expect(statistics.finish(at: 200).queues.keys.map { $0 } == [0xA0] && statistics.names.count == 1)
  }

  @Test("a submission before a gap does not wait for ever: its start may be missing")
  func gap() {
    var statistics = EventStatistics(start: 0)
    var gap = recording([event(10, .submitted, node: 5), event(50, .source, thread: 2)], lost: 100)
    gap.gaps = [RecordedGap(time: 50, thread: 1)]
    statistics.add(gap, before: 100)
    #expect(statistics.finish(at: 100).queues[0xA0]?.waiting == 0)
  }

  @Test("jobs count by the name of their tasks and their priority, and as one without a name")
  func jobs() {
    var statistics = EventStatistics(start: 0)
    let tasks: [(UInt64, UInt8)] = [(1, 25), (2, 25), (3, 9), (4, 25), (5, 25)]
    var events: [RecordedEvent] = []
    for (place, (task, priority)) in tasks.enumerated() {
      let code = RecordedJob(priority: priority, task: task).code
      let time = UInt64(place) * 10
      // The priority has risen since.
      let submitted = RecordedJob(priority: 5, task: task).code
      events.append(event(time, .submitted, node: task, function: submitted))
      events.append(event(time + 1, .started, node: task, function: code))
      events.append(event(time + 2, .ended, function: code))
    }
    var recording = recording(events)
    recording.tasks = [1: "fetch", 2: "fetch", 3: "fetch"]
    statistics.add(recording, before: 100)
    let activity = statistics.finish(at: 100).queues[0xA0]
    #expect(activity?.unknownStarts == 0)
    let codes = [(25, 1), (9, 1), (25, 0)].map { RecordedJob(priority: $0.0, task: $0.1).code }
    #expect(activity?.functions.mapValues(\.count) == [codes[0]: 2, codes[1]: 1, codes[2]: 2])
    let names = FunctionNames(recording)
    #expect(
      codes.map(names.name(of:)) == [
        "task \"fetch\" (high)", "task \"fetch\" (background)", "Swift job (high)",
      ])
    #expect(names.name(of: RecordedJob(priority: 33, task: 4).code) == "task 4 (user interactive)")
    #expect(names.name(of: RecordedJob(priority: 200, task: 4).code) == "task 4 (priority 200)")
  }

  @Test("percentiles of any number, and limits that durations reach exactly")
  func histogramLimits() {
    var histogram = DurationHistogram()
    for duration: UInt64 in [10, 20, 30] { histogram.add(duration) }
    #expect(histogram.percentile(.nan) == nil)
    #expect([-1, 0, -.infinity].map { histogram.percentile($0) } == [10, 10, 10])
    #expect([1, 2, 1e300, .infinity].map { histogram.percentile($0) } == [30, 30, 30, 30])
    #expect(histogram.counts(upTo: [9, 10, 20, 29]) == [0, 1, 1, 0, 1])
  }
}

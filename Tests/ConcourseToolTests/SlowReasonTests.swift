import Testing

@testable import ConcourseRecording
@testable import ConcourseTool

@Suite("Why a recording took so long")
struct SlowReasonTests {
  private static let millisecond: UInt64 = 1_000_000

  private func event(
    _ time: UInt64, _ thread: UInt32, _ kind: RecordedEvent.Kind, node: UInt64 = 0, queue: UInt64 = 0xA0
  ) -> RecordedEvent {
    RecordedEvent(
      time: time * Self.millisecond, thread: thread, kind: kind, node: node, object: queue, function: 0x10)
  }

  /// A serial queue "db" and a global queue.
  private func reason(_ events: [RecordedEvent], until end: UInt64 = 0) -> (SlowReason, CriticalPath) {
    let recording = RecordedRun(
      process: 1, start: 0, wall: 0, events: events, threads: [1: "main"],
      names: [
        RecordedName(queue: 0xA0, time: 0, target: 0, kind: 1, text: "db"),
        RecordedName(queue: 0xB0, time: 0, target: 0, kind: 0, text: "default"),
      ], modules: [], end: end * Self.millisecond)
    let timeline = Timeline(recording)
    return (
      SlowReason(recording, timeline) { "f\($0)" }, CriticalPath(timeline, serial: [0xA0])
    )
  }

  @Test("a serial queue: its items run one after the other, and the others wait")
  func serialQueue() {
    var events = (0..<10).map { event(0, 1, .submitted, node: $0 + 1) }
    for item: UInt64 in 0..<10 {
      events.append(event(item * 10, 2, .started, node: item + 1))
      events.append(event(item * 10 + 10, 2, .ended))
    }
    let (reason, path) = reason(events)
    #expect(path.steps.map(\.cause) == (0..<10).map { .run(item: $0) })
    #expect(path.steps.allSatisfy { $0.duration == 10 * Self.millisecond })
    #expect(
      reason.sentence
        == "The last 100 ms hang on queue \"db\": 10 items of it ran one after the other; while they ran, 9 items "
        + "waited 450 ms in all.")
    #expect(
      reason.contention == "\"db\": 9 items waited 450 ms in all; held by f16 (10 times, 100 ms)")
    #expect(reason.blocked == nil)
  }

  @Test("a semaphore that nothing signals")
  func semaphore() {
    let events = [
      event(0, 1, .submitted, node: 1), event(1, 2, .started, node: 1),
      event(2, 2, .waitBegan, node: 4, queue: 0xC0),
    ]
    let (reason, path) = reason(events, until: 100)
    #expect(path.steps.map(\.cause) == [.queued(item: 0), .run(item: 0), .waited(wait: 0)])
    #expect(
      reason.sentence
        == "The last 98.0 ms hang on a wait (semaphore): f16 on queue \"db\" waited there; it had not ended.")
    #expect(reason.blocked == "semaphore in f16 on queue \"db\" (once, 98.0 ms)")
  }

  @Test("a wait for a group leads to the item that ended last, and on to who submitted it")
  func group() {
    let events = [
      event(0, 1, .submitted, node: 1, queue: 0xB0), event(1, 1, .waitBegan, node: 3, queue: 0xC0),
      event(1, 2, .started, node: 1, queue: 0xB0), event(50, 2, .ended, queue: 0xB0),
      event(51, 1, .waitEnded, node: 3, queue: 0xC0),
    ]
    let (reason, path) = reason(events)
    #expect(path.steps.map(\.cause) == [.queued(item: 0), .run(item: 0), .waited(wait: 0)])
    #expect(reason.sentence == "The last 49.0 ms hang on 1 item that ran: f16 on queue \"default\".")
  }

  @Test("all processors busy: items are ready, and wait for a thread")
  func busy() {
    var events = (0..<20).map { event(0, 1, .submitted, node: $0 + 1, queue: 0xB0) }
    for item: UInt64 in 0..<20 {
      events.append(event(item / 2 * 10, UInt32(2 + item % 2), .started, node: item + 1, queue: 0xB0))
      events.append(event(item / 2 * 10 + 10, UInt32(2 + item % 2), .ended, queue: 0xB0))
    }
    events.sort { $0.time < $1.time || $0.time == $1.time && $0.kind == .ended && $1.kind == .started }
    #expect(
      reason(events).0.sentence
        == "90.0 ms of 100 ms hang on free threads: 18 items waited 900 ms in all, while 2 threads at most ran "
        + "items at once.")
  }

  @Test("nothing slow: short items, far apart")
  func quiet() {
    var events: [RecordedEvent] = []
    for item: UInt64 in 0..<10 {
      events.append(event(item * 100, 1, .submitted, node: item + 1))
      events.append(event(item * 100, 2, .started, node: item + 1))
      events.append(event(item * 100 + 1, 2, .ended))
    }
    #expect(
      reason(events).0.sentence
        == "Nothing was slow: the longest chain of items and waits took 1.0 ms of 901 ms.")
  }
}

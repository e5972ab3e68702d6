import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

@Suite("Observation", .serialized)
struct ObservationTests {
  /// Counts the notifications of one queue, since other tests' items run meanwhile.
  final class Counter: ItemObserver {
    let watched: String
    let begun = Atomic<Int>(0)
    let ended = Atomic<Int>(0)

    init(_ watched: String) { self.watched = watched }

    func itemWillRun(on queue: DispatchQueue) {
      // ORDERING: relaxed; read after the items have been waited for.
      if queue.label == watched { begun.wrappingAdd(1, ordering: .relaxed) }
    }

    func itemDidRun(on queue: DispatchQueue) {
      // ORDERING: relaxed; as above.
      if queue.label == watched { ended.wrappingAdd(1, ordering: .relaxed) }
    }
  }

  @Test("an observer is notified of every item of serial and concurrent queues, and of none afterwards")
  func counts() {
    for concurrent in [false, true] {
      let label = "test.observed.\(concurrent)"
      let queue = DispatchQueue(label: label, attributes: concurrent ? .concurrent : [])
      let counter = Counter(label)
      Observation.observe(with: counter)
      let group = DispatchGroup()
      for _ in 0..<100 { queue.async(group: group) {} }
      for _ in 0..<10 { queue.async(group: group, execute: DispatchWorkItem {}) }
      #expect(group.wait(timeout: .now() + .seconds(20)) == .success)
      queue.sync(flags: .barrier) {}
      Observation.observe(with: nil)
      queue.async(group: group) {}
      #expect(group.wait(timeout: .now() + .seconds(20)) == .success)
      // ORDERING: relaxed; the waits above order the counts.
      #expect(counter.begun.load(ordering: .relaxed) == 110)
      #expect(counter.ended.load(ordering: .relaxed) == 110)
    }
  }

  @Test("an observer is notified once of each call of a source's handler")
  func sourceHandler() {
    let label = "test.observed.source"
    let queue = DispatchQueue(label: label)
    let source = DispatchSource.makeUserDataAddSource(queue: queue)
    let called = DispatchSemaphore(value: 0)
    source.setEventHandler { called.signal() }
    source.activate()
    queue.sync {}
    let counter = Counter(label)
    Observation.observe(with: counter)
    for _ in 0..<10 {
      source.add(data: 1)
      #expect(called.wait(timeout: .now() + .seconds(20)) == .success)
    }
    queue.sync {}
    Observation.observe(with: nil)
    // ORDERING: relaxed; the waits above order the counts.
    #expect(counter.begun.load(ordering: .relaxed) == 10)
    #expect(counter.ended.load(ordering: .relaxed) == 10)
  }
}

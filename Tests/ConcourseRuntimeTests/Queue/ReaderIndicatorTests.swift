import Glibc
import Testing

@testable import ConcourseRuntime

extension Engine {
  /// Concurrent queues that many threads read at once, mostly on a pretended machine with two shards. Each test is a process
  /// of its own.
  @Suite("Readers counted apart")
  struct ReaderIndicatorTests {
    /// A queue whose readers are counted apart.
    private static func makeQueue(on machine: String = "2x4") -> DispatchQueue {
      setenv("CONCOURSE_TOPOLOGY", machine, 1)
      let queue = DispatchQueue(label: "readers", attributes: .concurrent)
      countApart(queue)
      #expect(queue.state.snapshot.isApart)
      return queue
    }

    /// A thread that loses its processor between two collisions has to begin again.
    private static func countApart(_ queue: DispatchQueue) {
      for _ in 0..<100_000 where !queue.state.snapshot.isApart { queue.readersCollided() }
    }

    private static func thread(in group: DispatchGroup, _ body: @escaping @Sendable () -> Void) {
      group.enter()
      startThread {
        body()
        group.leave()
      }
    }

    @Test("readers that meet often are counted apart, and barriers still run alone")
    func barriers() async {
      await #expect(processExitsWith: .success) {
        let queue = Self.makeQueue()
        let (mixed, closed, group) = (Tally(), Tally(), DispatchGroup())
        let value = Cells()
        for _ in 0..<4 {
          Self.thread(in: group) {
            for _ in 0..<2_000 {
              queue.sync { if value.first != value.second { mixed.add() } }
              queue.readersCollided()
            }
          }
        }
        Self.thread(in: group) {
          for number in 0..<200 {
            queue.sync(flags: .barrier) {
              if queue.state.snapshot.isApart { closed.add() }
              (value.first, value.second) = (number, number)
            }
          }
        }
        #expect(empties(group))
        #expect(mixed.value == 0 && closed.value == 0)
        queue.endApart()
        #expect(queue.state.snapshot.readers == 0)
      }
    }

    @Test("items take their places in the word, and a barrier waits for them")
    func items() async {
      await #expect(processExitsWith: .success) {
        let queue = Self.makeQueue()
        let (ran, early, group) = (Tally(), Tally(), DispatchGroup())
        for round in 0..<50 {
          for _ in 0..<20 { queue.async(group: group) { ran.add() } }
          queue.async(group: group, flags: .barrier) { if ran.value != (round + 1) * 20 { early.add() } }
          for _ in 0..<400 { queue.readersCollided() }
        }
        #expect(empties(group))
        #expect(ran.value == 1_000 && early.value == 0)
      }
    }

    @Test(
      "before places that are taken in the word and given back apart overflow it, all are counted there again"
    )
    func excess() async {
      await #expect(processExitsWith: .success) {
        let queue = Self.makeQueue()
        for _ in 0..<QueueState.Snapshot.excess { queue.state.addReaderPlace() }
        #expect(queue.state.snapshot.hasExcess && queue.state.snapshot.isApart)
        let isRead = queue.beginReading()
        #expect(isRead && queue.state.snapshot.isApart)
        queue.endReading()
        #expect(!queue.state.snapshot.isApart)
        #expect(queue.state.snapshot.readers == QueueState.Snapshot.excess)
        for _ in 0..<QueueState.Snapshot.excess { queue.endReading() }
        #expect(queue.state.snapshot.readers == 0)
      }
    }

    @Test("a limit on the number of items counts readers in the word again")
    func width() async {
      await #expect(processExitsWith: .success) {
        let queue = Self.makeQueue()
        queue.sync {
          queue.setWidth(1)
          #expect(!queue.state.snapshot.isApart && queue.state.snapshot.readers == 1)
        }
        #expect(queue.state.snapshot.readers == 0)
      }
    }

    @Test("readers that meet seldom stay in the word")
    func seldom() async {
      await #expect(processExitsWith: .success) {
        let indicators = ReaderIndicators()
        for _ in 0..<40 {
          let now = Clock.uptime()
          while Clock.uptime() - now < 1_000_000 { Processor.pause() }
          let opens = indicators.collided()
          #expect(!opens)
        }
      }
    }

    @Test("there is one for each processor of the process, also if its threads are pinned")
    func pinned() async {
      await #expect(processExitsWith: .success) {
        unsetenv("CONCOURSE_TOPOLOGY")
        _ = Runtime.shared
        let count = Processor.affinityCount
        for thread in [0, getpid()] { pin(thread, to: [processors(of: thread).first!]) }
        let indicators = ReaderIndicators()
        indicators.open()
        #expect(indicators.count >= count)
      }
    }

    @Test("a notification that is a barrier is submitted under the group's lock, and hands nothing on there")
    func notification() async {
      await #expect(processExitsWith: .success) {
        setenv("CONCOURSE_TOPOLOGY", "2x4", 1)
        let target = DispatchQueue(label: "target", attributes: .concurrent)
        let queue = DispatchQueue(label: "readers", attributes: .concurrent, target: target)
        let (group, done) = (DispatchGroup(), DispatchSemaphore(value: 0))
        for _ in 0..<10 {
          Self.countApart(queue)
          group.enter()
          group.notify(flags: .barrier, queue: queue) { done.signal() }
          group.leave()
          #expect(comes(done))
        }
      }
    }

    @Test("with one shard they are counted apart, too, if it has more than two processors")
    func oneShard() async {
      await #expect(processExitsWith: .success) {
        let (queue, group, read) = (Self.makeQueue(on: "1x3"), DispatchGroup(), Tally())
        for _ in 0..<3 {
          Self.thread(in: group) { for _ in 0..<1_000 { queue.sync { _ = read.add() } } }
          for _ in 0..<100 { queue.async(group: group) { read.add() } }
        }
        let before = queue.sync(flags: .barrier) { queue.state.snapshot.isApart }
        #expect(empties(group))
        #expect(read.value == 3_300 && !before)
      }
      await #expect(processExitsWith: .success) {
        setenv("CONCOURSE_TOPOLOGY", "1x2", 1)
        let queue = DispatchQueue(label: "readers", attributes: .concurrent)
        Self.countApart(queue)
        #expect(!queue.state.snapshot.isApart)
      }
    }

    @Test("an idle queue may be released while its readers are counted apart")
    func end() async {
      await #expect(processExitsWith: .success) {
        weak var last: DispatchQueue?
        do {
          let queue = Self.makeQueue()
          queue.sync {}
          last = queue
        }
        #expect(last == nil)
      }
    }

    @Test("trap 26: the last reference is released while a reader counted apart reads")
    func endWhileRead() async {
      let end = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        let queue = Unmanaged.passRetained(Self.makeQueue())
        _ = queue._withUnsafeGuaranteedRef { $0.beginReading() }
        queue.release()
      }
      end.says("was released while an item of it ran")
    }

    @Test(
      "S148 in a forked child, an idle queue whose readers were counted apart can be read and taken alone",
      .enabled(if: !Sanitizer.isThread))
    func fork() async {
      await #expect(processExitsWith: .success) {
        let queue = Self.makeQueue()
        queue.sync {}
        let status = inForkedChild {
          let sum = queue.sync { 1 } + queue.sync(flags: .barrier) { 2 } + queue.sync { 4 }
          _exit(Int32(sum))
        }
        #expect(status == 7 << 8)
      }
    }

    private final class Cells: @unchecked Sendable {
      // SAFETY: GUARDED BY the queue: written by its barriers only.
      var first = 0
      var second = 0
    }
  }
}

import CConcourse
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

@Suite("TimerQueue")
struct TimerQueueTests {
  @Test("an empty heap has nothing due")
  func empty() {
    var heap = TimerQueue()
    #expect(heap.first == nil)
    #expect(heap.popDue(.max) == nil)
  }

  @Test("nothing is due before its deadline")
  func due() {
    var heap = TimerQueue()
    let fixture = Fixture()
    for deadline: UInt64 in [30, 10, 20] { fixture.insert(deadline, into: &heap) }
    #expect(heap.first == 10)
    #expect(heap.popDue(9) == nil)
    #expect(heap.popDue(20)?.time == 10)
    #expect(heap.popDue(20)?.time == 20)
    #expect(heap.popDue(20) == nil)
    #expect(heap.popDue(.max)?.time == 30)
    #expect(heap.count == 0)
  }

  @Test("S81 equal deadlines keep the order of insertion")
  func equal() {
    var heap = TimerQueue()
    let fixture = Fixture()
    for _ in 0..<500 { fixture.insert(5, into: &heap) }
    var sequences: [UInt64] = []
    while let entry = heap.popDue(5) { sequences.append(entry.sequence) }
    #expect(sequences.count == 500)
    #expect(sequences == sequences.sorted())
  }

  @Test("random insertions and removals give what a sorted array gives")
  func random() {
    var dice = Seed.dice()
    var heap = TimerQueue()
    let fixture = Fixture()
    var sorted: [UInt64] = []
    for _ in 0..<20_000 {
      if sorted.isEmpty || dice.hits(oneIn: 2) {
        let deadline = UInt64.random(in: 0..<1000, using: &dice)
        fixture.insert(deadline, into: &heap)
        sorted.insert(deadline, at: sorted.firstIndex { $0 > deadline } ?? sorted.count)
      } else {
        let now = UInt64.random(in: 0..<1200, using: &dice)
        let expected = sorted[0] <= now ? sorted.removeFirst() : nil
        #expect(heap.popDue(now)?.time == expected)
      }
      #expect(heap.first == sorted.first)
      #expect(heap.count == sorted.count)
    }
  }
}

@Suite("TimerTable")
struct TimerTableTests {
  private final class Owner: TimerOwner {
    let fired = Shared<[Int]>([])
    let timers = Shared<[ObjectIdentifier: Int]>([:])
    func timerIsDue(_ timer: LoopTimer) {
      fired.change { $0.append(timers.value[ObjectIdentifier(timer)]!) }
    }
  }

  @Test(
    "a thousand due timers: a thread reports some, and the event queue calls for the next, in order",
    arguments: [1, 3])
  func manyDue(shards: Int) throws {
    let table = TimerTables(shards: shards)
    let roots = CurrentThread.state.pointee.roots
    defer { CurrentThread.state.pointee.roots = roots }
    let poller = try #require(Poller())
    let owner = Owner()
    let most = TimerTables.mostReported
    let half = 2 * most + 100
    let timers = (0..<2 * half).map { _ in LoopTimer(owner: owner) }
    for (index, timer) in timers.enumerated() { owner.timers.change { $0[ObjectIdentifier(timer)] = index } }
    for index in timers.indices.reversed() {
      CurrentThread.state.pointee.roots = UInt32(Shard(number: index % shards).firstRoot)
      // Half of them on the other clock, due long ago.
      table.set(
        timers[index],
        to: TimerWindow(clock: index < half ? .uptime : .wall, earliest: UInt64(index % half + 1), latest: 0))
    }
    var before = 0
    var passes = 0
    repeat {
      passes += 1
      let areLeft = table.reportDue(poller)
      let now = owner.fired.value.count
      #expect(now - before <= 2 * most && areLeft == (now < 2 * half))
      before = now
      let count = withUnsafeTemporaryAllocation(of: concourse_event.self, capacity: Poller.batch) {
        poller.wait($0.baseAddress!, milliseconds: areLeft ? 40_000 : 0)
      }
      #expect(count == (areLeft ? 1 : 0))
    } while before < 2 * half && passes < 1000
    #expect(owner.fired.value.filter { $0 < half } == Array(0..<half))
    #expect(owner.fired.value.filter { $0 >= half } == Array(half..<2 * half))
    #expect(table.count == 0)
  }

  @Test("what is later than a table's share of the due timers is not taken from other tables")
  func shares() throws {
    let tables = TimerTables(shards: 3)
    let roots = CurrentThread.state.pointee.roots
    defer { CurrentThread.state.pointee.roots = roots }
    let poller = try #require(Poller())
    let timers = (0..<9000).map { _ in LoopTimer(owner: nil) }
    // The earliest in the table that is looked at last.
    for (index, timer) in timers.enumerated() {
      CurrentThread.state.pointee.roots = UInt32(Shard(number: 2 - index / 3000).firstRoot)
      tables.set(timer, to: TimerWindow(.uptime(UInt64(index + 1))))
    }
    #expect(tables.reportDue(poller))
    #expect(timers.filter(\.isTaken).count == 9000 - tables.count)
    while tables.reportDue(poller) {}
    #expect(tables.count == 0)
  }

  @Test("a thread sets new timers in a table of its own, and leaves those of its shard where they are")
  func ownTable() {
    let tables = TimerTables(shards: 2)
    // Due, so that the process's event loop, whose timers these are not, sets the kernel's timer again.
    let time = TimerWindow(.uptime(1))
    let first = LoopTimer(owner: nil)
    let places = Shared<[Int]>([])
    for _ in 0..<16 {
      let done = DispatchSemaphore(value: 0)
      startThread {
        CurrentThread.state.pointee.roots = UInt32(Shard(number: 1).firstRoot)
        let timer = LoopTimer(owner: nil)
        for timer in [timer, first] { tables.set(timer, to: time) }
        #expect(timer.home == tables.own && timer.home >= tables.tables.count / 2)
        places.change { $0.append(timer.home) }
        #expect(first.home == places.value[0] && tables.count == 2)
        #expect(tables.cancel(timer) && tables.count == 1)
        done.signal()
      }
      done.wait()
    }
    #expect(Set(places.value).count == tables.tables.count / 2)
    #expect(tables.cancel(first))
  }
}

/// A heap only stores nodes and queues; one of each will do.
private struct Fixture {
  private let queue = DispatchQueue(label: "timers")
  private let node = NodeMagazine.make(.closure {}, level: .default)

  func insert(_ deadline: UInt64, into heap: inout TimerQueue) {
    heap.insert(deadline, .submission(node, .passUnretained(queue)))
  }
}

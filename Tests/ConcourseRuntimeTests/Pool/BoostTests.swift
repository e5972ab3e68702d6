import Glibc
import Testing

@testable import ConcourseRuntime

extension Engine {
  /// What a thread waits for is served at its class. Each test in a process of its own, in which no worker of a lowered
  /// band takes anything: what runs does so because a thread waits for it.
  @Suite("Boost")
  struct BoostTests {
    @Test("sync: the queue that a thread waits for is served in the thread's band")
    func sync() async {
      await #expect(processExitsWith: .success) {
        let waits = Waits()
        let (queue, nested) = waits.queues(attributes: [])
        for queue in [queue, nested] {
          queue.async { waits.note(1) }
          queue.async { waits.note(2) }
          waits.expect([1, 2]) { queue.sync {} }
          queue.async { waits.note(3) }
          waits.expect([3]) { queue.asyncAndWait {} }
        }
      }
    }

    @Test("sync: so is a queue without a class that lies in a lowered target's root")
    func nestedInConcurrent() async {
      await #expect(processExitsWith: .success) {
        let waits = Waits()
        let target = DispatchQueue(label: "target", qos: .utility, attributes: .concurrent)
        let queue = DispatchQueue(label: "nested", target: target)
        queue.async { waits.note(1) }
        waits.expect([1]) { queue.sync {} }
      }
    }

    @Test("barrier sync: so are the items that the barrier waits for")
    func barrier() async {
      await #expect(processExitsWith: .success) {
        let waits = Waits()
        let (queue, nested) = waits.queues(attributes: .concurrent)
        for queue in [queue, nested] {
          for number in 1...3 { queue.async { waits.note(number) } }
          queue.async(flags: .barrier) { waits.note(4) }
          waits.expect([1, 2, 3, 4], inOrder: false) { queue.sync {} }
          queue.async { waits.note(5) }
          waits.expect([5]) { queue.sync(flags: .barrier) {} }
        }
      }
    }

    @Test("barrier sync: the queue stays raised while a barrier in it waits for items that run")
    func barrierBehindReaders() async {
      await #expect(processExitsWith: .success) {
        let waits = Waits()
        let (queue, nested) = waits.queues(attributes: .concurrent)
        for queue in [queue, nested] {
          queue.async {
            // Until a worker of the default band has reached the queue, and left it to its readers.
            #expect(awaitValue { !queue.state.snapshot.isEnqueued && !queue.state.snapshot.isOwned })
            waits.note(1)
          }
          queue.async(flags: .barrier) { waits.note(2) }
          waits.expect([1, 2]) { queue.sync {} }
        }
      }
    }

    @Test("waiting for an item: what is ahead of it runs first, what is behind waits for its own band")
    func item() async {
      await #expect(processExitsWith: .success) {
        let waits = Waits()
        for queue in [
          .global(qos: .background), .global(qos: .utility), waits.queues(attributes: .concurrent).0,
        ] {
          queue.async { waits.note(1) }
          let item = Item { waits.note(2) }
          queue.async(execute: item.item)
          let behind = Tally()
          queue.async { behind.add() }
          waits.expect([1, 2], inOrder: false) { item.item.wait() }
          waits.expectNoBoost()
          #expect(behind.value == 0)
          let last = Item {}
          queue.async(execute: last.item)
          waits.expect([]) { last.item.wait() }
          #expect(awaitValue { behind.value == 1 })
        }
      }
    }

    @Test("waiting for a group: its items run, and those ahead of them, and no others")
    func group() async {
      await #expect(processExitsWith: .success) {
        let waits = Waits()
        let group = DispatchGroup()
        for queue in [
          .global(qos: .background), .global(qos: .utility), waits.queues(attributes: .concurrent).1,
        ] {
          for number in 1...20 { queue.async(group: number % 3 == 0 ? nil : group) { waits.note(number) } }
          let behind = Tally()
          queue.async { behind.add() }
          waits.expect(Array(1...20), inOrder: false) { group.wait() }
          waits.expectNoBoost()
          #expect(behind.value == 0)
          queue.async(group: group) {}
          waits.expect([]) { group.wait() }
        }
      }
    }

    @Test("a queue comes back to the default band after 256 items, as long as a thread waits")
    func farBehind() async {
      await #expect(processExitsWith: .success) {
        let waits = Waits()
        let other = DispatchQueue(label: "other")
        for attributes: DispatchQueue.Attributes in [[], .concurrent] {
          let queue = waits.queues(attributes: attributes).0
          let (ahead, behind) = (Tally(), Tally())
          queue.suspend()
          // Another queue asks for the worker, too.
          for _ in 1...600 {
            queue.async(flags: .barrier) {
              ahead.add()
              other.async {}
            }
          }
          let before = last(of: queue)
          let done = DispatchSemaphore(value: 0)
          startThread {
            queue.sync(flags: .barrier) {}
            done.signal()
          }
          #expect(awaitValue { last(of: queue) != before })
          for _ in 1...10 { queue.async(flags: .barrier) { behind.add() } }
          queue.resume()
          #expect(comes(done))
          #expect(ahead.value == 600)
          #expect(awaitValue { waits.rests(queue) })
          #expect(behind.value == 0)
        }
      }
    }

    @Test(
      "a lowered worker leaves the queue that it drains: a thread has come to wait, or an item is of a higher class",
      arguments: ["serial", "concurrent", "workloop"], [false, true])
    func leftByLowered(kind: String, isWaitedFor: Bool) async {
      await #expect(processExitsWith: .success) { [kind, isWaitedFor] in
        let queue = Self.backgroundQueue(kind)
        let (begun, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let names = Shared<[String]>([])
        queue.async(flags: .barrier) {
          begun.signal()
          #expect(awaitValue { queue.isAwaited || queue.state.snapshot.level == .default })
        }
        for _ in 1...3 { queue.async(flags: .barrier) { names.change { $0.append(threadName()) } } }
        #expect(comes(begun))
        if isWaitedFor {
          startThread {
            queue.asyncAndWait(flags: .barrier) {}
            done.signal()
          }
        } else {
          queue.async(qos: .default, flags: [.enforceQoS, .barrier]) { done.signal() }
        }
        #expect(comes(done))
        #expect(awaitValue { names.value.count == 3 })
        // The worker looks after two items. The second of a workloop is that of the higher class.
        let second = kind == "workloop" && !isWaitedFor ? "concourse" : "concourse-bg"
        #expect(names.value == [second, "concourse", "concourse"])
      }
    }

    @Test("an item without a class is served in the default band, also behind one for a lowered band")
    func withoutClass() async {
      await #expect(processExitsWith: .success) {
        _ = Waits()
        let serial = DispatchQueue(label: "serial")
        for queue in [serial, serial, DispatchWorkloop(label: "workloop")] {
          let done = DispatchSemaphore(value: 0)
          queue.async(qos: .background) {}
          queue.async { done.signal() }
          #expect(comes(done))
        }
      }
    }

    @Test("behind one that a lowered worker runs, too")
    func withoutClassBehindRunning() async {
      await #expect(processExitsWith: .success) {
        let queue = DispatchQueue(label: "queue")
        let (begun, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let names = Shared<[String]>([])
        queue.async(qos: .background) {
          begun.signal()
          #expect(awaitValue { queue.state.snapshot.level == .default })
        }
        #expect(comes(begun))
        for _ in 1...3 { queue.async { names.change { $0.append(threadName()) } } }
        queue.async { done.signal() }
        #expect(comes(done))
        #expect(names.value == ["concourse-bg", "concourse", "concourse"])
      }
    }

    private static func backgroundQueue(_ kind: String) -> DispatchQueue {
      guard kind == "workloop" else {
        return DispatchQueue(
          label: kind, qos: .background, attributes: kind == "concurrent" ? .concurrent : [])
      }
      let workloop = DispatchWorkloop(inactive: kind)
      workloop.setClass(.background, "test")
      workloop.activate()
      return workloop
    }

    @Test("a drain of the default band leaves the queue to its own band when no thread waits any more")
    func goesBack() async {
      await #expect(processExitsWith: .success) {
        let waits = Waits()
        for queue in [waits.queues(attributes: []).0, Self.backgroundQueue("workloop")] {
          @Sendable func feed() { queue.async { feed() } }
          feed()
          waits.expect([]) { queue.asyncAndWait {} }
          #expect(awaitValue { waits.rests(queue) })
        }
      }
    }

    @Test("it does not while an item of a normal class is near")
    func severalClasses() async {
      await #expect(processExitsWith: .success) {
        _ = Waits()
        let queue = DispatchQueue(label: "several classes", qos: .background)
        let done = DispatchSemaphore(value: 0)
        queue.suspend()
        queue.async {}
        let before = last(of: queue)
        startThread {
          queue.asyncAndWait {}
          done.signal()
        }
        #expect(awaitValue { last(of: queue) != before })
        // The thread has its result by then.
        queue.async { #expect(awaitValue { !queue.isAwaited }) }
        for _ in 1...300 {
          queue.async {}
          queue.async(qos: .default, flags: .enforceQoS) {}
        }
        queue.async(qos: .default, flags: .enforceQoS) { done.signal() }
        queue.resume()
        #expect(comes(done) && comes(done))
      }
    }

    @Test("a queue without a class, and one that is resumed or activated, are served for a thread that waits")
    func held() async {
      await #expect(processExitsWith: .success) {
        let waits = Waits()
        let withoutClass = DispatchQueue(label: "without a class")
        withoutClass.async(qos: .background) { waits.note(1) }
        waits.expect([1]) { withoutClass.sync {} }
        let inactive = DispatchQueue(label: "inactive", qos: .background, attributes: .initiallyInactive)
        let suspended = waits.queues(attributes: []).0
        suspended.suspend()
        let suspendedLater = waits.queues(attributes: []).0
        for queue in [inactive, suspended, suspendedLater] {
          queue.async { waits.note(2) }
          if queue === suspendedLater { queue.suspend() }
          let before = last(of: queue)
          startThread {
            #expect(awaitValue { last(of: queue) != before })
            if queue === inactive { queue.activate() } else { queue.resume() }
          }
          waits.expect([2]) { queue.sync {} }
        }
      }
    }

    @Test("a thread of a lowered band, and the target of an inactive queue, are left where they are")
    func notBoosted() async {
      await #expect(processExitsWith: .success) {
        let lowered = DispatchQueue(label: "lowered", qos: .background)
        let inactive = DispatchQueue(label: "inactive", attributes: .initiallyInactive, target: lowered)
        let nested = DispatchQueue(label: "nested", target: inactive)
        // The inactive queue's target may be replaced, and released, at any moment.
        #expect(lowered.needsBoost && !nested.needsBoost)
        inactive.activate()
        #expect(nested.needsBoost)
        // The main queue's thread serves all classes.
        let ofMain = DispatchQueue(label: "of main", target: .main)
        ofMain.async(qos: .background) {}
        #expect(!ofMain.needsBoost)
        #expect(!DispatchQueue(label: "normal", target: DispatchQueue(label: "normal target")).needsBoost)
        let done = DispatchSemaphore(value: 0)
        DispatchQueue.global(qos: .utility).async {
          #expect(!lowered.needsBoost)
          done.signal()
        }
        #expect(comes(done))
      }
    }

    @Test("a boosted root puts fewer entries than processors to the default root")
    func takers() async {
      await #expect(processExitsWith: .success) {
        let waits = Waits()
        let group = DispatchGroup()
        let normal = Runtime.shared.bands[0]
        // As if its workers were busy.
        normal.counters.apply(.init(active: 1_000))
        let background = DispatchQueue.global(qos: .background)
        for number in 1...100 { background.async(group: group) { waits.note(number) } }
        for _ in 1...3 { #expect(!hasEmptied(group)) }
        var found = 0
        while let node = Runtime.root(at: .default).takeUnretainedValue().take() {
          found += 1
          #expect(node.pointee.kind == .boosted)
          if found > max(1, PoolSize.width - 1) { break }
        }
        #expect(found == max(1, PoolSize.width - 1))
      }
    }

    @Test("in a forked child, a wait with a timeout ends, whatever lies in the lowered roots")
    func forkedChild() async {
      await #expect(processExitsWith: .success) {
        _ = Waits()
        let group = DispatchGroup()
        DispatchQueue.global(qos: .background).async(group: group) {}
        // As in a child. To ask for a worker would trap.
        Process.becomeForkedChild()
        #expect(!hasEmptied(group))
      }
    }
  }
}

/// Waiting while the lowered bands rest.
private final class Waits: Sendable {
  private let ran = Shared<[(number: Int, thread: String)]>([])

  init() {
    for qosClass in [DispatchQoS.QoSClass.utility, .background] {
      let done = DispatchSemaphore(value: 0)
      DispatchQueue.global(qos: qosClass).async { done.signal() }
      #expect(comes(done))
    }
    for band in Runtime.shared.bands where band.isLowered {
      #expect(awaitValue { band.counters.snapshot.active == 0 })
      // As if so many workers were busy: no one is woken or made.
      band.counters.apply(.init(active: 1_000))
    }
  }

  /// A queue of the background class, and one without a class that targets another of the utility class.
  func queues(attributes: DispatchQueue.Attributes) -> (DispatchQueue, DispatchQueue) {
    let target = DispatchQueue(label: "target", qos: .utility, attributes: attributes)
    return (
      DispatchQueue(label: "lowered", qos: .background, attributes: attributes),
      DispatchQueue(label: "nested", attributes: attributes, target: target)
    )
  }

  func note(_ number: Int) {
    let name = threadName()
    ran.change { $0.append((number, name)) }
  }

  /// That the wait ends, and these have run by then, in the default band.
  func expect(_ numbers: [Int], inOrder: Bool = true, _ wait: @escaping @Sendable () -> Void) {
    let done = DispatchSemaphore(value: 0)
    startThread {
      wait()
      done.signal()
    }
    #expect(comes(done))
    // What is ahead has begun, and may still run.
    #expect(awaitValue { ran.value.count >= numbers.count })
    let entries = ran.value
    ran.change { $0 = [] }
    // Two workers may overtake each other between taking an item and noting it.
    let found = entries.map { $0.number }
    #expect((inOrder ? found : found.sorted()) == numbers)
    #expect(entries.allSatisfy { $0.thread == "concourse" })
  }

  /// Whether the queue waits for its own band, which rests.
  func rests(_ queue: DispatchQueue) -> Bool {
    let seen = queue.state.snapshot
    return seen.isEnqueued && !seen.isOwned && !seen.hasReaders && seen.level == .background
  }

  func expectNoBoost() {
    for level in [QoSLevel.background, .utility] {
      let hasNone = Runtime.root(at: level).takeUnretainedValue().boosted.isEmpty
      #expect(hasNone)
    }
  }
}

/// Changes when a thread waits in the queue.
private func last(of queue: DispatchQueue) -> UInt { UInt(bitPattern: queue.list.last) }

private func hasEmptied(_ group: DispatchGroup) -> Bool {
  group.wait(timeout: .now() + .milliseconds(1)) == .success
}

/// A work item for several threads.
private final class Item: @unchecked Sendable {  // SAFETY: the item may be used from any thread.
  let item: DispatchWorkItem
  init(_ body: @escaping @Sendable () -> Void) { item = DispatchWorkItem(block: body) }
}

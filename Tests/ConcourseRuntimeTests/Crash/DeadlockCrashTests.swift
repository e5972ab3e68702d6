import Glibc
import Testing

@testable import ConcourseRuntime

extension Crash {
  /// Cycles of waits that can never end. The report has a first line for all threads, and one for each.
  @Suite("Deadlocks")
  struct DeadlockCrashTests {
    @Test("S153 two queues")
    func twoQueues() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let (a, b) = (DispatchQueue(label: "A"), DispatchQueue(label: "B"))
        let both = Meeting(2)
        a.async { both.meet { b.sync {} } }
        b.async { both.meet { a.sync {} } }
        awaitDeath()
      }
      end.reports(
        "2 threads wait for one another, for queue \"A\", for queue \"B\"",
        "holds \"B\", and waits for queue \"A\", while thread N holds \"A\"",
        "holds \"A\", and waits for queue \"B\", while thread N holds \"B\"")
    }

    @Test("S153 the function, file and line of each thread")
    func places() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let (a, b) = (DispatchQueue(label: "A"), DispatchQueue(label: "B"))
        let both = Meeting(2)
        a.async { both.meet { Crossing.first(b) } }
        b.async { both.meet { Crossing.second(a) } }
        awaitDeath()
      }
      let lines = end.lines
      for (function, line) in [("first", Crossing.firstLine), ("second", Crossing.secondLine)] {
        let place =
          "Crossing in _[0-9A-F]+\\)\\.\(function)\\(.* at DeadlockCrashTests\\.swift:\(line) \\(concourse"
        #expect(throws: Never.self) {
          let expression = try Regex(place)
          #expect(lines.count { $0.contains(expression) } == 1, "\(lines)")
        }
      }
    }

    @Test("what the further lines need may end the process: the first one has been written")
    func firstLine() async {
      let end = await #expect(processExitsWith: .exitCode(7), observing: [\.standardErrorContent]) {
        Trap.clientBug(115, "first") { _exit(7) }
      }
      #expect(end.lines == ["Concourse: BUG IN CLIENT OF DISPATCH: first [C115]"])
    }

    /// Functions whose lines the test knows.
    private enum Crossing {
      static let firstLine = #line + 1
      static func first(_ queue: DispatchQueue) { queue.sync {} }
      static let secondLine = #line + 1
      static func second(_ queue: DispatchQueue) { queue.sync {} }
    }

    @Test("S153 three queues, on threads outside the pool")
    func threeQueues() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let queues = ["A", "B", "C"].map { DispatchQueue(label: $0) }
        let all = Meeting(3)
        for index in 0..<3 {
          startThread { queues[index].sync { all.meet { queues[(index + 1) % 3].sync {} } } }
        }
        awaitDeath()
      }
      end.reports(
        "3 threads wait for one another, for queue \"A\", for queue \"B\", for queue \"C\"",
        "holds \"C\", and waits for queue \"A\", while thread N holds \"A\"",
        "holds \"A\", and waits for queue \"B\", while thread N holds \"B\"",
        "holds \"B\", and waits for queue \"C\", while thread N holds \"C\"")
    }

    @Test("S153 a queue whose target is held")
    func target() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let target = DispatchQueue(label: "target")
        let child = DispatchQueue(label: "child", target: target)
        let other = DispatchQueue(label: "other")
        let both = Meeting(2)
        target.async { both.meet { other.sync {} } }
        other.async {
          both.meet {
            child.async {}
            child.sync {}
          }
        }
        awaitDeath()
      }
      end.reports(
        "2 threads wait for one another, for queue \"child\", for queue \"other\"",
        "holds \"other\", and waits for queue \"child\", while thread N holds \"target\"",
        "holds \"target\", and waits for queue \"other\", while thread N holds \"other\"")
    }

    @Test("S153 a child of the own queue that has work already")
    func ownChild() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let target = DispatchQueue(label: "target")
        let middle = DispatchQueue(label: "middle", target: target)
        let child = DispatchQueue(label: "child", target: middle)
        target.async {
          child.async {}
          child.sync {}
        }
        awaitDeath()
      }
      end.reports(
        "a thread waits for itself, for queue \"child\"",
        "holds \"target\", and waits for queue \"child\", while the same thread holds \"target\"")
    }

    @Test("S153 closed by a thread that goes on: a queue is resumed, and its target is held")
    func resumed() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let target = DispatchQueue(label: "target")
        let child = DispatchQueue(label: "child", target: target)
        let other = DispatchQueue(label: "other")
        let both = Meeting(2)
        child.suspend()
        target.async { both.meet { other.sync {} } }
        other.async {
          both.meet {
            _ = awaitValue { ProcessQueues.shared.blockedThreads.registered == 1 }
            child.sync {}
          }
        }
        _ = awaitValue { ProcessQueues.shared.blockedThreads.registered == 2 }
        child.resume()
        awaitDeath()
      }
      end.reports(
        "2 threads wait for one another, for queue \"child\", for queue \"other\"",
        "holds \"other\", and waits for queue \"child\", while thread N holds \"target\"",
        "holds \"target\", and waits for queue \"other\", while thread N holds \"other\"")
    }

    @Test("S153 a barrier and a reader of a concurrent queue")
    func barrier() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let shared = DispatchQueue(label: "shared", attributes: .concurrent)
        let serial = DispatchQueue(label: "serial")
        let both = Meeting(2)
        shared.async { both.meet { serial.sync {} } }
        serial.async { both.meet { shared.sync(flags: .barrier) {} } }
        awaitDeath()
      }
      end.reports(
        "2 threads wait for one another, for a barrier on queue \"shared\", for queue \"serial\"",
        "holds \"serial\", and waits for a barrier on queue \"shared\", while thread N runs an item of \"shared\"",
        "holds \"shared\", and waits for queue \"serial\", while thread N holds \"serial\"")
    }

    @Test("S153 a reader behind a barrier that waits for another reader")
    func readerBehindBarrier() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let shared = DispatchQueue(label: "shared", attributes: .concurrent)
        let serial = DispatchQueue(label: "serial")
        let both = Meeting(2)
        startThread { shared.sync { both.meet { serial.sync {} } } }
        serial.async {
          both.meet {
            shared.async(flags: .barrier) {}
            shared.sync {}
          }
        }
        awaitDeath()
      }
      end.reports(
        "2 threads wait for one another, for queue \"serial\", for queue \"shared\"",
        "holds \"shared\", and waits for queue \"serial\", while thread N holds \"serial\"",
        "holds \"serial\", and waits for queue \"shared\", while thread N runs an item of \"shared\"")
    }

    @Test("S153 the main queue and a worker", .enabled(if: MainThreadLoan.isPossible))
    func mainQueue() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let serial = DispatchQueue(label: "serial")
        let both = Meeting(2)
        MainThreadLoan.run { both.meet { serial.sync {} } }
        serial.async { both.meet { DispatchQueue.main.sync {} } }
        awaitDeath()
      }
      end.reports(
        "2 threads wait for one another, for queue \"com.apple.main-thread\", for queue \"serial\"",
        "holds \"serial\", and waits for queue \"com.apple.main-thread\", while thread N, which serves "
          + "\"com.apple.main-thread\", waits",
        "(the main thread) holds no queue, and waits for queue \"serial\", while thread N holds \"serial\"")
    }

    @Test("S153 a queue that ends in the main queue, from its item", .enabled(if: MainThreadLoan.isPossible))
    func aboveMainQueue() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let child = DispatchQueue(label: "child", target: .main)
        let serial = DispatchQueue(label: "serial")
        let both = Meeting(2)
        MainThreadLoan.run {
          DispatchQueue.main.async { both.meet { serial.sync {} } }
          dispatchMain()
        }
        serial.async { both.meet { child.sync {} } }
        awaitDeath()
      }
      end.reports(
        "2 threads wait for one another, for queue \"child\" on queue \"com.apple.main-thread\", for queue \"serial\"",
        "holds \"child\", \"serial\", and waits for queue \"child\" on queue \"com.apple.main-thread\", while thread N, "
          + "which serves \"com.apple.main-thread\", waits",
        "(the main thread) holds \"com.apple.main-thread\", and waits for queue \"serial\", while thread N holds \"serial\""
      )
    }

    @Test("S153 a work item that is waited for")
    func workItem() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let (a, b) = (DispatchQueue(label: "A"), DispatchQueue(label: "B"))
        let both = Meeting(2)
        let item = UncheckedItem(DispatchWorkItem { both.meet { a.sync {} } })
        b.async(execute: item.item)
        a.async { both.meet { item.item.wait() } }
        awaitDeath()
      }
      end.reports(
        "2 threads wait for one another, for a work item, for queue \"A\"",
        "holds \"A\", and waits for a work item, while thread N runs it",
        "holds \"B\", and waits for queue \"A\", while thread N holds \"A\"")
    }

    @Test("S153 a work item that waits for itself")
    func ownWorkItem() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let link = Shared<UncheckedItem?>(nil)
        let item = UncheckedItem(DispatchWorkItem { link.value!.item.wait() })
        link.change { $0 = item }
        DispatchQueue(label: "queue").async(execute: item.item)
        awaitDeath()
      }
      end.reports(
        "a thread waits for itself, for a work item",
        "holds \"queue\", and waits for a work item, while the same thread runs it")
    }

    @Test("S153 asyncAndWait")
    func asyncAndWait() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let (a, b) = (DispatchQueue(label: "A"), DispatchQueue(label: "B"))
        let both = Meeting(2)
        a.async { both.meet { b.asyncAndWait {} } }
        startThread { b.asyncAndWait { both.meet { a.asyncAndWait {} } } }
        awaitDeath()
      }
      end.reports(
        "2 threads wait for one another, for queue \"A\", for queue \"B\"",
        "holds \"B\", and waits for queue \"A\", while thread N holds \"A\"",
        "holds \"A\", and waits for queue \"B\", while thread N holds \"B\"")
    }

    @Test("S153 a body that runs once")
    func once() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let once = DispatchOnce()
        let queue = DispatchQueue(label: "queue")
        let both = Meeting(2)
        startThread { once.perform { both.meet { queue.sync {} } } }
        queue.async { both.meet { once.perform {} } }
        awaitDeath()
      }
      end.reports(
        "2 threads wait for one another, for a body that runs once, for queue \"queue\"",
        "holds \"queue\", and waits for a body that runs once, while thread N runs it",
        "holds no queue, and waits for queue \"queue\", while thread N holds \"queue\"")
    }

    @Test("S153 a group, one of whose items waits for a queue that the waiting thread holds")
    func group() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let group = DispatchGroup()
        let queue = DispatchQueue(label: "queue")
        let both = Meeting(2)
        // Items of the group that run, have not begun or have ended are no part of the cycle.
        DispatchQueue(label: "other").async(group: group) { awaitDeath() }
        DispatchQueue.global().async(group: group) { both.meet { queue.sync {} } }
        queue.async { both.meet { group.wait() } }
        awaitDeath()
      }
      end.reports(
        "2 threads wait for one another, for a group, for queue \"queue\"",
        "holds \"queue\", and waits for a group, while thread N runs an item of it",
        "holds no queue, and waits for queue \"queue\", while thread N holds \"queue\"")
    }

    @Test(
      "S153 a group that is waited for on the main thread, which one of its items waits for",
      .enabled(if: MainThreadLoan.isPossible))
    func groupOnMainThread() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let group = DispatchGroup()
        DispatchQueue(label: "queue").async(group: group) { DispatchQueue.main.sync { group.wait() } }
        MainThreadLoan.run { dispatchMain() }
        awaitDeath()
      }
      end.reports(
        "2 threads wait for one another, for a group, for queue \"com.apple.main-thread\"",
        "(the main thread) holds \"com.apple.main-thread\", \"queue\", and waits for a group, while thread N runs "
          + "an item of it",
        "holds \"queue\", and waits for queue \"com.apple.main-thread\", while thread N, which serves "
          + "\"com.apple.main-thread\", waits")
    }

    // MARK: Side effects

    @Test("S153 threads that wait for groups of busy, entered or blocked items wait on, and the items end")
    func groupsThatEnd() async {
      await #expect(processExitsWith: .success) {
        let all = ProcessQueues.shared.blockedThreads
        let (outer, inner) = (DispatchGroup(), DispatchGroup())
        let (queue, held) = (DispatchQueue(label: "queue"), DispatchQueue(label: "held"))
        let ended = Tally()
        // An item of `outer` waits for `inner`, which is entered by hand and has an item that waits for a queue.
        inner.enter()
        held.sync {
          queue.async(group: outer) { inner.wait() }
          DispatchQueue.global().async(group: inner) { held.sync {} }
          startThread {
            outer.wait()
            ended.add()
          }
          #expect(awaitValue { all.registered == 3 })
        }
        #expect(awaitValue { all.registered == 2 })
        inner.leave()
        #expect(awaitValue { ended.value == 1 })
        #expect(all.deadlocksFound == 0)
      }
    }

    @Test("S153 a round of a group that has ended is no wait for the items of the next one")
    func groupOfAnotherRound() {
      let group = DispatchGroup()
      group.enter()
      let (address, seen) = (
        UnsafeRawPointer(Unmanaged.passUnretained(group).toOpaque()), group.roundForTests
      )
      #expect(!DispatchGroup.isAwaited(address, since: seen))
      let waiter = Tally()
      startThread {
        group.wait()
        waiter.add()
      }
      #expect(awaitValue { DispatchGroup.isAwaited(address, since: seen) })
      group.leave()
      #expect(awaitValue { waiter.value == 1 })
      group.enter()
      startThread {
        group.wait()
        waiter.add()
      }
      #expect(awaitValue { DispatchGroup.isAwaited(address, since: seen &+ 1) })
      #expect(!DispatchGroup.isAwaited(address, since: seen))
      group.leave()
      #expect(awaitValue { waiter.value == 2 })
    }

    @Test("S153 an entry that was noted late is not taken for a barrier")
    func lateNote() async {
      await #expect(processExitsWith: .success) {
        let shared = DispatchQueue(label: "shared", attributes: .concurrent)
        let serial = DispatchQueue(label: "serial")
        let all = ProcessQueues.shared.blockedThreads
        let ended = Tally()
        // Its pusher is between push and note while the last owner runs the barrier.
        shared.sync {
          _ = shared.state.noteWork(.default, exclusive: true)
          _ = shared.list.push(NodeMagazine.make(.closure({}), level: .default))
          startThread {
            serial.sync { shared.sync {} }
            ended.add()
          }
          #expect(awaitValue { ended.value == 1 || all.registered == 1 })
          serial.sync {}
        }
        #expect(awaitValue { ended.value == 1 })
      }
    }

    /// Threads of layer k read queue k and wait for a barrier on queue k + 1.
    @Test("S153 beside layers of readers that wait for barriers, which take few steps each")
    func layersOfReaders() async {
      await #expect(processExitsWith: .success) {
        let (layers, readers) = (6, Sanitizer.isThread ? 12 : 30)
        let queues = (0...layers).map { DispatchQueue(label: "layer \($0)", attributes: .concurrent) }
        let all = ProcessQueues.shared.blockedThreads
        let (entered, ended) = (Meeting(layers * readers), Tally())
        queues[layers].sync {
          for index in 0..<layers * readers {
            startThread {
              queues[index / readers].sync {
                entered.meet { queues[index / readers + 1].sync(flags: .barrier) {} }
              }
              ended.add()
            }
          }
          #expect(awaitValue { all.registered == layers * readers })
        }
        #expect(awaitValue { ended.value == layers * readers })
        #expect(all.deadlocksFound == 0)
        // One pass for each thread that visits each thread and each list once. With an edge for each pair of a barrier
        // and a reader there would be readers times as many.
        #expect(
          all.stepsTaken < layers * readers * (2 * layers * readers + BlockedThreads.listCount + 8 * layers))

      }
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        let (layers, readers) = (6, Sanitizer.isThread ? 12 : 30)
        let queues = (0..<layers).map { DispatchQueue(label: "layer \($0)", attributes: .concurrent) }
        let entered = Meeting(layers * readers)
        for index in 0..<layers * readers {
          startThread {
            queues[index / readers].sync {
              entered.meet { queues[(index / readers + 1) % layers].sync(flags: .barrier) {} }
            }
          }
        }
        awaitDeath()
      }
      let words = "deadlock: \(6) threads wait for one another, for a barrier on queue \"layer 0\""
      #expect(end.lines.first?.contains(words) == true, "\(end.lines)")
    }

    @Test("a sync that sleeps makes no thread of the runtime")
    func noThread() async {
      await #expect(processExitsWith: .success) {
        let shared = DispatchQueue(label: "shared", attributes: .concurrent)
        let busy = DispatchQueue(label: "busy")
        let all = ProcessQueues.shared.blockedThreads
        let ended = Tally()
        busy.sync {
          startThread {
            busy.sync {}
            ended.add()
          }
          #expect(awaitValue { all.registered == 1 })
          shared.sync {
            startThread {
              shared.sync(flags: .barrier) {}
              ended.add()
            }
            #expect(awaitValue { all.registered == 2 })
          }
        }
        #expect(awaitValue { ended.value == 2 })
        #expect(!ProcessFacts.isMultithreaded)
      }
    }

    @Test("S148 a forked child has none of its parent's blocked threads", .enabled(if: !Sanitizer.isThread))
    func forked() async {
      await #expect(processExitsWith: .success) {
        let queue = DispatchQueue(label: "queue")
        queue.sync {
          startThread { queue.sync {} }
          #expect(awaitValue { ProcessQueues.shared.blockedThreads.registered == 1 })
          let status = inForkedChild {
            let all = ProcessQueues.shared.blockedThreads
            if all.registered != 0 { _exit(1) }
            let own = DispatchQueue(label: "own")
            own.sync {
              startThread {
                own.sync {}
                _exit(0)
              }
              if !awaitValue({ all.registered == 1 }) { _exit(2) }
            }
            awaitDeath()
          }
          #expect(status == 0)
        }
        #expect(!Process.isForkedChild)
      }
    }

    @Test("a report that cannot be written holds up no other thread")
    func blockedOutput() async {
      await #expect(processExitsWith: .success) {
        setenv("CONCOURSE_DEADLOCK", "report", 1)
        var ends: [Int32] = [0, 0]
        pipe(&ends)
        _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
        while write(ends[1], "x", 1) == 1 {}
        _ = fcntl(ends[1], F_SETFL, 0)
        let former = dup(STDERR_FILENO)
        dup2(ends[1], STDERR_FILENO)
        let all = ProcessQueues.shared.blockedThreads
        closeCycle()
        #expect(awaitValue { all.deadlocksFound == 1 })
        let queue = DispatchQueue(label: "queue")
        let ended = Tally()
        queue.sync {
          startThread {
            queue.sync {}
            ended.add()
          }
          #expect(awaitValue { all.registered == 3 })
        }
        #expect(awaitValue { ended.value == 1 })
        dup2(former, STDERR_FILENO)
      }
    }

    /// Tools read the records from another process.
    @Test("the layout of a record is as `BlockedThread` says")
    func layout() {
      #expect(MemoryLayout<BlockedThread>.offset(of: \.next) == 0)
      #expect(MemoryLayout<BlockedThread>.offset(of: \.since) == 16)
      #expect(MemoryLayout<BlockedThread>.offset(of: \.wait.object) == 24)
      #expect(MemoryLayout<BlockedThread>.offset(of: \.wait.waiter) == 32)
      #expect(MemoryLayout<BlockedThread>.offset(of: \.wait.frames) == 40)
      #expect(MemoryLayout<BlockedThread>.offset(of: \.wait.kind) == 48)
      #expect(MemoryLayout<BlockedThread>.offset(of: \.thread) == 52)
      // `concourse report` reads the number of the case, which is not the raw value.
      let kinds: [BlockedThread.Kind] = [.turn, .service, .item, .once, .group]
      #expect(kinds.map { unsafeBitCast($0, to: UInt8.self) } == [0, 1, 2, 3, 4])
      #expect(MemoryLayout<Frame>.offset(of: \.queue) == 0 && MemoryLayout<Frame>.offset(of: \.parent) == 8)
    }

    // MARK: Settings

    @Test("CONCOURSE_DEADLOCK=report: the threads wait on")
    func report() async {
      let end = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        setenv("CONCOURSE_DEADLOCK", "report", 1)
        // The report is printed after the deadlock has been counted.
        var ends: [Int32] = [0, 0]
        pipe(&ends)
        let former = dup(STDERR_FILENO)
        dup2(ends[1], STDERR_FILENO)
        let queue = closeCycle().queue
        #expect(awaitValue { ProcessQueues.shared.blockedThreads.deadlocksFound == 1 })
        // A thread that waits for the cycle is no part of it.
        startThread { queue.sync {} }
        #expect(awaitValue { ProcessQueues.shared.blockedThreads.registered == 3 })
        var (byte, lines) = (UInt8(0), 0)
        while lines < 3, read(ends[0], &byte, 1) == 1 {
          if byte == UInt8(ascii: "\n") { lines += 1 }
          _ = write(former, &byte, 1)
        }
        dup2(former, STDERR_FILENO)
      }
      #expect(
        end.lines.first
          == "Concourse: deadlock: 2 threads wait for one another, for queue \"A\", for queue \"B\"")
      #expect(end.lines.count == 3, "\(end.lines)")
    }

    @Test("CONCOURSE_DEADLOCK=off")
    func off() async {
      let end = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
        setenv("CONCOURSE_DEADLOCK", "off", 1)
        #expect(!ends(closeCycle().end, within: 0.3))
        #expect(ProcessQueues.shared.blockedThreads.registered == 0)
      }
      #expect(end.lines.isEmpty, "\(end.lines)")
    }

    @Test("CONCOURSE_DEADLOCK with another value")
    func otherValue() async {
      let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
        setenv("CONCOURSE_DEADLOCK", "maybe", 1)
        closeCycle()
        awaitDeath()
      }
      #expect(
        end.lines.first
          == "Concourse: CONCOURSE_DEADLOCK=maybe is neither trap, report nor off; going on with trap")
      #expect(end.lines.count == 4, "\(end.lines)")
    }
  }
}

/// Makes two queues wait for each other.
/// - Returns: one of them, and a semaphore that is never signalled.
@discardableResult
private func closeCycle() -> (queue: DispatchQueue, end: DispatchSemaphore) {
  let (a, b) = (DispatchQueue(label: "A"), DispatchQueue(label: "B"))
  let both = Meeting(2)
  let ended = DispatchSemaphore(value: 0)
  a.async { both.meet { b.sync { _ = ended.signal() } } }
  b.async { both.meet { a.sync { _ = ended.signal() } } }
  return (a, ended)
}

private func ends(_ end: DispatchSemaphore, within seconds: Double) -> Bool {
  end.wait(timeout: .now() + seconds) == .success
}

/// Threads that go on when all of them have come.
private final class Meeting: Sendable {
  private let missing = DispatchGroup()

  init(_ count: Int) { for _ in 0..<count { missing.enter() } }

  func meet(_ goOn: () -> Void) {
    missing.leave()
    // With a time-out: a thread that comes late must not make the others register.
    _ = missing.wait(timeout: .now() + 60)
    goOn()
  }
}

/// A work item that several threads use.
// SAFETY: its closure is Sendable.
private struct UncheckedItem: @unchecked Sendable {
  let item: DispatchWorkItem

  init(_ item: DispatchWorkItem) { self.item = item }
}

extension Optional where Wrapped == ExitTest.Result {
  fileprivate var lines: [String] {
    String(decoding: self?.standardErrorContent ?? [], as: UTF8.self).split(separator: "\n").map(String.init)
  }

  /// Expects exactly this report of a deadlock. In the lines of the threads their ids read as N.
  fileprivate func reports(
    _ deadlock: String, _ threads: String..., sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let spoken = lines
    #expect(
      spoken.first == "Concourse: BUG IN CLIENT OF DISPATCH: deadlock: \(deadlock) [C115]",
      sourceLocation: sourceLocation)
    let expected = threads.map {
      "Concourse:   thread N " + $0
    }
    // The place differs with the build; it ends in module and offset.
    let plain = spoken.dropFirst().map {
      $0.replacing(#/thread \d+/#) { _ in "thread N" }.replacing(#/, in .*\+0x[0-9a-f]+\)?$/#, with: "")
    }
    #expect(
      spoken.dropFirst().allSatisfy {
        $0.contains(
          #/, in .*DeadlockCrashTests.* at [^ ]*DeadlockCrashTests[^ ]*\.swift:\d+ \(concoursePackageTests.*\+0x[0-9a-f]+\)$/#
        )
      },
      "\(spoken)", sourceLocation: sourceLocation)
    #expect(plain == expected, sourceLocation: sourceLocation)
  }
}

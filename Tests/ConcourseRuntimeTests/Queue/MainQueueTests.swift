import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  /// The main queue needs the main thread, so each test is a process of its own.
  @Suite("Main queue", .enabled(if: MainThreadLoan.isPossible))
  struct MainQueueTests {
    @Test("S36, S38, trap 18: dispatchMain runs kept and new items in order, on the main thread")
    func serves() async {
      await #expect(processExitsWith: .success) {
        let ran = Shared<[Int]>([])
        let elsewhere = Tally()
        let done = DispatchSemaphore(value: 0)
        for number in 0..<10 {
          DispatchQueue.main.async {
            if CurrentThread.id != UInt32(getpid()) { elsewhere.add() }
            ran.change { $0.append(number) }
          }
        }
        // Nothing runs before the main thread serves the queue, although the pool works.
        #expect(poolHadItsTurn())
        #expect(ran.value.isEmpty)
        MainThreadLoan.run { dispatchMain() }
        DispatchQueue.main.async {
          if CurrentThread.id != UInt32(getpid()) { elsewhere.add() }
          DispatchQueue.main.async { done.signal() }
        }
        #expect(comes(done))
        #expect(ran.value == Array(0..<10))
        #expect(elsewhere.value == 0)
        // The main thread sleeps now, and can be woken repeatedly.
        for _ in 0..<50 {
          DispatchQueue.main.async { done.signal() }
          #expect(comes(done))
        }
      }
    }

    @Test("S7, S11 synchronous items of the main queue, and of queues that end in it, run on the main thread")
    func synchronously() async {
      await #expect(processExitsWith: .success) {
        MainThreadLoan.run { dispatchMain() }
        let main = UInt32(getpid())
        let serial = DispatchQueue(label: "serial", target: .main)
        let concurrent = DispatchQueue(label: "concurrent", attributes: .concurrent, target: serial)
        for queue in [DispatchQueue.main, serial, concurrent] {
          #expect(queue.sync { CurrentThread.id } == main)
          #expect(queue.sync(flags: .barrier) { CurrentThread.id } == main)
          #expect(queue.asyncAndWait { CurrentThread.id } == main)
          #expect(queue.sync { DispatchQueue.currentLabel } == queue.label)
          let found = Shared<[UInt32]>([])
          let done = DispatchSemaphore(value: 0)
          queue.async { found.change { $0.append(CurrentThread.id) } }
          queue.async(flags: .barrier) {
            found.change { $0.append(CurrentThread.id) }
            done.signal()
          }
          #expect(comes(done))
          #expect(found.value == [main, main])
          // The item also counts as on the queue of the thread that waits for it.
          let outer = DispatchQueue(label: "outer")
          outer.sync {
            queue.sync {
              dispatchPrecondition(condition: .onQueue(.main))
              dispatchPrecondition(condition: .onQueueAsBarrier(.main))
              dispatchPrecondition(condition: .onQueue(outer))
            }
          }
        }
        struct Failed: Error {}
        #expect(throws: Failed.self) { try DispatchQueue.main.sync { throw Failed() } }
      }
    }

    @Test("S20 everything that ends in the main queue excludes everything else that does")
    func exclusion() async {
      await #expect(processExitsWith: .success) {
        MainThreadLoan.run { dispatchMain() }
        let serial = DispatchQueue(label: "serial", target: .main)
        let concurrent = DispatchQueue(label: "concurrent", attributes: .concurrent, target: .main)
        let sum = Unprotected(0)
        let group = DispatchGroup()
        let ended = onThreads(3) { thread in
          let queue = [DispatchQueue.main, serial, concurrent][thread]
          for _ in 0..<500 {
            queue.async(group: group) { sum.value += 1 }
            queue.sync { sum.value += 1 }
          }
        }
        #expect(ended && empties(group))
        #expect(DispatchQueue.main.sync { sum.value } == 3000)
      }
    }

    @Test("S13, S139 outside items the main thread is on the main queue")
    func outsideItems() async {
      await #expect(processExitsWith: .success) {
        let found = Shared<[String]>([])
        let done = DispatchSemaphore(value: 0)
        MainThreadLoan.run {
          dispatchPrecondition(condition: .onQueue(.main))
          dispatchPrecondition(condition: .onQueueAsBarrier(.main))
          let own = DispatchQueue(label: "own")
          own.sync { dispatchPrecondition(condition: .onQueue(.main)) }
          found.change { $0 = [DispatchQueue.currentLabel, own.sync { DispatchQueue.currentLabel }] }
          done.signal()
        }
        #expect(comes(done))
        #expect(found.value == ["com.apple.main-thread", "own"])
        #expect(DispatchQueue.currentLabel == "")
      }
    }

    @Test("S39, S40 a descriptor tells of work, and a drain runs what was there, not what that adds")
    func embedding() async {
      await #expect(processExitsWith: .success) {
        let descriptor = DispatchQueue.mainQueueDescriptor
        #expect(descriptor >= 0)
        #expect(DispatchQueue.mainQueueDescriptor == descriptor)
        #expect(fcntl(descriptor, F_GETFL) & O_NONBLOCK != 0)
        #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
        #expect(!isReadable(descriptor, within: 0))

        let ran = Shared<[String]>([])
        let seen = Shared<[[String]]>([])
        let readable = Shared<[Bool]>([])
        let done = DispatchSemaphore(value: 0)
        DispatchQueue.main.async {
          ran.change { $0.append("first") }
          DispatchQueue.main.async { ran.change { $0.append("added") } }
        }
        DispatchQueue.main.async { ran.change { $0.append("second") } }
        #expect(isReadable(descriptor, within: 20_000))
        MainThreadLoan.run {
          for _ in 0..<3 {
            DispatchQueue.drainMainQueue()
            seen.change { $0.append(ran.value) }
            readable.change { $0.append(isReadable(descriptor, within: 0)) }
          }
          DispatchQueue(label: "helper").async { DispatchQueue.main.async { done.signal() } }
          while !isReadable(descriptor, within: 20_000) {}
          DispatchQueue.drainMainQueue()
        }
        #expect(comes(done))
        #expect(
          seen.value == [["first", "second"], ["first", "second", "added"], ["first", "second", "added"]])
        #expect(readable.value == [true, false, false])
      }
    }

    @Test("S43 the process ends with work queued, delayed and under way, and does not wait for it")
    func abandoned() async {
      await #expect(processExitsWith: .success) {
        let started = DispatchSemaphore(value: 0)
        let queue = DispatchQueue(label: "busy")
        queue.async {
          started.signal()
          while true { pause() }
        }
        for _ in 0..<100 { queue.async { _exit(1) } }
        queue.asyncAfter(deadline: .now() + 3600) { _exit(1) }
        DispatchQueue.main.async { _exit(1) }
        #expect(comes(started))
      }
    }

    @Test("S39 a descriptor asked for when items wait already is readable")
    func lateDescriptor() async {
      await #expect(processExitsWith: .success) {
        DispatchQueue.main.async {}
        #expect(isReadable(DispatchQueue.mainQueueDescriptor, within: 20_000))
      }
    }
  }
}

/// Whether `descriptor` becomes readable within `milliseconds`.
private func isReadable(_ descriptor: Int32, within milliseconds: Int32) -> Bool {
  var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
  return poll(&entry, 1, milliseconds) == 1
}

/// Gives items that must not run every chance to run.
private func poolHadItsTurn() -> Bool {
  for _ in 0..<50 {
    let done = DispatchGroup()
    DispatchQueue.global().async(group: done) {}
    DispatchQueue(label: "sentinel").async(group: done) {}
    guard empties(done) else { return false }
  }
  return true
}

import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  /// The pool's size, and that an idle pool sleeps. Each test is a process of its own: nothing else uses the pool.
  @Suite("Pool")
  struct PoolTests {
    @Test("S143, S144 the pool grows past the processors within milliseconds when items sleep")
    func growth() async {
      await #expect(processExitsWith: .success) {
        let items = Sanitizer.isOn ? 24 : 64
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        let (input, output) = (ends[0], ends[1])
        let started = DispatchSemaphore(value: 0)
        let group = DispatchGroup()
        let begin = Clock.uptime()
        for _ in 0..<items {
          DispatchQueue.global().async(group: group) {
            started.signal()
            var byte: UInt8 = 0
            // Blocks in the kernel, without notice to the pool.
            _ = read(input, &byte, 1)
          }
        }
        for _ in 0..<items { #expect(comes(started)) }
        let spent = Clock.uptime() - begin
        #expect(PoolSize.threadCount >= items)
        #expect(write(output, [UInt8](repeating: 0, count: items), items) == items)
        #expect(empties(group))
        // One thread a second would take a minute.
        #expect(spent < 20 * 1_000_000_000)
      }
    }

    @Test("S143 events of a quiet process do not wake the monitor")
    func quietEvents() async {
      await #expect(processExitsWith: .success) {
        let fired = DispatchSemaphore(value: 0)
        let timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "timer"))
        timer.setEventHandler { fired.signal() }
        timer.activate()
        let events = 100
        for _ in 0..<events {
          timer.schedule(deadline: .now() + .milliseconds(1))
          #expect(comes(fired))
          // Two workers that are still active would need the monitor.
          while Runtime.shared.bands.contains(where: { $0.counters.snapshot.active > 0 }) {
            Processor.yield()
          }
        }
        // Rarely the loop's thread and a worker collect an event together: then two workers may run for a moment.
        let monitor = contextSwitches().first { $0.key.hasPrefix("concourse-watch") }
        #expect(monitor?.value[0] ?? 0 < events / 4)
      }
    }

    @Test("S144 a program's first worker comes alone; the monitor and the CPU quota wait for the second")
    func firstWorker() async {
      await #expect(processExitsWith: .success) {
        let done = DispatchSemaphore(value: 0)
        DispatchQueue.global().async { done.signal() }
        #expect(comes(done))
        #expect(PoolSize.threadCount == 1)
        #expect(Runtime.shared.monitor.isAbsent)
        #expect(!PoolSize.widthIsSettled)

        let goOn = Atomic<Bool>(false)
        let started = DispatchSemaphore(value: 0)
        DispatchQueue.global().async {
          started.signal()
          // ORDERING: relaxed; only ends the loop.
          while !goOn.load(ordering: .relaxed) { Processor.pause() }
          done.signal()
        }
        #expect(comes(started))
        DispatchQueue.global().async { done.signal() }
        #expect(!Runtime.shared.monitor.isAbsent)
        #expect(PoolSize.widthIsSettled || Processor.affinityCount == 1)
        // ORDERING: relaxed; as above.
        goOn.store(true, ordering: .relaxed)
        #expect(comes(done))
        #expect(comes(done))
      }
    }

    @Test("S144 a chain of items at a program's beginning needs one worker")
    func firstChain() async {
      await #expect(processExitsWith: .success) {
        let done = DispatchSemaphore(value: 0)
        DispatchQueue.global().async {
          let begin = Clock.uptime()
          DispatchQueue.global().async {
            let isAlone = PoolSize.threadCount == 1 && !PoolSize.widthIsSettled
            // The monitor looks after a millisecond, and makes a second worker if the first has lost its processor.
            #expect(isAlone || Clock.uptime() - begin > 1_000_000)
            done.signal()
          }
        }
        #expect(comes(done))
      }
    }

    /// Of two items the first worker defers one. The monitor brings it to another worker.
    @Test(
      "S144 what a program's first item has submitted runs while that item goes on", arguments: [1, 2],
      [false, true])
    func firstItemGoesOn(items: Int, blocks: Bool) async {
      await #expect(processExitsWith: .success) { [items, blocks] in
        let (done, ran, gate) = (DispatchSemaphore(value: 0), Tally(), DispatchSemaphore(value: 0))
        DispatchQueue.global().async {
          for _ in 0..<items {
            DispatchQueue.global().async {
              ran.add()
              gate.signal()
            }
          }
          if blocks { for _ in 0..<items { gate.wait() } } else { while ran.value < items {} }
          done.signal()
        }
        #expect(comes(done))
        #expect(PoolSize.threadCount > 1)
      }
    }

    @Test("S77, S144 items that compute run one for each processor")
    func computing() async {
      await #expect(processExitsWith: .success) {
        let inside = Tally()
        let most = Tally()
        let group = DispatchGroup()
        let begin = Clock.uptime()
        for _ in 0..<400 {
          DispatchQueue.global().async(group: group) {
            let now = inside.add()
            // No lock here: an item that sleeps on one does not compute, and its worker would be replaced.
            most.raise(to: now)
            for _ in 0..<2000 { Processor.pause() }
            inside.add(-1)
          }
        }
        #expect(empties(group))
        // For a moment the count may include a worker that replaces one given up as stuck, or one that was added
        // because for a tenth of a second the machine ran none of them.
        let stalls = Int((Clock.uptime() - begin) / 100_000_000)
        #expect(most.value <= PoolSize.width + 4 + stalls)
      }
    }

    @Test("S144 items that compute without end get more workers at ever longer times")
    func endless() async {
      await #expect(processExitsWith: .success) {
        let begun = Tally()
        for _ in 0..<PoolSize.width + 100 {
          DispatchQueue.global().async {
            begun.add()
            while true { Processor.pause() }
          }
        }
        precondition(awaitValue { begun.value > PoolSize.width })
        // The first comes 100 looks of a millisecond after the beginning, the second 200 after that, then 400, 800, 1,600 and
        // 3,200. On a busy machine looks take longer, and workers that had no processor for a while count as stuck. With
        // one worker each 100 looks there would be 60.
        let end = Clock.uptime() + 6_000_000_000
        while Clock.uptime() < end {}
        precondition(begun.value <= PoolSize.width + 40, "\(begun.value)")
        precondition(awaitValue { begun.value > PoolSize.width + 2 })
      }
    }

    @Test("S143 never more threads than the cap, and everything still runs", .enabled(if: !Sanitizer.isOn))
    func cap() async {
      await #expect(processExitsWith: .success) {
        // A band may have as many threads as there are processors, regardless of the cap.
        let cap = PoolSize.width + 10
        PoolSize.cap = cap
        let group = DispatchGroup()
        let most = Shared(0)
        // On a busy machine the items may have ended before the pool noticed that they sleep. Then submit more.
        let end = Clock.uptime() + 40_000_000_000
        repeat {
          for _ in 0..<200 {
            DispatchQueue.global().async(group: group) {
              let count = PoolSize.threadCount
              most.change { $0 = max($0, count) }
              // The item sleeps, so that the pool needs more threads.
              usleep(2000)
            }
          }
          #expect(empties(group))
        } while most.value <= PoolSize.width && Clock.uptime() < end
        #expect(most.value > PoolSize.width)
        // For a moment the count may include room that is reserved and given back.
        #expect(most.value <= cap + 1)
      }
    }

    @Test("S145 idle workers leave after five seconds, and come back when there is work")
    func shrink() async {
      await #expect(processExitsWith: .success) {
        let goOn = DispatchSemaphore(value: 0)
        let group = DispatchGroup()
        for qosClass in [DispatchQoS.QoSClass.default, .background] {
          for _ in 0..<16 {
            DispatchQueue.global(qos: qosClass).async(group: group) { #expect(comes(goOn)) }
          }
        }
        #expect(awaitValue { PoolSize.threadCount >= 32 })
        // Taken before the last of them becomes idle, however late this thread continues.
        let end = Clock.uptime()
        for _ in 0..<32 { goOn.signal() }
        #expect(empties(group))
        // All of them, unless this thread itself was delayed for that long.
        #expect(PoolSize.threadCount >= 32 || Clock.uptime() - end >= 4_500_000_000)
        // Looks rarely, so that it leaves the processors to the threads that should end.
        while PoolSize.threadCount > 0 && Clock.uptime() < end + 40_000_000_000 { usleep(50_000) }
        #expect(PoolSize.threadCount == 0)
        #expect(Clock.uptime() - end >= 4_500_000_000)
        let back = DispatchSemaphore(value: 0)
        DispatchQueue.global().async { back.signal() }
        #expect(comes(back))
        #expect(PoolSize.threadCount >= 1)
      }
    }

    /// The sanitizers' runtimes have threads and locks of their own.
    @Test(
      "an idle process is silent: no thread of ours wakes up, a timer far away or not (trap 13)",
      .enabled(if: !Sanitizer.isOn))
    func silence() async {
      await #expect(processExitsWith: .success) {
        let group = DispatchGroup()
        for qosClass in [DispatchQoS.QoSClass.userInitiated, .utility, .background] {
          for _ in 0..<50 { DispatchQueue.global(qos: qosClass).async(group: group) { usleep(200) } }
        }
        let queue = DispatchQueue(label: "later")
        queue.asyncAfter(deadline: .now() + 3600) {}
        queue.asyncAfter(wallDeadline: .now() + 3600) {}
        queue.asyncAfter(deadline: .now() + 0.001) { group.leave() }
        group.enter()
        #expect(empties(group))
        // The threads that must sleep, before any of them has been idle for so long that it ends.
        let threads = contextSwitches().keys
        // The monitor needs some ticks to see that nothing is left, and more on a busy machine.
        var before = contextSwitches()
        var after = before
        for _ in 0..<20 {
          usleep(200_000)
          before = contextSwitches()
          usleep(1_000_000)
          after = contextSwitches()
          if before == after { break }
        }
        #expect(before == after)
        for name in ["concourse-watch", "concourse-event"] {
          #expect(before.keys.contains { $0.hasPrefix(name) })
        }
        #expect(threads.contains { $0.hasPrefix("concourse-bg") })
      }
    }
  }
}

/// How often each thread of the pool and of the engine has slept, and was preempted, by name and id.
private func contextSwitches() -> [String: [Int]] {
  var found: [String: [Int]] = [:]
  guard let directory = opendir("/proc/self/task") else { return found }
  defer { closedir(directory) }
  while let entry = readdir(directory) {
    let id = withUnsafePointer(to: &entry.pointee.d_name) { name in
      name.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
    }
    let name = text(of: "/proc/self/task/\(id)/comm").split(separator: "\n").first.map(String.init) ?? ""
    guard name.hasPrefix("concourse"), !name.hasPrefix("concoursePackag") else { continue }
    found["\(name) \(id)"] = text(of: "/proc/self/task/\(id)/status").split(separator: "\n")
      .filter { $0.contains("ctxt_switches") }
      .compactMap { line in line.split(separator: "\t").last.flatMap { Int($0) } }
  }
  return found
}

import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  /// The pool's size and its silence, each in a process of its own, where nothing else uses the pool.
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
            // Blocks in the kernel, where the pool cannot see it coming.
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
            // No lock here: an item that sleeps for one is no computing item, and its worker is replaced.
            most.raise(to: now)
            for _ in 0..<2000 { Processor.pause() }
            inside.add(-1)
          }
        }
        #expect(empties(group))
        // A worker that is counted in for one that was taken for stuck shows for a moment; so does one added
        // when for a tenth of a second the machine had no processor for any of them.
        let stalls = Int((Clock.uptime() - begin) / 100_000_000)
        #expect(most.value <= PoolSize.width + 4 + stalls)
      }
    }

    @Test("S143 never more threads than the cap, and everything still runs", .enabled(if: !Sanitizer.isOn))
    func cap() async {
      await #expect(processExitsWith: .success) {
        // A band may have as many threads as there are processors, whatever the cap.
        let cap = PoolSize.width + 10
        PoolSize.cap = cap
        let group = DispatchGroup()
        let most = Shared(0)
        // On a busy machine the items may have ended before the pool has noticed that they sleep: then some more.
        let end = Clock.uptime() + 40_000_000_000
        repeat {
          for _ in 0..<200 {
            DispatchQueue.global().async(group: group) {
              let count = PoolSize.threadCount
              most.change { $0 = max($0, count) }
              // A pause of the item's own, to make the pool want more threads.
              usleep(2000)
            }
          }
          #expect(empties(group))
        } while most.value <= PoolSize.width && Clock.uptime() < end
        #expect(most.value > PoolSize.width)
        // Room that is reserved and given back again shows for a moment.
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
        // Before the last of them becomes idle, however late this thread hears of it.
        let end = Clock.uptime()
        for _ in 0..<32 { goOn.signal() }
        #expect(empties(group))
        // All of them, unless this thread itself was held up for so long.
        #expect(PoolSize.threadCount >= 32 || Clock.uptime() - end >= 4_500_000_000)
        // Looks once in a while, not to keep a processor from those who are to leave.
        while PoolSize.threadCount > 0 && Clock.uptime() < end + 40_000_000_000 { usleep(50_000) }
        #expect(PoolSize.threadCount == 0)
        #expect(Clock.uptime() - end >= 4_500_000_000)
        let back = DispatchSemaphore(value: 0)
        DispatchQueue.global().async { back.signal() }
        #expect(comes(back))
        #expect(PoolSize.threadCount >= 1)
      }
    }

    /// The sanitizers' run-times have threads and locks of their own.
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
        // The threads that are to be silent, before any of them has been idle for so long that it ends.
        let threads = contextSwitches().keys
        // The watchman takes some ticks to see that nothing is left, on a busy machine some more.
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

/// How often each thread of the pool and of the engine has given up a processor, by name and id.
private func contextSwitches() -> [String: [String]] {
  var found: [String: [String]] = [:]
  guard let directory = opendir("/proc/self/task") else { return found }
  defer { closedir(directory) }
  while let entry = readdir(directory) {
    let id = withUnsafePointer(to: &entry.pointee.d_name) { name in
      name.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
    }
    let name = text(of: "/proc/self/task/\(id)/comm").split(separator: "\n").first.map(String.init) ?? ""
    guard name.hasPrefix("concourse"), !name.hasPrefix("concoursePackag") else { continue }
    found["\(name) \(id)"] = text(of: "/proc/self/task/\(id)/status").split(separator: "\n")
      .filter { $0.contains("ctxt_switches") }.map(String.init)
  }
  return found
}

private func text(of path: String) -> String {
  let file = open(path, O_RDONLY | O_CLOEXEC)
  guard file >= 0 else { return "" }
  defer { close(file) }
  var bytes = [UInt8](repeating: 0, count: 4096)
  let count = read(file, &bytes, bytes.count)
  return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
}

import Glibc
import Testing

@testable import ConcourseRuntime

@Suite("Starvation", .serialized)
struct StarvationTests {
  @Test("S143 at the cap, with every thread waiting for a queue that no thread can drain, work goes on")
  func cap() async {
    await #expect(processExitsWith: .success) {
      PoolSize.cap = 4
      let queue = DispatchQueue(label: "test.starvation")
      let group = DispatchGroup()
      for _ in 0..<12 {
        DispatchQueue.global().async(group: group) {
          queue.async(group: group) {}
          queue.sync {}
        }
      }
      precondition(group.wait(timeout: .now() + .seconds(60)) == .success)
    }
  }

  @Test("S143 at the cap, what unblocks the threads runs although it came last")
  func gate() async {
    await #expect(processExitsWith: .success) {
      PoolSize.cap = 4
      let gate = DispatchSemaphore(value: 0)
      let group = DispatchGroup()
      for _ in 0..<8 {
        DispatchQueue(label: "test.starvation.gate").async(group: group) { gate.wait() }
      }
      DispatchQueue.global().async(group: group) { for _ in 0..<8 { gate.signal() } }
      precondition(group.wait(timeout: .now() + .seconds(60)) == .success)
    }
  }

  @Test(
    "S143 five thousand items that wait for the next one", .enabled(if: !Sanitizer.isOn),
    .enabled(if: grantedThreads >= 5_500, "the system grants fewer threads"))
  func fiveThousand() async {
    await #expect(processExitsWith: .success) {
      let gate = DispatchSemaphore(value: 0)
      let group = DispatchGroup()
      for _ in 0..<5_000 { DispatchQueue.global().async(group: group) { gate.wait() } }
      DispatchQueue.global().async(group: group) { for _ in 0..<5_000 { gate.signal() } }
      precondition(group.wait(timeout: .now() + .seconds(100)) == .success)
    }
  }

  @Test("the cap gives way after ten looks, by one thread at first, by more while no entry ends")
  func grants() {
    var starvation = Starvation()
    // As many threads as were granted, each running an entry.
    func nextGrant(threads: Int, begun: UInt32) -> Int? {
      for _ in 0..<9 where starvation.look(isBlocked: true, threads: threads, begun: begun) != nil {
        return nil
      }
      return starvation.look(isBlocked: true, threads: threads, begun: begun)
    }
    var threads = 512
    for count in 1...200 {
      let granted = nextGrant(threads: threads, begun: 7 &+ UInt32(threads))
      #expect(granted == threads + (count < 65 ? 1 : count < 129 ? 2 : count < 193 ? 4 : 8))
      threads = granted ?? threads
    }
    // One entry has ended, and its worker has begun another.
    #expect(nextGrant(threads: threads, begun: 8 &+ UInt32(threads)) == threads + 1)
    // An active worker makes the monitor begin its wait again.
    for _ in 0..<9 { _ = starvation.look(isBlocked: true, threads: threads, begun: 0) }
    #expect(starvation.look(isBlocked: false, threads: threads, begun: 0) == nil)
    #expect(nextGrant(threads: threads, begun: 0) != nil)
  }

  @Test("no band grows beyond what its counters hold")
  func counters() {
    #expect(!PoolSize.mayGrow(band: BandCounters.mostThreads, width: 1, starvationLimit: .max))
    let most = BandCounters.mostThreads
    let counters = BandCounters()
    let full = counters.apply(.init(active: most + 1, searching: most, threads: most))
    #expect([full.active, full.searching, full.parked, full.threads] == [most + 1, most, 0, most])
  }

  @Test(
    "S51 an item of any class runs beside classes that never run dry and queues that hand an item to and fro")
  func classes() async {
    await #expect(processExitsWith: .success) { everyClassRuns() }
  }

  @Test("S51 an item of any class runs beside all others on one processor")
  func classesOnOneProcessor() async {
    await #expect(processExitsWith: .success) {
      useOneProcessor()
      everyClassRuns()
    }
  }
}

/// How many more threads the system grants: by the limit of the user, which does not apply to root, and by those of the
/// control group and all above it.
private var grantedThreads: Int {
  var granted = Int.max
  var limit = rlimit()
  if geteuid() != 0, getrlimit(__rlimit_resource_t(__RLIMIT_NPROC.rawValue), &limit) == 0 {
    granted = Int(clamping: limit.rlim_cur)
  }
  CgroupTree.ofThisProcess(controller: "pids", root: "")?.forEachLevel { directory in
    func number(_ name: String) -> Int? {
      let text = CgroupTree.contents(of: directory + Array(name.utf8))
      return text.flatMap { Int(String(decoding: $0, as: UTF8.self)) }
    }
    if let most = number("/pids.max") { granted = min(granted, most - (number("/pids.current") ?? 0)) }
  }
  return granted
}

/// Each class in turn has ten items to run while the global queues of all others always have items, and two pairs of
/// serial queues stay in their workers' slots.
private func everyClassRuns() {
  let all: [DispatchQoS.QoSClass] = [.userInteractive, .userInitiated, .default, .utility, .background]
  for qosClass in all {
    let stop = Tally()
    let begun = Tally()
    let flooded = DispatchSemaphore(value: 0)
    let group = DispatchGroup()
    @Sendable func goesOn() -> Bool {
      for _ in 0..<200 { Processor.pause() }
      if begun.add() == 1000 { flooded.signal() }
      return stop.value == 0
    }
    @Sendable func feed(_ queue: DispatchQueue) {
      queue.async(group: group) { if goesOn() { feed(queue) } }
    }
    @Sendable func hop(_ queue: DispatchQueue, _ other: DispatchQueue) {
      queue.async(group: group) { if goesOn() { hop(other, queue) } }
    }
    for other in all where other != qosClass { for _ in 0..<16 { feed(.global(qos: other)) } }
    for _ in 0..<2 { hop(DispatchQueue(label: "left"), DispatchQueue(label: "right")) }
    precondition(comes(flooded))
    let ran = DispatchSemaphore(value: 0)
    for _ in 0..<10 { DispatchQueue.global(qos: qosClass).async { ran.signal() } }
    for _ in 0..<10 { precondition(comes(ran), "\(qosClass)") }
    stop.add()
    precondition(empties(group))
  }
}

/// Pins the process's first thread and this one, and threads that the pool makes later.
func useOneProcessor() {
  for thread in [getpid(), 0] { pin(thread, to: [processors(of: thread).first!]) }
  _ = PoolSize.refreshWidth()
  precondition(PoolSize.width == 1)
}

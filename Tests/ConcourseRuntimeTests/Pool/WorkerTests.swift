import Glibc
import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  /// The state of the threads that items run on.
  @Suite("Workers")
  struct WorkerTests {
    @Test(
      "S50, S144 each class runs in its band: by the thread's name and its nice value",
      arguments: [
        (.userInteractive, "concourse", -4), (.userInitiated, "concourse", -2), (.default, "concourse", 0),
        (.utility, "concourse-ut", 2), (.background, "concourse-bg", 10),
      ] as [(DispatchQoS.QoSClass, String, Int32)])
    func bands(qosClass: DispatchQoS.QoSClass, name: String, nice: Int32) {
      let done = DispatchSemaphore(value: 0)
      let base = threadNice()
      let found = Shared<[String]>([])
      DispatchQueue.global(qos: qosClass).async {
        let nice = threadNice()
        found.change { $0 = [threadName(), String(nice)] }
        done.signal()
      }
      #expect(comes(done))
      // Only some processes may raise their threads.
      let difference = Runtime.shared.bands[0].priority.mayRaise ? nice : max(nice, 0)
      #expect(found.value == [name, String(min(base + difference, 19))])
    }

    @Test("S50 a worker made for a higher class by a background item is not lowered with it")
    func notInherited() async {
      await #expect(processExitsWith: .success) {
        let found = Shared<[Int32]>([])
        let done = DispatchSemaphore(value: 0)
        // The background worker is the process's first thread of the pool.
        DispatchQueue.global(qos: .background).async {
          DispatchQueue.global(qos: .userInitiated).async {
            let nice = threadNice()
            found.change { $0.append(nice) }
            DispatchQueue.global(qos: .utility).async {
              let nice = threadNice()
              found.change { $0.append(nice) }
              done.signal()
            }
          }
        }
        #expect(comes(done))
        let raised: Int32 = Runtime.shared.bands[0].priority.mayRaise ? -2 : 0
        #expect(found.value == [threadNice() + raised, min(threadNice() + 2, 19)])
      }
    }

    // The address sanitizer cannot look for leaks in a process that has changed its user, and kills it.
    @Test(
      "S50 a thread that the program has lowered lowers no worker, and not the loop's thread",
      .disabled(if: Sanitizer.name == "address"))
    func loweredClient() async {
      await #expect(processExitsWith: .success) {
        // No thread of this process may be raised now.
        if getuid() == 0 { #expect(setuid(65534) == 0) }
        let base = threadNice()
        guard !Runtime.shared.bands[0].priority.mayRaise, base < 19 else { return }
        let begun = Tally()
        let rest = DispatchSemaphore(value: 0)
        for _ in 0..<2 {
          DispatchQueue.global().async {
            begun.add()
            rest.wait()
          }
        }
        #expect(awaitValue { begun.value == 2 && Runtime.shared.monitor.hasThread })
        let done = DispatchSemaphore(value: 0)
        startThread {
          #expect(setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 19) == 0)
          DispatchQueue.global().async {
            #expect(threadNice() == base)
            done.signal()
          }
          DispatchQueue(label: "later").asyncAfter(.milliseconds(1)) { done.signal() }
        }
        for _ in 0..<2 { #expect(comes(done)) }
        #expect(awaitValue { niceValues(ofThreads: "concourse-event").count == 1 })
        #expect(niceValues(ofThreads: "concourse-event") == [Int(base)])
      }
    }

    @Test("S50 threads of the engine have the process's scheduling policy, whichever thread needs them")
    func policy() async {
      await #expect(processExitsWith: .success) {
        let done = DispatchSemaphore(value: 0)
        startThread {
          var parameters = sched_param()
          // SCHED_BATCH
          #expect(sched_setscheduler(0, 3, &parameters) == 0)
          DispatchQueue.global().async {
            #expect(sched_getscheduler(0) == sched_getscheduler(getpid()))
            done.signal()
          }
        }
        #expect(comes(done))
      }
    }

    @Test("a thread that the program has pinned pins no worker, and does not make the pool small")
    func affinity() async {
      await #expect(processExitsWith: .success) {
        let width = processors(of: 0).count
        let done = DispatchSemaphore(value: 0)
        startThread {
          pin(0, to: [processors(of: 0).last!])
          DispatchQueue.global().async {
            #expect(processors(of: 0).count == width)
            #expect(Processor.affinityCount == width)
            #expect(PoolSize.width == width)
            done.signal()
          }
        }
        #expect(comes(done))
      }
    }

    @Test("S143 a new thread does not take over from an ended one that its items come from events")
    func reusedRecord() {
      let shared = Runtime.shared
      let band = Band(name: "test", level: .background, shared.bands[2].priority, shared.monitor)
      let worker = band.takeRecord()
      // ORDERING: relaxed, here and below; this test's own.
      worker.pointee.eventService.isOn.store(true, ordering: .relaxed)
      #expect(PoolSize.mayGrow(band: 0, width: 1, starvationLimit: 0))
      band.idleLock.withLock { band.retireRecord(worker) }
      #expect(band.takeRecord() == worker)
      let servesEvents = worker.pointee.eventService.isOn.load(ordering: .relaxed)
      #expect(!servesEvents)
      // Bands live as long as the process, and so do their records; this one does not.
      worker.deinitialize(count: 1)
      worker.deallocate()
    }

    @Test("the list of workers has those that have a thread, and a walk goes on from one that leaves it")
    func list() {
      let shared = Runtime.shared
      let band = Band(name: "test", level: .background, shared.bands[2].priority, shared.monitor)
      let workers = (0..<4).map { _ in band.takeRecord() }
      // ORDERING: relaxed, here and below; this test's own.
      for worker in workers { worker.pointee.progress.store(100, ordering: .relaxed) }
      var walk = band.workers
      #expect(walk.next() == workers[3])
      #expect(walk.next() == workers[2])
      func retire(_ place: Int) {
        #expect(PoolSize.mayGrow(band: 0, width: 1, starvationLimit: 0))
        band.idleLock.withLock { band.retireRecord(workers[place]) }
      }
      // The walk stands at workers[1].
      retire(1)
      #expect(Array(band.workers) == [workers[3], workers[2], workers[0]])
      #expect(walk.next() == workers[1])
      #expect(walk.next() == workers[0])
      #expect(walk.next() == nil)
      retire(3)
      retire(0)
      #expect(Array(band.workers) == [workers[2]])
      #expect(band.begunByFormer.load(ordering: .relaxed) == 300)
      #expect(band.takeRecord() == workers[0])
      #expect(Array(band.workers) == [workers[0], workers[2]])
      #expect(band.begunByFormer.load(ordering: .relaxed) == 200)
      // As in `reusedRecord`.
      for worker in workers { worker.deinitialize(count: 1).deallocate() }
    }

    @Test("S146 workers block all signals but faults and what a thread raises itself")
    func signals() {
      let open = Shared<Set<Int32>>([])
      let done = DispatchSemaphore(value: 0)
      DispatchQueue.global().async {
        var mask = sigset_t()
        pthread_sigmask(SIG_BLOCK, nil, &mask)
        // 32 and 33 belong to the C library; SIGKILL and SIGSTOP cannot be blocked.
        for number: Int32 in 1..<65 where ![SIGKILL, SIGSTOP, 32, 33].contains(number) {
          if sigismember(&mask, number) == 0 { open.change { _ = $0.insert(number) } }
        }
        done.signal()
      }
      #expect(comes(done))
      #expect(open.value == [SIGILL, SIGTRAP, SIGFPE, SIGBUS, SIGSEGV, SIGABRT, SIGPIPE, SIGPROF, SIGSYS])
    }

    @Test("S146 a signal to the process goes to a thread of the application, once")
    func processSignal() async {
      await #expect(processExitsWith: .success) {
        let done = DispatchSemaphore(value: 0)
        DispatchQueue.concurrentPerform(iterations: 100) { _ in Processor.yield() }
        signal(SIGUSR2) { _ in
          if WorkerThread.current != nil { _exit(3) }
          signalsSeen.add()
        }
        _ = signalsSeen.value
        // A worker raises the signal, and still does not receive it.
        DispatchQueue.global().async {
          kill(getpid(), SIGUSR2)
          done.signal()
        }
        #expect(comes(done))
        let deadline = Clock.uptime() + 120_000_000_000
        while signalsSeen.value == 0 && Clock.uptime() < deadline { Processor.yield() }
        #expect(signalsSeen.value == 1)
      }
    }
  }
}

private let signalsSeen = Tally()

/// The calling thread's nice value.
func threadNice() -> Int32 { getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0) }

/// The nice values of the process's threads of a name.
private func niceValues(ofThreads name: String) -> [Int] {
  guard let directory = opendir("/proc/self/task") else { return [] }
  defer { closedir(directory) }
  var found: [Int] = []
  while let entry = readdir(directory) {
    let id = withUnsafePointer(to: &entry.pointee.d_name) { name in
      name.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
    }
    let line = text(of: "/proc/self/task/\(id)/stat")
    guard line.contains("(\(name))"), let end = line.lastIndex(of: ")") else { continue }
    // The 19th field; the third follows the name.
    found.append(Int(line[end...].split(separator: " ")[17])!)
  }
  return found
}

/// The calling thread's name.
func threadName() -> String {
  var name = [CChar](repeating: 0, count: 17)
  name.withUnsafeMutableBytes { bytes in
    let file = open("/proc/thread-self/comm", O_RDONLY)
    if file >= 0 { _ = read(file, bytes.baseAddress, 16) }
    close(file)
  }
  return String(decoding: name.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

// SAFETY: the functions take a thread, a size in bytes and a set of processors; the headers show them to GNU C only.
private typealias AffinityCall = @convention(c) (pid_t, Int, UnsafeMutableRawPointer) -> Int32
private func affinityCall(_ name: String) -> AffinityCall {
  unsafeBitCast(dlsym(nil, name), to: AffinityCall.self)
}

/// The processors that a thread may use; 0 stands for the calling thread.
func processors(of thread: pid_t) -> [Int] {
  var set = [UInt8](repeating: 0, count: 128)
  precondition(affinityCall("sched_getaffinity")(thread, set.count, &set) >= 0)
  return (0..<set.count * 8).filter { set[$0 / 8] >> ($0 % 8) & 1 != 0 }
}

/// Lets a thread use these processors only.
func pin(_ thread: pid_t, to processors: [Int]) {
  var set = [UInt8](repeating: 0, count: 128)
  for processor in processors { set[processor / 8] |= 1 << (processor % 8) }
  precondition(affinityCall("sched_setaffinity")(thread, set.count, &set) == 0)
}

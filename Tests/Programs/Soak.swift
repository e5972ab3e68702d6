// Everything at once, for minutes or hours: stations use the interface and check what they see, while the
// conditions change (Disturbance.swift). It counts items exactly, and compares memory, descriptors and
// threads with its first rest.

#if CONCOURSE
  import ConcourseEvents
  import Glibc
  import Synchronization

  /// A number that many threads add to.
  final class Tally: Sendable {
    private let count = Atomic<Int>(0)

    // ORDERING: relaxed; who needs the exact number has waited for the adders by other means.
    var value: Int { count.load(ordering: .relaxed) }

    @discardableResult
    func add(_ amount: Int = 1) -> Int {
      // ORDERING: relaxed; as above.
      count.wrappingAdd(amount, ordering: .relaxed).newValue
    }
  }

  /// A plain variable that the queue under test must protect.
  final class Unprotected<Value>: @unchecked Sendable {
    // SAFETY (@unchecked Sendable): OWNED BY the item that runs; that this holds is what is tested.
    var value: Value
    init(_ value: Value) { self.value = value }
  }

  final class Soak: Sendable {
    let submitted = Tally()
    let ran = Tally()
    let programs = Tally()
    let refused = Tally()
    let faults = Tally()
    /// 0 while stations run, 1 while they must pause, 2 when they must end.
    private let command = Atomic<Int>(0)
    private let paused = Tally()
    private let rounds: [Tally]
    private let stations: [(name: String, round: @Sendable (Soak, inout Dice) -> Int)]

    private init() {
      stations = Self.allStations.filter { !Self.isSanitized || $0.name != "signals" }
      rounds = stations.map { _ in Tally() }
    }

    /// Notes what is broken. The run goes on, and fails.
    func expect(_ condition: Bool, _ text: @autoclosure () -> String) {
      if !condition, faults.add() < 20 { say("! \(text())") }
    }

    // MARK: - The run

    static var isSanitized: Bool { getenv("CONCOURSE_SANITIZER") != nil }

    static func run(minutes: Double, seed: UInt64) -> Bool {
      say("soak for \(minutes) minutes, seed \(seed)")
      let soak = Soak()
      for number in soak.stations.indices {
        Executor.startThread { soak.work(number, Dice(seed: seed &+ UInt64(number))) }
      }
      let disturbance = Disturbance(soak, Dice(seed: seed ^ 0xD157))
      let (start, end) = (now(), now() + minutes * 60)
      var first: Gauges?
      var memory: [Int] = []
      var rest = start + min(30, minutes * 6)
      while true {
        guard soak.runs(until: min(rest, end), disturbance) else { return false }
        soak.command.store(1, ordering: .sequentiallyConsistent)  // ORDERING: any would do; a polled flag.
        guard soak.comesToRest() else { return false }
        let gauges = Gauges.atRest(atMost: first?.threads)
        let counts = "\(soak.ran.value) of \(soak.submitted.value) items, \(soak.programs.value) programs"
        say("\(Int(now() - start)) s: \(counts), \(gauges)")
        soak.expect(soak.ran.value == soak.submitted.value, "items are lost or ran twice")
        memory.append(gauges.kibibytes)
        if let first, !isSanitized {
          soak.expect(gauges.descriptors <= first.descriptors, "descriptors are left open")
          soak.expect(gauges.threads <= first.threads, "threads are left")
        }
        first = first ?? gauges
        if now() >= end { break }
        rest = now() + max(20, min(300, minutes * 6))
        soak.command.store(0, ordering: .sequentiallyConsistent)  // ORDERING: any would do; a polled flag.
      }
      disturbance.finish()
      // What malloc keeps for the next burst varies; a leak of one byte in a hundred items is more than this an hour.
      let growth = memory.suffix(3).min()! - memory[0]
      if !isSanitized { soak.expect(growth < 8 * 1024, "the memory has grown by \(growth) KiB") }
      say(disturbance.report)
      let names = zip(soak.stations, soak.rounds).map { "\($0.name) \($1.value)" }
      say("rounds: \(names.joined(separator: ", ")); calls that the system refused: \(soak.refused.value)")
      let count = soak.faults.value
      say("\(soak.ran.value) items in \(Int(now() - start)) s")
      say("\(count == 0 ? 1 : 0) passed, \(count == 0 ? 0 : 1) failed")
      return count == 0
    }

    static func now() -> Double {
      var time = timespec()
      clock_gettime(CLOCK_MONOTONIC, &time)
      return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    private func work(_ number: Int, _ dice: Dice) {
      var dice = dice
      while true {
        switch command.load(ordering: .sequentiallyConsistent) {  // ORDERING: any would do; a polled flag.
        case 0:
          let count = stations[number].round(self, &dice)
          submitted.add(count)
          rounds[number].add()
        default:
          paused.add()
          // ORDERING: any would do; a polled flag.
          while command.load(ordering: .sequentiallyConsistent) == 1 { usleep(20_000) }
          paused.add(-1)
        }
      }
    }

    /// Disturbs the stations until `end`. Returns false if one of them makes no progress.
    private func runs(until end: Double, _ disturbance: Disturbance) -> Bool {
      var seen = rounds.map(\.value)
      var since = [Double](repeating: Self.now(), count: rounds.count)
      while Self.now() < end {
        disturbance.once()
        for (number, tally) in rounds.enumerated() {
          let value = tally.value
          if value != seen[number] {
            (seen[number], since[number]) = (value, Self.now())
          } else if Self.now() - since[number] > 120 {
            say("! the station \(stations[number].name) hangs after \(value) rounds")
            return false
          }
        }
      }
      disturbance.restore()
      return true
    }

    private func comesToRest() -> Bool {
      let end = Self.now() + 180
      while paused.value < stations.count {
        guard Self.now() < end else {
          say("! stations do not come to rest: \(zip(stations, rounds).map { "\($0.name) \($1.value)" })")
          return false
        }
        usleep(20_000)
      }
      return true
    }

    /// Waits in a station. A wait that takes too long is a lost item.
    func comes(_ semaphore: DispatchSemaphore, _ name: String) {
      expect(semaphore.wait(timeout: .now() + .seconds(100)) == .success, "\(name): a signal is lost")
    }

    func empties(_ group: DispatchGroup, _ name: String) {
      expect(group.wait(timeout: .now() + .seconds(100)) == .success, "\(name): a group does not empty")
    }
  }

  // MARK: - What must come back

  /// What the process holds while nothing runs.
  private struct Gauges: CustomStringConvertible {
    var kibibytes = 0
    var descriptors = 0
    var threads = 0

    var description: String { "\(kibibytes) KiB, \(descriptors) descriptors, \(threads) threads" }

    /// Waits until idle workers have ended, at least six seconds, and measures.
    static func atRest(atMost threads: Int?) -> Gauges {
      sleep(6)
      for _ in 0..<100 {
        guard let threads, count("/proc/self/task") > threads else { break }
        usleep(100_000)
      }
      // SAFETY: the type of glibc's `malloc_trim`.
      _ = unsafeBitCast(dlsym(nil, "malloc_trim"), to: (@convention(c) (Int) -> Int32).self)(0)
      var gauges = Gauges(descriptors: count("/proc/self/fd"), threads: count("/proc/self/task"))
      // Pages: size, resident, shared.
      if let file = fopen("/proc/self/statm", "r") {
        var line = [CChar](repeating: 0, count: 200)
        fgets(&line, Int32(line.count), file)
        fclose(file)
        let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let pages = text.split(separator: " ").compactMap { Int($0) }
        if pages.count > 2 { gauges.kibibytes = (pages[1] - pages[2]) * Int(getpagesize()) / 1024 }
      }
      return gauges
    }

    private static func count(_ folder: String) -> Int { Disturbance.names(in: folder).count }
  }
#else
  enum Soak {
    static func run(minutes: Double, seed: UInt64) -> Bool {
      say("soak: only with Concourse")
      return false
    }
  }
#endif

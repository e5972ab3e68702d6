import Glibc

@testable import ConcourseEvents
@testable import ConcourseRuntime

/// One refusal: of the calls with this name, the one with this number fails. The first has number 1.
struct Refusal: CustomStringConvertible, Sendable {
  let call: SystemCall
  let number: Int
  let errno: Int32

  var description: String { "\(call) #\(number) errno \(errno) (\(String(cString: strerror(errno))))" }

  func isOne(of errors: [SystemCall: Set<Int32>]) -> Bool { errors[call]?.contains(errno) ?? false }

  /// The trap that the contract allows: the runtime's own descriptors were closed, or became something else.
  var allowedTrap: String? {
    switch (call, errno) {
    case (.epollWait, EBADF), (.epollWait, EINVAL): "the program closed descriptor"
    case (.epollWait, _): "epoll_wait failed with errno \(errno)"
    case (.close, EBADF): "was closed by others"
    default: nil
    }
  }
}

/// The run of a scenario in a forked child, whose runtime is new. What the scenario demands ends the process if it does
/// not hold; standard error says why.
struct FaultTrial {
  /// Nil in a run in which every call succeeds.
  let refusal: Refusal?

  func demand(_ condition: Bool, _ text: @autoclosure () -> String) {
    if !condition { fail(text()) }
  }

  func fail(_ text: String) -> Never {
    let line = "FAILED: \(text)\n"
    _ = line.withCString { write(STDERR_FILENO, $0, line.utf8.count) }
    _exit(3)
  }

  /// Whether the contract lets this refusal silence what the scenario does.
  func isSilenced(by errors: [SystemCall: Set<Int32>]) -> Bool { refusal?.isOne(of: errors) ?? false }

  /// Waits for a signal without a limit: the parent ends a child that hangs.
  func await(_ semaphore: DispatchSemaphore) { semaphore.wait() }

  /// What an operation of a channel may end with.
  func allows(error: Int32) -> Bool { error == 0 || error == refusal?.errno }

  /// Everything is set up, and nothing happens: demands that nothing spins.
  func idle() {
    // A thread that has run out of work may spin for a moment; one that spins without end does so each time.
    for _ in 0..<5 {
      let (begun, used) = (Clock.uptime(), Self.processorTime)
      usleep(5_000)
      if (Self.processorTime - used) * 2 < Clock.uptime() - begun { return }
    }
    fail("threads spin while nothing happens")
  }

  private static var processorTime: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  /// How many descriptors of each kind are open: "anon_inode:[eventpoll]", for example.
  static var descriptors: [String: Int] {
    var kinds: [String: Int] = [:]
    guard let directory = opendir("/proc/self/fd") else { return kinds }
    defer { closedir(directory) }
    while let entry = readdir(directory) {
      // SAFETY: the entry is alive until the next call of `readdir`; the name is copied.
      let name = withUnsafeBytes(of: &entry.pointee.d_name) {
        String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
      }
      guard let number = Int32(name), number != dirfd(directory) else { continue }
      var target = [CChar](repeating: 0, count: 256)
      guard readlink("/proc/self/fd/\(number)", &target, 255) > 0 else { continue }
      let text = String(decoding: target.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      // A socket or pipe has its number behind a colon.
      let kind = text.hasPrefix("anon") ? Substring(text) : text.prefix { $0 != ":" }
      kinds[String(kind), default: 0] += 1
    }
    return kinds
  }

  static var threads: Int {
    guard let directory = opendir("/proc/self/task") else { return 0 }
    defer { closedir(directory) }
    var count = 0
    while readdir(directory) != nil { count += 1 }
    return count - 2
  }
}

/// What the run of a scenario without a refusal has shown.
struct FaultBaseline {
  /// How often each call was made.
  var counts: [SystemCall: Int] = [:]
  /// The descriptors that were open after two runs.
  var descriptors: [String: Int] = [:]
  var threads = 0

  /// Runs the scenario in this process twice, and prints the baseline on standard error. Does not return.
  static func measure(_ scenario: FaultScenario) -> Never {
    // No refusal: calls are counted from here on.
    SystemScript.refuse(.map, with: 0, times: 0)
    scenario.run(FaultTrial(refusal: nil))
    let counts = SystemCall.allCases.map { ($0, SystemScript.count($0)) }
    SystemScript.clear()
    scenario.run(FaultTrial(refusal: nil))
    var text = ""
    for (call, count) in counts { text += "call \(call.rawValue) \(count)\n" }
    for (kind, count) in FaultTrial.descriptors { text += "descriptor \(count) \(kind)\n" }
    text += "threads \(FaultTrial.threads)\n"
    _ = text.withCString { write(STDERR_FILENO, $0, text.utf8.count) }
    _exit(0)
  }

  init?(_ text: String) {
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ", maxSplits: 2).map(String.init)
      switch words.first {
      case "call": counts[SystemCall(rawValue: UInt8(words[1])!)!] = Int(words[2])
      case "descriptor": descriptors[words[2]] = Int(words[1])
      case "threads": threads = Int(words[1]) ?? 0
      default: return nil
      }
    }
    if threads == 0 { return nil }
  }

  /// Every refusal of every call.
  func refusals(of scenario: FaultScenario) -> [Refusal] {
    SystemCall.allCases.flatMap { call in
      (0..<(counts[call] ?? 0)).flatMap { index in
        call.manualErrors.sorted().map { Refusal(call: call, number: index + 1, errno: $0) }
      }
    }.filter { !scenario.watchesOwnDescriptors || !$0.isOne(of: [.epollControl: [EBADF]]) }
  }

  /// Runs the scenario in this process with the refusal, then without one. Does not return.
  func check(_ scenario: FaultScenario, _ refusal: Refusal) -> Never {
    let trial = FaultTrial(refusal: refusal)
    SystemScript.refuse(refusal.call, with: refusal.errno, times: 1, after: refusal.number - 1)
    scenario.run(trial)
    let wasMet = SystemScript.count(refusal.call) >= refusal.number
    SystemScript.clear()
    // The program goes on as if nothing had happened.
    scenario.run(FaultTrial(refusal: nil))
    // Other threads close the last descriptors; workers that a loaded machine made too many end after a while.
    let deadline = Clock.uptime() + 40_000_000_000
    while true {
      let (more, count) = (surplus, FaultTrial.threads)
      if more.isEmpty && count <= threads + 4 { break }
      trial.demand(
        Clock.uptime() < deadline,
        "open descriptors that were closed otherwise: \(more); \(count) threads instead of \(threads)")
      usleep(1_000)
    }
    _exit(wasMet ? 0 : 4)
  }

  private var surplus: [String: Int] {
    var allowed = descriptors
    if allowed["anon_inode:[eventpoll]"] == nil {
      // Only the refusal made the scenario use the event loop, and perhaps the ring.
      for (kind, count) in ["eventpoll": 1, "timerfd": 2, "eventfd": 2, "io_uring": 1] {
        allowed["anon_inode:[\(kind)]", default: 0] += count
      }
    }
    return FaultTrial.descriptors.filter { $0.value > allowed[$0.key] ?? 0 }
  }
}

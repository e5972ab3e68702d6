internal import CConcourse
internal import Glibc

/// Reports once that a process has ended or, for a child, that it can be reaped. Never reaps it.
///
/// A descriptor (pidfd) holds the process from the beginning, so a reuse of its number does no harm. Without a
/// descriptor the process is polled, at growing intervals.
final class ProcessExit {
  private enum Outcome {
    case running
    case ended
  }

  private enum State {
    case idle
    /// The watch and the timer retain this object.
    case observing(report: @Sendable () -> Void, watch: FileWatch?, timer: LoopTimer, wait: UInt64)
    /// Reported, or stopped.
    case over
  }

  private let identifier: pid_t
  /// The pidfd, or the negated errno of opening it.
  private let descriptor: Int32
  /// The start time of the process in clock ticks; tells it from a later process with the same number.
  private let birth: UInt64?
  private let lock = Lock(.processExit)
  // GUARDED BY `lock`.
  private var state = State.idle

  /// Call under the lock.
  private var isOver: Bool {
    switch state {
    case .over: true
    case .idle, .observing: false
    }
  }

  /// The pauses between two checks of a process without descriptor, in nanoseconds.
  private static let shortestPause: UInt64 = 1_000_000
  private static let longestPause: UInt64 = 20_000_000

  init(identifier: pid_t) {
    self.identifier = identifier
    descriptor = Int32(System.openProcess(identifier))
    birth = descriptor < 0 ? ProcessStatus(of: identifier)?.birth : nil
  }

  deinit {
    if descriptor >= 0 { _ = System.close(descriptor) }
  }

  /// Starts to observe. Call once.
  /// - Parameter report: called once, on a polling thread or during this call.
  func begin(_ report: @escaping @Sendable () -> Void) {
    let timer = LoopTimer(owner: self)
    let watch = descriptor >= 0 ? FileWatch(descriptor: descriptor, interest: .read, owner: self) : nil
    lock.withLock {
      state = .observing(report: report, watch: watch, timer: timer, wait: Self.shortestPause)
    }
    if let watch {
      _ = watch.install()
    } else {
      check()
    }
  }

  func end() {
    let last = lock.withLock { () -> State in
      defer { state = .over }
      return state
    }
    if case .observing(_, let watch, let timer, _) = last {
      watch?.remove()
      timer.cancel()
    }
  }

  /// Checks the process: reports its end, or schedules the next check.
  private func check() {
    let outcome = currentOutcome()
    lock.lock()
    guard case .observing(let report, let watch, let timer, let wait) = state else { return lock.unlock() }
    switch outcome {
    case .running:
      state = .observing(report: report, watch: watch, timer: timer, wait: min(wait * 2, Self.longestPause))
      lock.unlock()
      timer.set(.uptime(Clock.uptime() &+ wait))
      // `end` may have run in between and found the timer not yet set.
      if lock.withLock({ isOver }) { timer.cancel() }
    case .ended:
      state = .over
      lock.unlock()
      watch?.remove()
      timer.cancel()
      report()
    }
  }

  // MARK: Checks

  private func currentOutcome() -> Outcome {
    // The process had ended before the source was made. A process that has the number now is another.
    if descriptor == -ESRCH { return .ended }
    return switch reapable() {
    case 1: .ended
    case 0: descriptor < 0 && isReused(ProcessStatus(of: identifier)) ? .ended : .running
    // Not a child of ours, or one that the kernel reaps by itself.
    default: descriptor >= 0 ? .ended : outcomeOfUnrelated()
    }
  }

  /// Whether the number now belongs to a process that began later than ours.
  private func isReused(_ status: ProcessStatus?) -> Bool {
    guard let birth, let status else { return false }
    return status.birth != birth
  }

  /// The result of `concourse_process_look`.
  private func reapable() -> Int {
    if descriptor >= 0 {
      let found = System.lookAtProcess(descriptor: descriptor, 0)
      // Kernels before 5.4 cannot wait by descriptor.
      if found != -Int(EINVAL) { return found }
    }
    return System.lookAtProcess(descriptor: -1, identifier)
  }

  /// Checks a process that is not a child. Called only without a descriptor, which would have reported the end.
  private func outcomeOfUnrelated() -> Outcome {
    let found = System.testProcess(identifier)
    if found == -Int(ESRCH) { return .ended }
    // Without /proc the end of such a process is noticed when its parent has reaped it.
    guard let status = ProcessStatus(of: identifier) else { return .running }
    return status.hasEnded || isReused(status) ? .ended : .running
  }
}

extension ProcessExit: FileWatchOwner, TimerOwner {
  func fileIsReady(_ watch: FileWatch) {
    // The pidfd of a traced child is readable before the tracer lets the child be reaped. The timer then goes on.
    check()
  }

  func timerIsDue(_ timer: LoopTimer) { check() }
}

// SAFETY: `state` is GUARDED BY `lock`; the rest is constant.
extension ProcessExit: @unchecked Sendable {}

/// What /proc says of a process.
struct ProcessStatus: Equatable {
  /// Whether the process has ended and waits to be reaped.
  let hasEnded: Bool
  /// The start time, in clock ticks since boot.
  let birth: UInt64

  /// Reads /proc/*id*/stat; nil if there is no such process, or the file cannot be read.
  init?(of identifier: Int32) {
    var text: [UInt8] = []
    // The file is one line, unless the program's name contains newlines.
    CgroupTree.forEachLine(of: Array("/proc/\(identifier)/stat".utf8)) { line in
      text += line
      return true
    }
    self.init(text)
  }

  /// Parses the text of a `stat` file; nil if it is malformed.
  init?(_ text: [UInt8]) {
    // The name in parentheses may contain parentheses: the other fields follow the last one.
    guard let nameEnd = text.lastIndex(of: UInt8(ascii: ")")) else { return nil }
    let fields = text[(nameEnd + 1)...].split(separator: UInt8(ascii: " "))
    // `fields` begins with the state, field 3 of the line; the start time is field 22.
    guard fields.count > 19, let state = fields[0].first,
      let birth = UInt64(String(decoding: fields[19], as: UTF8.self))
    else { return nil }
    hasEnded = state == UInt8(ascii: "Z") || state == UInt8(ascii: "X")
    self.birth = birth
  }
}

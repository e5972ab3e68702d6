internal import CConcourse
internal import Glibc

/// Tells once when a process has ended; for a child, when it can be reaped. Never reaps it.
///
/// The process is held by a descriptor (pidfd) from the beginning, so that its number may be used again
/// meanwhile. Without one, the process is looked at again and again, more seldom the longer it lives.
final class ProcessExit {
  /// How a look at the process turns out.
  private enum Look {
    case running
    case ended
  }

  private enum State {
    case idle
    /// The watch and the timer hold this object.
    case observing(report: @Sendable () -> Void, watch: FileWatch?, timer: LoopTimer, wait: UInt64)
    /// Told, or asked to stop.
    case over
  }

  private let identifier: pid_t
  /// The pidfd, or what opening one failed with, negated.
  private let descriptor: Int32
  /// When the process began, in a unit of the kernel's: another process of that number has another.
  private let birth: UInt64?
  private let lock = Lock()
  // GUARDED BY `lock`.
  private var state = State.idle

  /// Call under the lock.
  private var isOver: Bool {
    switch state {
    case .over: true
    case .idle, .observing: false
    }
  }

  /// The pauses between looks at a process without descriptor.
  private static let shortestPause: UInt64 = 1_000_000
  private static let longestPause: UInt64 = 20_000_000

  init(identifier: pid_t) {
    self.identifier = identifier
    descriptor = Int32(System.call(.processOpen) { Int(concourse_process_open(identifier)) })
    birth = descriptor < 0 ? ProcessStatus(of: identifier)?.birth : nil
  }

  deinit {
    if descriptor >= 0 { _ = System.call(.close) { System.result(Glibc.close(descriptor)) } }
  }

  /// Begins to observe. To be called once.
  /// - Parameter report: called once, on the thread that polls or during this call.
  func begin(_ report: @escaping @Sendable () -> Void) {
    let timer = LoopTimer(owner: self)
    let watch = descriptor >= 0 ? FileWatch(descriptor: descriptor, interest: .read, owner: self) : nil
    lock.withLock {
      state = .observing(report: report, watch: watch, timer: timer, wait: Self.shortestPause)
    }
    if let watch {
      _ = watch.install()
    } else {
      lookAgain()
    }
  }

  /// Ends observing.
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

  /// Reports the end, or looks again after a while.
  private func lookAgain() {
    let look = lookNow()
    lock.lock()
    guard case .observing(let report, let watch, let timer, let wait) = state else { return lock.unlock() }
    switch look {
    case .running:
      state = .observing(report: report, watch: watch, timer: timer, wait: min(wait * 2, Self.longestPause))
      lock.unlock()
      timer.set(.uptime(Clock.uptime() &+ wait))
      // `end` may have come between, and found the timer not yet set.
      if lock.withLock({ isOver }) { timer.cancel() }
    case .ended:
      state = .over
      lock.unlock()
      watch?.remove()
      timer.cancel()
      report()
    }
  }

  // MARK: Looking

  private func lookNow() -> Look {
    // It had gone when the source was made, whatever has that number now.
    if descriptor == -ESRCH { return .ended }
    return switch reapable() {
    case 1: .ended
    case 0: descriptor < 0 && isAnother(ProcessStatus(of: identifier)) ? .ended : .running
    // No child of ours, or one that nobody needs to reap.
    default: descriptor >= 0 ? .ended : lookFromOutside()
    }
  }

  /// Whether the number now belongs to a process that began later than the one meant.
  private func isAnother(_ status: ProcessStatus?) -> Bool {
    guard let birth, let status else { return false }
    return status.birth != birth
  }

  /// What `concourse_process_look` says.
  private func reapable() -> Int {
    if descriptor >= 0 {
      let found = System.call(.processWait) { Int(concourse_process_look(descriptor, 0)) }
      // Kernels before 5.4 cannot wait by descriptor.
      if found != -Int(EINVAL) { return found }
    }
    return System.call(.processWait) { Int(concourse_process_look(-1, identifier)) }
  }

  /// The look at a stranger: asked only without a descriptor, which would have told.
  private func lookFromOutside() -> Look {
    let found = System.call(.processWait) { System.result(kill(identifier, 0)) }
    if found == -Int(ESRCH) { return .ended }
    // Without /proc a dead stranger is noticed when its parent has reaped it.
    guard let status = ProcessStatus(of: identifier) else { return .running }
    return status.hasEnded || isAnother(status) ? .ended : .running
  }
}

extension ProcessExit: FileWatchOwner, TimerOwner {
  func fileIsReady(_ watch: FileWatch) {
    // Readable, and yet a traced child cannot be reaped before its tracer lets go: then the timer goes on.
    lookAgain()
  }

  func timerIsDue(_ timer: LoopTimer) { lookAgain() }
}

// SAFETY: the state is GUARDED BY `lock`, the rest is constant.
extension ProcessExit: @unchecked Sendable {}

/// What the kernel's file system says of a process.
struct ProcessStatus: Equatable {
  /// Whether it has ended and only waits to be reaped.
  let hasEnded: Bool
  /// When it began, in ticks since boot.
  let birth: UInt64

  /// nil if there is no such process, or nothing can be read of it.
  init?(of identifier: Int32) {
    var text: [UInt8] = []
    // One line, unless the program's name has newlines in it.
    CgroupTree.forEachLine(of: Array("/proc/\(identifier)/stat".utf8)) { line in
      text += line
      return true
    }
    self.init(text)
  }

  /// Reads the line of a `stat` file; nil if it is none.
  init?(_ text: [UInt8]) {
    // The name in parentheses may itself contain anything: the fields go on after the last one.
    guard let nameEnd = text.lastIndex(of: UInt8(ascii: ")")) else { return nil }
    let fields = text[(nameEnd + 1)...].split(separator: UInt8(ascii: " "))
    // The first field here is the third of the line, the state; the beginning is the 22nd.
    guard fields.count > 19, let state = fields[0].first,
      let birth = UInt64(String(decoding: fields[19], as: UTF8.self))
    else { return nil }
    hasEnded = state == UInt8(ascii: "Z") || state == UInt8(ascii: "X")
    self.birth = birth
  }
}

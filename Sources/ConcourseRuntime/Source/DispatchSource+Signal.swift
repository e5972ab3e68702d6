internal import CConcourse
internal import Glibc

extension DispatchSource {
  /// Creates a source that calls its handler when a signal has been delivered to the process.
  ///
  /// `data` counts the deliveries since the last call; every source for the signal is called. Activation
  /// replaces the signal's disposition, also the default one and an earlier ignore, by a handler that
  /// counts and then calls the function that was installed before, if there was one; cancellation leaves
  /// it. A disposition set afterwards silences the source.
  ///
  /// Traps on a number that is no signal, and on SIGKILL and SIGSTOP, which nothing can observe.
  /// - Parameters:
  ///   - signal: its number.
  ///   - queue: where the handlers run; nil means the default global queue.
  /// Matching C function: `dispatch_source_create` with `DISPATCH_SOURCE_TYPE_SIGNAL`.
  public class func makeSignalSource(
    signal: Int32, queue: DispatchQueue? = nil
  ) -> any DispatchSourceSignal {
    guard signal > 0, signal < concourse_signal_limit(), signal != SIGKILL, signal != SIGSTOP else {
      Trap.clientBug("a signal source was made for signal \(signal), which cannot be observed")
    }
    return DispatchSource(
      SourceCore(
        kind: .signal, handle: UInt(signal), mask: 0, merging: .add, target: queue,
        backend: SignalBackend(signal)))
  }
}

/// A source that reports deliveries of a signal.
public protocol DispatchSourceSignal: DispatchSourceProtocol {}

extension DispatchSource: DispatchSourceSignal {}

/// All signal sources of the process: one handler counts, one descriptor tells.
///
/// A handler rather than a signalfd: that would need the signal blocked in every thread, also in those
/// that the program makes. The handler calls the one that it took the place of. Where every thread of the
/// program blocks the signal (many a daemon is started so), a thread of ours is there to take it.
final class SignalHub: FileWatchOwner, TimerOwner {
  static let shared = SignalHub()

  private let lock = Lock()
  // GUARDED BY `lock`.
  private var sources: [Int32: [SignalBackend]] = [:]
  private var watch: FileWatch?
  private var report: Int32 = -1
  /// Looks at the counts again and again while there is no descriptor to tell.
  private var timer: LoopTimer?
  /// All signals that ever had a source; what the taker lets in.
  private let mask = Atomic<UInt64>(0)
  /// Grows with `mask`: what the taker sleeps on. 0 until it has been made.
  private let changes = Atomic<UInt32>(0)

  private static let samplingInterval: UInt64 = 10_000_000

  /// - Returns: 0, or the errno.
  func add(_ backend: SignalBackend) -> Int32 {
    let failure = lock.withLock { () -> Int32 in
      let failure = System.call(.signalAction) { Int(concourse_signal_count(backend.signal)) }
      guard failure == 0 else { return Int32(-failure) }
      if sources[backend.signal, default: []].isEmpty {
        // What came before there was a source is nobody's.
        _ = concourse_signal_take(backend.signal)
      }
      sources[backend.signal, default: []].append(backend)
      return 0
    }
    guard failure == 0 else { return failure }
    listen()
    letIn(backend.signal)
    return 0
  }

  func remove(_ backend: SignalBackend) {
    lock.withLock { sources[backend.signal]?.removeAll { $0 === backend } }
  }

  /// Makes the descriptor that tells, or goes on without.
  private func listen() {
    let (made, timer) = lock.withLock { () -> (FileWatch?, LoopTimer?) in
      guard report < 0 else { return (nil, nil) }
      report = Int32(System.call(.eventCreate) { System.result(concourse_eventfd()) })
      guard report >= 0 else {
        let timer = self.timer ?? LoopTimer(owner: self)
        self.timer = timer
        return (nil, timer)
      }
      concourse_signal_report_to(report)
      watch = FileWatch(descriptor: report, interest: .read, owner: self)
      return (watch, nil)
    }
    made?.install()
    timer?.set(.uptime(Clock.uptime() &+ Self.samplingInterval))
  }

  func fileIsReady(_ watch: FileWatch) {
    concourse_eventfd_clear(watch.descriptor)
    tell()
    watch.rearm()
  }

  func timerIsDue(_ timer: LoopTimer) {
    tell()
    listen()
  }

  /// Tells the sources what has been counted.
  private func tell() {
    let arrived = lock.withLock { () -> [(SignalBackend, UInt)] in
      sources.flatMap { signal, backends -> [(SignalBackend, UInt)] in
        guard !backends.isEmpty else { return [] }
        let count = UInt(concourse_signal_take(signal))
        return count > 0 ? backends.map { ($0, count) } : []
      }
    }
    for (backend, count) in arrived { backend.raise(count) }
  }

  // MARK: The taker

  /// Lets a thread of ours take `signal`. The kernel prefers the main thread, then any that lets it in.
  private func letIn(_ signal: Int32) {
    // ORDERING: releasing; pairs with the acquiring load in `take`.
    mask.bitwiseOr(1 << UInt64(signal - 1), ordering: .releasing)
    // ORDERING: as above.
    let before = changes.wrappingAdd(1, ordering: .releasing).oldValue
    guard before == 0 else { return Futex.wake(changes, count: 1) }
    let failure = SystemThread.spawn(
      { argument in
        SystemThread.setName("concourse-signal")
        // SAFETY: the shared hub is never destroyed.
        Unmanaged<SignalHub>.fromOpaque(argument!).takeUnretainedValue().take()
      }, Unmanaged.passUnretained(self).toOpaque())
    // ORDERING: relaxed; refused: the next source tries again. Signals that some thread lets in are counted.
    if failure != 0 { changes.store(0, ordering: .relaxed) }
  }

  private func take() -> Never {
    while true {
      // ORDERING: acquiring; pairs with `letIn`.
      let seen = changes.load(ordering: .acquiring)
      concourse_signal_unblock(mask.load(ordering: .acquiring))
      _ = Futex.wait(changes, expected: seen)
    }
  }
}

// SAFETY: the guards above.
extension SignalHub: @unchecked Sendable {}

/// A signal source's part of the hub.
final class SignalBackend: SourceBackend {
  let signal: Int32
  private let lock = Lock()
  // GUARDED BY `lock`.
  /// From `install` to `remove`.
  private var source: SourceCore?

  init(_ signal: Int32) { self.signal = signal }

  func install(for source: SourceCore) {
    lock.withLock { self.source = source }
    let failure = SignalHub.shared.add(self)
    if failure != 0 {
      Trap.warn("signal \(signal) cannot be observed (errno \(failure)); its source stays silent")
    }
  }

  func raise(_ count: UInt) { lock.withLock { source }?.raise(count) }

  func remove() {
    SignalHub.shared.remove(self)
    // Released outside the lock.
    let last = lock.withLock { () -> SourceCore? in
      defer { source = nil }
      return source
    }
    withExtendedLifetime(last) {}
  }
}

// SAFETY: the guards above.
extension SignalBackend: @unchecked Sendable {}

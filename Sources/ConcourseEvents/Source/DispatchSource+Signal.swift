internal import CConcourse
internal import Glibc

extension DispatchSource {
  /// Creates a source that calls its handler when a signal has been delivered to the process.
  ///
  /// `data` counts the deliveries since the last call; every source for the signal is called. Activation replaces the
  /// signal's disposition, even the default one or an ignore, by a handler that counts and then calls the function
  /// that was installed before, if any, with its mask and flags. Cancellation leaves this handler in place. A
  /// disposition set after activation silences the source.
  ///
  /// SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGTRAP are observed if a process has sent them. If the program itself faults,
  /// the function that was installed before is called; without one the process ends, as without a source.
  ///
  /// Traps on a number that is not a signal, and on SIGKILL and SIGSTOP, which cannot be observed.
  /// - Parameters:
  ///   - signal: the signal's number.
  ///   - queue: the queue on which the handlers run; nil means the default global queue.
  /// Matching C function: `dispatch_source_create` with `DISPATCH_SOURCE_TYPE_SIGNAL`.
  public class func makeSignalSource(
    signal: Int32, queue: DispatchQueue? = nil
  ) -> any DispatchSourceSignal {
    guard signal > 0, signal < concourse_signal_limit(), signal != SIGKILL, signal != SIGSTOP else {
      Trap.clientBug(509, "a signal source was made for signal \(signal), which cannot be observed")
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

/// All signal sources of the process. One signal handler counts deliveries, and an eventfd reports them.
///
/// A handler rather than a signalfd: a signalfd needs the signal blocked in every thread, including those that the
/// program creates. The handler calls the one that it replaced. If every thread of the program blocks the signal, as
/// in many daemons, the thread `concourse-sig` receives it.
final class SignalHub: FileWatchOwner, TimerOwner {
  static let shared = SignalHub()

  private let lock = Lock(.signalHub)
  // GUARDED BY `lock`.
  private var sources: [Int32: [SignalBackend]] = [:]
  private var watch: FileWatch?
  private var eventDescriptor: Int32 = -1
  /// Polls the counts while there is no eventfd, and makes the receiving thread for a lowered worker.
  private var timer: LoopTimer?
  private var wantsThread = false
  /// All signals that ever had a source: those that the receiving thread unblocks.
  private let mask = Atomic<UInt64>(0)
  /// The futex on which the receiving thread sleeps; incremented whenever `mask` changes. 0 until the thread exists.
  private let changes = Atomic<UInt32>(0)

  private static let samplingInterval: UInt64 = 10_000_000

  /// Once the handler is installed, a signal no longer has its default effect. Each delivery from then on reaches the
  /// source: `report_to` is set before, old counts are discarded before, and `deliver` waits for the lock.
  /// - Returns: 0, or the errno.
  func add(_ backend: SignalBackend) -> Int32 {
    listen()
    let failure = lock.withLock { () -> Int32 in
      if sources[backend.signal, default: []].isEmpty {
        // Discard deliveries from before there was a source.
        _ = concourse_signal_take(backend.signal)
      }
      let failure = System.countSignal(backend.signal)
      guard failure == 0 else { return Int32(-failure) }
      sources[backend.signal, default: []].append(backend)
      return 0
    }
    guard failure == 0 else { return failure }
    unblock(backend.signal)
    return 0
  }

  func remove(_ backend: SignalBackend) {
    lock.withLock { sources[backend.signal]?.removeAll { $0 === backend } }
  }

  /// Creates and watches the eventfd. Polls the counts if the system refuses one.
  private func listen() {
    let (made, timer) = lock.withLock { () -> (FileWatch?, LoopTimer?) in
      guard eventDescriptor < 0 else { return (nil, nil) }
      eventDescriptor = Int32(System.createEvent())
      guard eventDescriptor >= 0 else {
        return (nil, theTimer())
      }
      concourse_signal_report_to(eventDescriptor)
      watch = FileWatch(descriptor: eventDescriptor, interest: .read, owner: self)
      return (watch, nil)
    }
    made?.install()
    timer?.set(.uptime(Clock.uptime() &+ Self.samplingInterval))
  }

  func fileIsReady(_ watch: FileWatch) {
    concourse_eventfd_clear(watch.descriptor)
    deliver()
    watch.rearm()
  }

  func timerIsDue(_ timer: LoopTimer) {
    // Deliveries from before the eventfd existed are counted, but not reported.
    listen()
    deliver()
    let wantsThread = lock.withLock { () -> Bool in
      defer { self.wantsThread = false }
      return self.wantsThread
    }
    if wantsThread { startThread() }
  }

  /// Call under `lock`.
  private func theTimer() -> LoopTimer {
    let timer = timer ?? LoopTimer(owner: self)
    self.timer = timer
    return timer
  }

  /// Raises the counted deliveries in the sources.
  private func deliver() {
    let arrived = lock.withLock { () -> [(SignalBackend, UInt)] in
      sources.flatMap { signal, backends -> [(SignalBackend, UInt)] in
        guard !backends.isEmpty else { return [] }
        let count = UInt(concourse_signal_take(signal))
        return count > 0 ? backends.map { ($0, count) } : []
      }
    }
    for (backend, count) in arrived { backend.raise(count) }
  }

  // MARK: The receiving thread

  /// Unblocks `signal` in a thread of ours. The kernel prefers the main thread, then any thread that does not block
  /// it.
  private func unblock(_ signal: Int32) {
    // ORDERING: releasing; pairs with the acquiring load of `mask` in `receiveSignals`; publishes the new bit.
    mask.bitwiseOr(1 << UInt64(signal - 1), ordering: .releasing)
    // ORDERING: releasing; pairs with the acquiring load of `changes` in `receiveSignals`; publishes `mask`.
    let before = changes.wrappingAdd(1, ordering: .releasing).oldValue
    guard before == 0 else { return Futex.wake(changes, count: 1) }
    // A thread that a lowered worker makes is lowered for good. The threads that poll are not lowered.
    if Runtime.shared.monitor.mustCreateThreads() { startThreadLater() } else { startThread() }
  }

  private func startThreadLater() {
    let timer = lock.withLock { () -> LoopTimer in
      wantsThread = true
      return theTimer()
    }
    timer.set(.uptime(Clock.uptime() &+ Self.samplingInterval))
  }

  private func startThread() {
    let failure = Runtime.startThread(
      { argument in
        // The thread that makes it may have been raised, or have another policy.
        SystemThread.adoptScheduling()
        let priority = Runtime.shared.bands[0].priority
        if priority.mayRaise { SystemThread.setNice(priority.base) }
        SystemThread.setName("concourse-sig")
        // SAFETY: the shared hub is never destroyed.
        Unmanaged<SignalHub>.fromOpaque(argument!).takeUnretainedValue().receiveSignals()
      }, Unmanaged.passUnretained(self).toOpaque())
    // Without the thread, a signal that all others block would never arrive.
    if failure != 0 { startThreadLater() }
  }

  private func receiveSignals() -> Never {
    while true {
      // ORDERING: acquiring, both; pair with the releasing operations in `unblock`.
      let seen = changes.load(ordering: .acquiring)
      concourse_signal_unblock(mask.load(ordering: .acquiring))
      _ = Futex.wait(changes, expected: seen)
    }
  }
}

// SAFETY: mutable fields are guarded as noted above, or atomic.
extension SignalHub: @unchecked Sendable {}

/// The backend of a signal source, registered with the hub.
final class SignalBackend: SourceBackend {
  let signal: Int32
  private let lock = Lock(.signalBackend)
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
    // Release the source outside the lock.
    let last = lock.withLock { () -> SourceCore? in
      defer { source = nil }
      return source
    }
    withExtendedLifetime(last) {}
  }
}

// SAFETY: mutable fields are guarded as noted above.
extension SignalBackend: @unchecked Sendable {}

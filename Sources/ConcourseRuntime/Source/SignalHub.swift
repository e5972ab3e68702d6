internal import CConcourse
internal import Glibc

/// All signal sources of the process: one handler counts, one descriptor tells.
///
/// A handler rather than a signalfd: that would need the signal blocked in every thread, also in those
/// that the program makes. The handler calls the one that it took the place of.
final class SignalHub: FileWatchOwner {
  static let shared = SignalHub()

  private let lock = Lock()
  // GUARDED BY `lock`.
  private var sources: [Int32: [SignalBackend]] = [:]
  private var watch: FileWatch?
  private var report: Int32 = -1

  /// - Returns: 0, or the errno.
  func add(_ backend: SignalBackend) -> Int32 {
    var made: FileWatch?
    let failure = lock.withLock { () -> Int32 in
      if report < 0 {
        let descriptor = System.call(.eventCreate) { System.result(concourse_eventfd()) }
        guard descriptor >= 0 else { return Int32(-descriptor) }
        report = Int32(descriptor)
        concourse_signal_report_to(report)
        made = FileWatch(descriptor: report, interest: .read, owner: self)
        watch = made
      }
      let failure = System.call(.signalAction) { Int(concourse_signal_count(backend.signal)) }
      guard failure == 0 else { return Int32(-failure) }
      if sources[backend.signal, default: []].isEmpty {
        // What came before there was a source is nobody's.
        _ = concourse_signal_take(backend.signal)
      }
      sources[backend.signal, default: []].append(backend)
      return 0
    }
    made?.install()
    return failure
  }

  func remove(_ backend: SignalBackend) {
    lock.withLock { sources[backend.signal]?.removeAll { $0 === backend } }
  }

  func fileIsReady(_ watch: FileWatch) {
    let arrived = lock.withLock { () -> [(SignalBackend, UInt)] in
      concourse_eventfd_clear(report)
      return sources.flatMap { signal, backends -> [(SignalBackend, UInt)] in
        guard !backends.isEmpty else { return [] }
        let count = UInt(concourse_signal_take(signal))
        return count > 0 ? backends.map { ($0, count) } : []
      }
    }
    for (backend, count) in arrived { backend.raise(count) }
    watch.rearm()
  }
}

// SAFETY: the guards above.
extension SignalHub: @unchecked Sendable {}

/// A signal source's part of the hub.
final class SignalBackend: SourceBackend {
  let signal: Int32
  private let lock = Lock()
  // GUARDED BY `lock`.
  private weak var source: SourceCore?

  init(_ signal: Int32) { self.signal = signal }

  func install(for source: SourceCore) {
    lock.withLock { self.source = source }
    let failure = SignalHub.shared.add(self)
    if failure != 0 {
      Trap.warn("signal \(signal) cannot be observed (errno \(failure)); its source stays silent")
    }
  }

  func raise(_ count: UInt) { lock.withLock { source }?.raise(count) }

  func remove() { SignalHub.shared.remove(self) }
}

// SAFETY: the guards above.
extension SignalBackend: @unchecked Sendable {}

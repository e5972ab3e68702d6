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

import Concourse

/// A source that is on or off. A source counts `suspend` and `resume`, which must be balanced; here each is idempotent.
struct SwitchedSource {
  let source: any DispatchSourceProtocol
  private var isOn = false
  private var isCancelled = false

  /// - Parameter source: a source that was not activated yet.
  init(_ source: any DispatchSourceProtocol) { self.source = source }

  mutating func resume() {
    guard !isOn, !isCancelled else { return }
    isOn = true
    source.resume()
  }

  mutating func suspend() {
    guard isOn, !isCancelled else { return }
    isOn = false
    source.suspend()
  }

  /// Cancels the source, and resumes it if necessary: the cancel handler of a suspended source does not run.
  mutating func cancel() {
    guard !isCancelled else { return }
    isCancelled = true
    source.cancel()
    if !isOn { source.resume() }
  }
}

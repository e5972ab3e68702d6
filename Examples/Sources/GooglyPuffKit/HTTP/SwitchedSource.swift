import Concourse

/// A source that is on or off. `suspend` and `resume` of a source count, and have to be balanced; this is the switch that
/// one usually wants instead.
struct SwitchedSource {
  let source: any DispatchSourceProtocol
  private var isOn = false
  private var isCancelled = false

  /// - Parameter source: as it was made: not activated yet.
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

  /// For good. The cancel handler would not run as long as the source is suspended, so it is resumed.
  mutating func cancel() {
    guard !isCancelled else { return }
    isCancelled = true
    source.cancel()
    if !isOn { source.resume() }
  }
}

/// What stands between a source and the part of the kernel, or of this process, that it listens to.
///
/// The source calls `install` once when it is activated, on the activating thread; then `collect`, the
/// handler and `rearm` follow one another on the target queue, and in the end `remove` is called once, from
/// any thread. Nobody holds a lock during these calls.
protocol SourceBackend: AnyObject, Sendable {
  /// Starts to observe, and tells `source` of events by `raise` from then on, from any thread.
  ///
  /// What the system refuses is overcome by other means if there are any; if not, the source stays silent,
  /// as one whose descriptor was closed, and one line on standard error says why.
  ///
  /// A backend that raises events by itself holds `source` until `remove`: there the two let go of each other.
  func install(for source: SourceCore)

  /// What the handler is to find in `data`, asked just before it is called.
  /// - Parameter pending: what has been raised since the last call, merged.
  /// - Returns: nil if there is nothing to tell after all; then `rearm` follows at once.
  func collect(_ pending: UInt) -> UInt?

  /// The handler has returned: go on observing.
  func rearm()

  /// There is a handler again, after an event came while there was none: forgets what has happened since,
  /// and goes on observing. Called by whoever sets the handler.
  func restart()

  /// Stops observing, and lets go of the source. On return the kernel has let go; a `raise` that is under way
  /// is ignored.
  func remove()
}

extension SourceBackend {
  func collect(_ pending: UInt) -> UInt? { pending }
  func rearm() {}
  func restart() { rearm() }
}

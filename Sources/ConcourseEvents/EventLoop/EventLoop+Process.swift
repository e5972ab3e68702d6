@_exported public import ConcourseRuntime

extension EventLoop {
  /// The process's one event loop. The model build replaces this file, to begin each execution afresh.
  static let shared = EventLoop()

  static let timers = TimerTables(shards: Runtime.processShards)
  static let files = WatchTable()
}

extension Runtime {
  // SAFETY: read and written on the exploring thread only; explorations run one at a time.
  private nonisolated(unsafe) static var stored: Runtime?

  /// The execution's runtime, made when the engine first asks for it.
  static var shared: Runtime {
    if let stored { return stored }
    let made = Runtime()
    stored = made
    return made
  }

  /// Forgets the last execution: the next one finds a process in which nothing has run yet.
  static func beginAfresh() {
    guard let last = stored else { return }
    stored = nil
    for band in last.bands {
      // Records and their table live as long as a process; here there are thousands of those.
      for index in 0..<band.recordCount.load(ordering: .relaxed) {
        band.records[index]?.deinitialize(count: 1).deallocate()
      }
      band.records.deallocate()
    }
    while PoolSize.threadCount > 0 { PoolSize.threadEnded() }
    PoolSize.refreshWidth()
  }
}

// What has to be looked at because nothing tells of it.
extension Follower {
  func startTimers() {
    if let milliseconds = options.idleExit {
      let timer = DispatchSource.makeTimerSource(queue: queue)
      idle = timer
      timer.setEventHandler { [weak self] in
        guard let self, !isStopping else { return }
        timer.schedule(deadline: endIfIdle(afterMilliseconds: milliseconds), leeway: .milliseconds(10))
      }
      timer.schedule(deadline: .now() + .milliseconds(milliseconds), leeway: .milliseconds(10))
      timer.activate()
    }
    let timer = DispatchSource.makeTimerSource(queue: queue)
    recheck = timer
    timer.setEventHandler { [weak self] in self?.recheckNow() }
    timer.activate()
    scheduleRecheck()
  }

  /// The timer runs only while there is something that no event tells of.
  func scheduleRecheck() {
    let pause = DispatchTimeInterval.milliseconds(options.recheck)
    recheck?.schedule(deadline: .now() + pause, leeway: .milliseconds(options.recheck / 10))
  }

  private func recheckNow() {
    guard !isStopping else { return }
    for name in names where name.needsRecheck || name.isDirectory {
      if name.isArgument { watch(name.path.parent) }
      check(name)
    }
    // One last look: it ends if there is nothing.
    for file in files.values where file.retiredSince != nil { look(at: file) }
    forgetMissing()
    turn()
    let isNeeded = names.contains { $0.needsRecheck } || files.values.contains { $0.retiredSince != nil }
    if isNeeded { scheduleRecheck() }
  }
}

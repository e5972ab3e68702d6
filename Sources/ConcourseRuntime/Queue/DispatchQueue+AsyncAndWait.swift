extension DispatchQueue {
  /// Submits a closure and waits until it has run, obeying the queue's attributes.
  ///
  /// As `sync`, but if a worker is draining the queue, the closure runs on that worker, so the queue need
  /// not be handed over and back. On an idle queue the closure runs on the calling thread, on a queue that
  /// ends in the main queue on the main thread. Traps when the calling item already holds the queue.
  /// Matching C function: `dispatch_async_and_wait`.
  /// - Returns: what the closure returns; what it throws is rethrown.
  public final func asyncAndWait<Result, Failure: Error>(
    execute work: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try asyncAndWait(flags: [], execute: work)
  }

  /// As `asyncAndWait(execute:)`; with `.barrier` the closure runs alone on a private concurrent queue.
  /// Matching C function: `dispatch_barrier_async_and_wait`.
  public final func asyncAndWait<Result, Failure: Error>(
    flags: DispatchWorkItemFlags, execute work: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    var result: Swift.Result<Result, Failure>?
    wait(barrier: flags.contains(.barrier)) { result = Swift.Result(catching: work) }
    return try result!.get()
  }

  /// Submits a work item and waits until it has run or been skipped because of its cancellation.
  /// Matching C function: `dispatch_async_and_wait`.
  public final func asyncAndWait(execute workItem: DispatchWorkItem) {
    wait(barrier: workItem.flags.contains(.barrier)) { workItem.execute() }
  }

  private final func wait(barrier: Bool, _ body: () -> Void) {
    if kind == .workloop { requireActive() }
    let outer = Frame.current
    var frame = Frame(
      queue: .passUnretained(self), parent: outer, exclusive: barrier,
      level: outer?.pointee.level ?? level)
    withUnsafeMutablePointer(to: &frame) { frame in
      if kind.isLane {
        let exclusive = kind.isSerial || barrier
        let free =
          hasNoEntries
          && (exclusive
            ? state.takeExclusively(CurrentThread.id) : state.takeReaderPlace(limit: UInt64(width.value)))
        if !free {
          let hasRun = withoutActuallyEscaping(body) { waitForTurn(exclusive: exclusive, frame, body: $0) }
          if hasRun { return }
        }
      }
      if beginSyncAbove(frame) {
        Frame.run(frame.pointee, body)
      } else {
        runWhereServed(frame, body)
      }
      endSync(exclusive: barrier)
    }
  }
}

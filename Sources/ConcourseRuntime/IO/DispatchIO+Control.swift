extension DispatchIO {
  /// Runs a closure alone, as far as operations on the descriptor go: after the input and output of all that
  /// were submitted before it, to any channel of the descriptor, and before any later one starts.
  ///
  /// Handlers may run at the same time. The closure is an item of the channel's target, by default the
  /// queue of its cleanup handler, and may use the channel's descriptor itself. Matching C
  /// function: `dispatch_io_barrier`.
  /// - Parameter execute: the closure.
  public func barrier(execute: @escaping () -> Void) {
    Runtime.requireThreads("a barrier of a DispatchIO channel")
    entry.submit(DescriptorEntry.Barrier(queue: channel.queue, body: execute))
  }

  /// The channel's descriptor: -1 if the channel is closed, has no file, or if its path has not been
  /// opened yet; asked for in a barrier, it is opened. Matching C function: `dispatch_io_get_descriptor`.
  public var fileDescriptor: Int32 {
    entry.lock.withLock({ channel.state.isClosed }) ? -1 : entry.descriptor()
  }

  /// Sets the most that one call of a handler is told of; unlimited at first. Raises nothing and lowers the
  /// low-water mark if need be. For operations submitted from now on. Matching C function:
  /// `dispatch_io_set_high_water`.
  /// - Parameter highWater: at least 1; a negative number for no limit.
  public func setLimit(highWater: Int) { channel.changeMarks { $0.setHigh(highWater) } }

  /// Sets the least that a call of a handler is told of, except the last, and except every strict
  /// interval; 1 MiB at first. Raises the high-water mark if need be. For operations submitted from
  /// now on. Matching C function: `dispatch_io_set_low_water`.
  /// - Parameter lowWater: `Int.max` or a negative number for a single call at the end.
  public func setLimit(lowWater: Int) { channel.changeMarks { $0.setLow(lowWater) } }

  /// Lets handlers be called at an interval: with `.strictInterval` whatever has come, else only if the
  /// low-water mark has been reached. For operations submitted from now on. A handler that is
  /// behind with other calls is left alone. Matching C function: `dispatch_io_set_interval`.
  /// - Parameters:
  ///   - interval: the time between calls; `.never`, zero and negative intervals end the calls.
  ///   - flags: whether the interval is strict.
  public func setInterval(interval: DispatchTimeInterval, flags: DispatchIO.IntervalFlags = []) {
    let nanoseconds = interval == .never ? 0 : interval.saturatedNanoseconds
    channel.pacing =
      nanoseconds > 0
      ? Channel.Pacing(interval: UInt64(nanoseconds), isStrict: flags.contains(.strictInterval)) : nil
  }

  /// Closes the channel: later operations are refused with `ECANCELED`, earlier ones go on. Closing again is
  /// harmless. Matching C function: `dispatch_io_close`.
  /// - Parameter flags: with `.stop`, operations that have not ended end as soon as possible with
  ///   `ECANCELED`, after delivering what they have.
  public func close(flags: DispatchIO.CloseFlags = []) {
    entry.close(channel, stopping: flags.contains(.stop))
  }
}

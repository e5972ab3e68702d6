extension DispatchIO {
  /// The interval in nanoseconds; 0, and what no clock reaches, end the calls. Matching C function:
  /// `dispatch_io_set_interval`.
  package final func setInterval(nanoseconds: UInt64, isStrict: Bool) {
    channel.pacing =
      nanoseconds > 0 && nanoseconds <= UInt64(Int64.max)
      ? Channel.Pacing(interval: nanoseconds, isStrict: isStrict) : nil
  }
}

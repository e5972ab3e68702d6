extension DispatchQueue {
  /// Runs a function once for each number from 0 to `iterations - 1` and returns after the last: in parallel if the
  /// queue lets its items overlap, in order if not. nil stands for the global queue of the caller's level.
  ///
  /// Matching C function: `dispatch_apply_f`.
  package static func apply(
    _ iterations: Int, on queue: DispatchQueue?, _ context: UnsafeMutableRawPointer?,
    _ function: @convention(c) (UnsafeMutableRawPointer?, Int) -> Void
  ) {
    guard iterations > 0 else { return }
    func run(_ range: Range<Int>) { for index in range { function(context, index) } }
    guard let queue else { return ParallelLoop.run(iterations, run) }
    queue.sync {
      if queue.letsItemsOverlap {
        ParallelLoop.run(iterations, on: queue, run)
      } else {
        run(0..<iterations)
      }
    }
  }

  /// Whether neither this queue nor one above it is serial.
  private final var letsItemsOverlap: Bool {
    var link: DispatchQueue? = self
    while let queue = link {
      if queue.kind.isSerial { return false }
      link = queue.targetQueue
    }
    return true
  }
}

extension DispatchWorkloop {
  /// The workloop that the running item belongs to, directly or through the targets of its queue; nil outside.
  /// Matching C function: `dispatch_workloop_copy_current`.
  package static var currentWorkloop: DispatchWorkloop? {
    var link = Frame.current?.pointee.queue.takeUnretainedValue()
    while let queue = link {
      if queue.kind == .workloop { return queue.asWorkloop }
      link = queue.targetQueue
    }
    return nil
  }

  /// Whether the running item belongs to this workloop, or was submitted synchronously by one that does. Matching C
  /// function: `dispatch_workloop_is_current`.
  package var isCurrent: Bool { Frame.hold(of: self, from: Frame.current) != .none }

  /// Whether an item that could be interrupted should end, since others wait for its worker. Matching C function:
  /// `_dispatch_workloop_should_yield_4NW`.
  package static var shouldYield: Bool { currentWorkloop != nil && WorkerThread.shouldYield }
}

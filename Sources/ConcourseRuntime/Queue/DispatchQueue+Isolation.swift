// What module Concourse, where queues are executors, needs to know of a queue.

extension DispatchQueue {
  /// The queue that all serial work below it has for itself: the topmost serial queue on the way from this
  /// one to its root, this one included; nil when there is none.
  ///
  /// Items of two queues exclude one another exactly if both have the same. O(depth of the hierarchy).
  package final var exclusiveContext: DispatchQueue? {
    var topmost: DispatchQueue?
    var link: DispatchQueue? = self
    while let queue = link {
      if queue.kind.isSerial { topmost = queue }
      link = queue.targetNow
    }
    return topmost
  }

  /// Whether no item of this queue can run while the calling code does: the calling item, or one that waits
  /// for it, has the queue or a serial queue above it for itself.
  package final var excludesCaller: Bool {
    guard let exclusiveContext else { return false }
    return _dispatchPreconditionTest(.onQueueAsBarrier(exclusiveContext))
  }

  /// Ends the process with a message about code that is not where it claims to be.
  package final func rejectCaller() -> Never {
    let place = Self.current.map { "an item of \"\($0.label)\"" } ?? "no item of any queue"
    Trap.clientBug(
      "code was expected to be isolated to the actors on queue \"\(label)\", but this is \(place)")
  }

  /// The queue whose item the calling thread runs. Traps outside items.
  package class var running: DispatchQueue {
    guard let frame = Frame.current else { Trap.runtimeBug("a job runs outside of any queue") }
    return frame.pointee.queue.takeUnretainedValue()
  }

  /// Submits a job: `function` is called with `context`, once, as an item of this queue, and finds the queue
  /// as `running`.
  /// - Parameter qos: `.unspecified` leaves it to queue and submitter.
  package final func asyncJob(
    qos: DispatchQoS.QoSClass, context: UnsafeMutableRawPointer, function: ContextFunction
  ) {
    asyncFunction(qos: qos, flags: [], context, function)
  }
}

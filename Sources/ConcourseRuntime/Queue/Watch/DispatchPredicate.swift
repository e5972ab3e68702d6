/// Where code claims to run, for `dispatchPrecondition`.
public enum DispatchPredicate: Sendable {
  /// Inside an item of the queue or of one that targets it, or in code for which such an item waits.
  case onQueue(DispatchQueue)
  /// As `onQueue`, and alone on it: any item of a serial queue, a barrier of a concurrent one.
  case onQueueAsBarrier(DispatchQueue)
  /// Not `onQueue`.
  case notOnQueue(DispatchQueue)
}

/// Traps, in debug and release builds, unless the condition holds.
///
/// On the main thread `.onQueue(.main)` always holds. Matching C functions: `dispatch_assert_queue`,
/// `dispatch_assert_queue_barrier`, `dispatch_assert_queue_not`.
/// - Parameters:
///   - condition: where this code is meant to run.
///   - file: named in the message.
///   - line: named in the message.
public func dispatchPrecondition(
  condition: @autoclosure () -> DispatchPredicate, file: StaticString = #file, line: UInt = #line
) {
  let predicate = condition()
  if !_dispatchPreconditionTest(predicate) { predicate.fail("dispatchPrecondition at \(file):\(line)") }
}

/// Whether a predicate holds here. Hidden: `dispatchPrecondition` calls it.
public func _dispatchPreconditionTest(_ condition: DispatchPredicate) -> Bool {
  switch condition {
  case .onQueue(let queue): isOn(queue)
  case .onQueueAsBarrier(let queue): isAloneOn(queue)
  case .notOnQueue(let queue): !isOn(queue)
  }
}

private func isOn(_ queue: DispatchQueue) -> Bool {
  queue.kind == .main && CurrentThread.isMain || Frame.hold(of: queue, from: Frame.current) != .none
}

private func isAloneOn(_ queue: DispatchQueue) -> Bool {
  if queue.kind == .global { return false }
  return queue.kind == .main && CurrentThread.isMain
    || Frame.hold(of: queue, from: Frame.current) == .exclusive
}

extension DispatchPredicate {
  /// Traps unless the predicate holds. The message names the C function that was called.
  package func require(_ function: StaticString) {
    if !_dispatchPreconditionTest(self) { fail("\(function)") }
  }

  fileprivate func fail(_ asker: String) -> Never {
    let claim =
      switch self {
      case .onQueue(let queue): "to be on queue \"\(queue.label)\""
      case .onQueueAsBarrier(let queue): "to be alone on queue \"\(queue.label)\""
      case .notOnQueue(let queue): "not to be on queue \"\(queue.label)\""
      }
    let place = DispatchQueue.current.map { "an item of \"\($0.label)\"" } ?? "no item of any queue"
    Trap.clientBug(107, "\(asker): expected \(claim), but this is \(place)")
  }
}

// What the module Concourse needs of queues, to use them as executors.

extension DispatchQueue {
  /// The topmost serial queue on the way from this queue to its root, this one included; nil if there is
  /// none. All work below it runs one item at a time.
  ///
  /// Items of two queues exclude one another exactly if both have the same one. O(depth of the hierarchy).
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
  /// for it, runs alone on the queue or on a serial queue above it.
  package final var excludesCaller: Bool {
    guard let exclusiveContext else { return false }
    return _dispatchPreconditionTest(.onQueueAsBarrier(exclusiveContext))
  }

  /// Traps, with a message about code that does not run on its actor's queue.
  package final func rejectCaller() -> Never {
    let place = Self.current.map { "an item of \"\($0.label)\"" } ?? "no item of any queue"
    Trap.clientBug(
      108,
      "code was expected to be isolated to the actors on queue \"\(label)\", but this is \(place)")
  }
}

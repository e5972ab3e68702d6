import Concourse

extension Listing {
  static let queueContext = Listing("queue-context", "what belongs to a queue is cleaned up after it") {
    print in
    let finished = DispatchSemaphore(value: 0)
    var queue: DispatchQueue? = makeQueueWithContext(name: "journal") { context in
      print("cleaned up after \(context.entries) entries of the \(context.name)")
      finished.signal()
    }
    queue?.async { QueueContext.current?.entries += 2 }
    // The queue lives until its item has run.
    queue = nil
    finished.wait()
  }
}

/// Data of one queue: its items alone use it.
package final class QueueContext: @unchecked Sendable {  // SAFETY: OWNED BY the queue's items.
  package let name: String
  package var entries = 0
  private let finalizer: @Sendable (QueueContext) -> Void

  fileprivate static let key = DispatchSpecificKey<QueueContext>()
  /// The context of the queue whose item runs.
  package static var current: QueueContext? { DispatchQueue.getSpecific(key: key) }

  fileprivate init(name: String, finalizer: @escaping @Sendable (QueueContext) -> Void) {
    self.name = name
    self.finalizer = finalizer
  }

  deinit { finalizer(self) }
}

/// A queue with data of its own. Whoever uses the queue need not know that.
/// - Parameter finalizer: called once, with the data, when the last user has let go of the queue.
package func makeQueueWithContext(
  name: String, finalizer: @escaping @Sendable (QueueContext) -> Void
) -> DispatchQueue {
  let queue = DispatchQueue(label: "org.concourse.guide.\(name)")
  queue.setSpecific(key: QueueContext.key, value: QueueContext(name: name, finalizer: finalizer))
  return queue
}

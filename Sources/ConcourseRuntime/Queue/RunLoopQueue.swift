/// A serial queue without a thread: each call of `perform` runs one item on the calling thread.
///
/// Like the main queue it ends a hierarchy: a thread that waits for an item of it, or of a queue that targets
/// it, waits until the item has been performed. Matching C function:
/// `_dispatch_runloop_root_queue_create_4CF`.
package final class RunLoopQueue: DispatchQueue, @unchecked Sendable {  // SAFETY: see the guards below.
  private let serving = Lock(.runLoopQueue)
  /// The thread that is performing an item, or 0. GUARDED BY `serving`, as is the right to take from the list.
  private var performer: UInt32 = 0
  /// GUARDED BY `serving`.
  private var suspensions = 0

  package init(label: String) {
    super.init(kind: .runLoop, label: QueueName(label), qos: .unspecified, attributes: [], target: nil)
  }

  deinit {
    if suspensions > 0 {
      Trap.clientBug(
        203,
        "the last reference to queue \"\(label)\" was released while it was suspended; resume it first")
    }
    guard !list.isEmpty else { return }
    // No thread can perform the items any more, and items are never dropped: a worker runs them.
    let heir = DispatchQueue(label: label)
    while let node = list.popFirst() {
      // In C `sync` borrows its caller's reference. That thread would continue with a freed queue.
      if node.isWaiter {
        if node.takeWaiter() == nil { continue }
        Trap.clientBug(
          206,
          "the last reference to queue \"\(label)\" was released while a thread waits in sync on it; the caller "
            + "of sync must have a reference until it returns")
      }
      heir.submit(node)
    }
  }

  package override func setTarget(queue: DispatchQueue?) {}
  package override func activate() {}

  package override func suspend() { serving.withLock { suspensions += 1 } }

  package override func resume() {
    serving.withLock {
      guard suspensions > 0 else {
        Trap.clientBug(
          201,
          "resume() on queue \"\(label)\", which is not suspended: more resumes than suspends")
      }
      suspensions -= 1
    }
  }

  /// Runs the oldest item on the calling thread. An item may call this, too. Matching C function:
  /// `_dispatch_runloop_root_queue_perform_4CF`.
  /// - Returns: whether more items wait.
  package func perform() -> Bool {
    let thread = CurrentThread.id
    let outer: UInt32
    let oldest: NodePointer?
    (outer, oldest) = serving.withLock {
      // In a forked child, this thread may have had another id, and other threads may not exist.
      if performer != 0 && performer != thread && !Process.hadInParent(performer)
        && !Process.lacks(thread: performer)
      {
        Trap.clientBug(
          207,
          "items of queue \"\(label)\" are performed by thread \(performer) and by thread \(thread) at once; the "
            + "queue is serial")
      }
      guard suspensions == 0, let node = list.popFirst() else { return (performer, nil) }
      defer { performer = thread }
      return (performer, node)
    }
    guard let oldest else { return false }
    serveEntry(oldest)
    return serving.withLock {
      performer = outer
      return suspensions == 0 && !list.isEmpty
    }
  }
}

extension DispatchQueue {
  /// This queue as a run-loop queue, if its kind is `.runLoop`.
  package final var asRunLoopQueue: RunLoopQueue? {
    // SAFETY: only RunLoopQueue passes the kind `.runLoop` to the initialiser.
    kind == .runLoop ? unsafeDowncast(self, to: RunLoopQueue.self) : nil
  }
}

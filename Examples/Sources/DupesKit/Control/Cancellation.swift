import Synchronization

/// Calls a search off. Work items not yet started are cancelled and never run; the loops that do run look
/// at the flag between two files, since nobody can stop a running closure from outside.
// SAFETY: `items` is GUARDED BY `queue`, a serial queue whose `sync` is the lock; `flag` is atomic.
package final class Cancellation: @unchecked Sendable {
  private let queue = DispatchQueue(label: "dupes.cancellation")
  private var items: [DispatchWorkItem] = []
  private let flag = Atomic<Bool>(false)

  package init() {}

  package var isCancelled: Bool {
    // ORDERING: relaxed; the flag publishes nothing, it only has to be seen eventually. What was found
    // before is read through the queues that guard it.
    flag.load(ordering: .relaxed)
  }

  /// Cancels everything registered, now and from now on.
  package func cancel() {
    // ORDERING: relaxed; pairs with the load above, and publishes nothing but itself.
    flag.store(true, ordering: .relaxed)
    queue.sync {
      for item in items { item.cancel() }
      items = []
    }
  }

  /// Lets a later `cancel()` cancel this item; one that has happened already cancels it at once.
  func register(_ item: DispatchWorkItem) {
    queue.sync {
      if isCancelled { item.cancel() } else { items.append(item) }
    }
  }
}

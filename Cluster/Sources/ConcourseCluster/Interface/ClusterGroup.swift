public import Concourse

/// Items of one queue that a program waits for together.
///
/// ```swift
/// let journey = ClusterGroup(label: "journey-7", of: photos)
/// for photo in photographs { try await photos.async(photo, group: journey) }
/// try await journey.finished()
/// ```
///
/// The group is a name that its items carry. It has no count of its own: it is finished when the queue has no item of
/// that name, waiting, running, between two attempts, or before its deadline. So an item counts once, however often it is
/// delivered, and as long as the queue keeps it, whatever becomes of workers, servers, and the process that submitted
/// it. An item that was put aside has ended, too; `putBack` submits it without its group.
///
/// Each process that knows the name can enter items and wait. An item is entered when its submission has returned; a
/// process that dies before leaves no trace of the items that it has not submitted. So whether all items have been
/// submitted is for the program to know: `finished` returns when there is none *now*, as `wait` of a `DispatchGroup` does.
/// For something that must happen once, after the group and although this process may die, let each process that may do
/// it wait, and submit the next item with an id that is made of the group's name.
public struct ClusterGroup<Item: Codable & Sendable>: Sendable {
  /// The name of the group in the queue.
  public let label: String
  let queue: ClusterQueue<Item>

  /// A group of the queue. Creating it sends no request.
  /// - Parameters:
  ///   - label: As the label of a queue, and the same on each machine. Other queues may have a group of that name.
  ///   - queue: The queue of the items.
  public init(label: String, of queue: ClusterQueue<Item>) {
    let length = NATSNames.encoded(label).utf8.count
    if label.isEmpty || length > QueueSettings.longestLabel {
      misuse(
        """
        a cluster group needs a label of 1 to \(QueueSettings.longestLabel) letters, digits, "-" and "_", of which any \
        other byte counts as three, not \(length) (queue "\(queue.label)")
        """)
    }
    self.label = label
    self.queue = queue
  }

  /// Waits until each item that was entered before the call has ended, anywhere, and no item that was entered meanwhile is
  /// left.
  /// - Throws: ``ClusterError/engine(queue:reason:)`` if no server answers for the `timeout` of the cluster; call it
  ///   again. ``ClusterError/closed``. `CancellationError` if the task is cancelled.
  public func finished() async throws { try await queue.finished(label) }

  /// Submits a closure to a queue of this process once `finished` would return. A failure of the engine only delays it.
  ///
  /// The closure is never called if the cluster is shut down before.
  /// - Parameters:
  ///   - queue: Where it runs.
  ///   - work: What runs, once.
  public func notify(queue: DispatchQueue, execute work: @escaping @Sendable () -> Void) {
    Task {
      while true {
        do {
          try await finished()
          return queue.async(execute: work)
        } catch ClusterError.closed {
          return
        } catch {
          try await Task.sleep(for: .seconds(1))
        }
      }
    }
  }
}

import Concourse
import Synchronization

/// Photos that were asked for together, each of which is a member of one group; when the last has come or failed, the
/// group notifies the main queue.
package final class Batches: Sendable {
  private let manager: PhotoManager
  private let whenEnded: @Sendable (Int) -> Void
  private let last = Atomic<Int>(0)

  /// - Parameter whenEnded: called on the main queue, with the number of a batch of which nothing is under way any
  ///   more, after all that is to be told of its photos.
  package init(manager: PhotoManager, whenEnded: @escaping @Sendable (Int) -> Void) {
    self.manager = manager
    self.whenEnded = whenEnded
  }

  /// - Returns: a photo for each name, or nil if the gallery has no room for them.
  package func begin(_ names: [String]) -> [Photo]? {
    // ORDERING: relaxed; a unique number, which publishes nothing.
    let batch = last.wrappingAdd(1, ordering: .relaxed).newValue
    let group = DispatchGroup()
    // The manager enters the group for each photo before it returns, so the group cannot be empty too early.
    guard let photos = manager.expect(names, batch: batch, group: group) else { return nil }
    group.notify(queue: .main) { [whenEnded] in MainQueue.run { whenEnded(batch) } }
    return photos
  }
}

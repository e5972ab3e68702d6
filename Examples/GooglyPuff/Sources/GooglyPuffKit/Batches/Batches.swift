import Concourse
import Synchronization

/// Photos that are added together. A batch has a dispatch group, which notifies the main queue when every photo of the
/// batch has arrived, failed or been removed.
package final class Batches: Sendable {
  private let manager: PhotoManager
  private let whenEnded: @Sendable (Int) -> Void
  private let last = Atomic<Int>(0)

  /// - Parameter whenEnded: called on the main queue with the number of a finished batch, after the last change of its
  ///   photos was reported there.
  package init(manager: PhotoManager, whenEnded: @escaping @Sendable (Int) -> Void) {
    self.manager = manager
    self.whenEnded = whenEnded
  }

  /// - Returns: a photo for each name, or nil if the gallery has no room for all of them.
  package func begin(_ names: [String]) -> [Photo]? {
    // ORDERING: relaxed; the number only has to be unique, and publishes nothing.
    let batch = last.wrappingAdd(1, ordering: .relaxed).newValue
    let group = DispatchGroup()
    // `expect` enters the group once for each photo before it returns, so the notification cannot come early.
    guard let photos = manager.expect(names, batch: batch, group: group) else { return nil }
    group.notify(queue: .main) { [whenEnded] in MainQueue.run { whenEnded(batch) } }
    return photos
  }
}

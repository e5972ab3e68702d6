import Concourse

/// The photos of a program, which any thread may add to and look at.
///
/// Readers run at the same time as each other. A writer is a barrier of the concurrent queue: it begins when
/// the readers before it have ended, and those after it wait.
package final class PhotoManager: @unchecked Sendable {  // SAFETY: GUARDED BY `queue`.
  /// One for the whole program.
  package static let shared = PhotoManager()

  private let queue = DispatchQueue(label: "org.concourse.guide.photos", attributes: .concurrent)
  private let listeners: DispatchQueue
  private var unsafePhotos: [String] = []
  private var listener: (@Sendable (Int) -> Void)?

  /// - Parameter listeners: where to tell what has changed.
  package init(listeners: DispatchQueue = .main) { self.listeners = listeners }

  /// A copy of the photos as they are now.
  package var photos: [String] { queue.sync { unsafePhotos } }

  /// Adds a photo; returns before it is there. Whoever looks for it afterwards from the same thread finds it.
  package func add(_ photo: String) {
    queue.async(flags: .barrier) {
      self.unsafePhotos.append(photo)
      guard let listener = self.listener else { return }
      let count = self.unsafePhotos.count
      self.listeners.async { listener(count) }
    }
  }

  /// Has `listener` called with the number of photos after each one that is added from now on.
  package func whenAdded(_ listener: @escaping @Sendable (Int) -> Void) {
    queue.async(flags: .barrier) { self.listener = listener }
  }
}

import Concourse

/// The photos of a program. Any thread may add and read them.
///
/// Readers run at the same time. A writer is a barrier of the concurrent queue: it starts when the readers before it
/// have ended, and the readers after it wait.
final class PhotoManager: @unchecked Sendable {  // SAFETY: GUARDED BY `queue`.
  /// One for the whole program.
  static let shared = PhotoManager()

  private let queue = DispatchQueue(label: "org.concourse.guide.photos", attributes: .concurrent)
  private let listeners: DispatchQueue
  private var unsafePhotos: [String] = []
  private var listener: (@Sendable (Int) -> Void)?

  /// - Parameter listeners: the queue on which the listener is called.
  init(listeners: DispatchQueue = .main) { self.listeners = listeners }

  /// A copy of the photos.
  var photos: [String] { queue.sync { unsafePhotos } }

  /// Adds a photo, and returns before it is added. Later reads by the same thread find it.
  func add(_ photo: String) {
    queue.async(flags: .barrier) {
      self.unsafePhotos.append(photo)
      guard let listener = self.listener else { return }
      let count = self.unsafePhotos.count
      self.listeners.async { listener(count) }
    }
  }

  /// Has `listener` called with the number of photos after each one that is added from now on.
  func whenAdded(_ listener: @escaping @Sendable (Int) -> Void) {
    queue.async(flags: .barrier) { self.listener = listener }
  }
}

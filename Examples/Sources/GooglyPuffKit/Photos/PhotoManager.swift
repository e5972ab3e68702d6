import Concourse

/// The photos of the program, which any thread may change and look at.
///
/// Readers run at the same time as each other. A writer is a barrier of the concurrent queue: it begins when the readers
/// before it have ended, and those after it wait. Each change is told to the main queue in the order in which it was made.
package final class PhotoManager: @unchecked Sendable {  // SAFETY: GUARDED BY `queue`.
  /// One for the whole program.
  package static let shared = PhotoManager()

  package enum Change: Sendable {
    case updated(Photo)
    case removed(Photo)
  }

  private struct Entry {
    var photo: Photo
    let batch: DispatchGroup
    /// Ends the work on the photo: a download, or the search for faces.
    var cancel: (@Sendable () -> Void)?
  }

  /// How many there may be.
  package let capacity: Int
  private let queue = DispatchQueue(label: "googlypuff.photos", attributes: .concurrent)
  private let listeners: DispatchQueue
  private var entries: [Int: Entry] = [:]
  private var lastID = 0
  private var listener: (@Sendable (Change) -> Void)?

  /// - Parameter listeners: where to tell what has changed.
  package init(capacity: Int = 2_000, listeners: DispatchQueue = .main) {
    self.capacity = capacity
    self.listeners = listeners
  }

  // MARK: Readers

  package var count: Int { queue.sync { entries.count } }

  /// A copy of the photos as they are now, in the order in which they came.
  package var photos: [Photo] { queue.sync { entries.values.map(\.photo).sorted { $0.id < $1.id } } }

  package func photo(_ id: Int) -> Photo? { queue.sync { entries[id]?.photo } }

  // MARK: Writers

  /// Has `listener` called after each change from now on.
  package func whenChanged(_ listener: @escaping @Sendable (Change) -> Void) {
    queue.async(flags: .barrier) { self.listener = listener }
  }

  /// Makes room for photos that are about to arrive. The group is entered for each, and left when the photo is ready,
  /// has failed or was removed, after the listener's call for that was submitted.
  ///
  /// - Returns: the photos, or nil if there is no room for all of them.
  package func expect(_ names: [String], batch: Int, group: DispatchGroup) -> [Photo]? {
    queue.sync(flags: .barrier) {
      guard entries.count + names.count <= capacity else { return nil }
      return names.map { name in
        lastID += 1
        let photo = Photo(id: lastID, batch: batch, name: name)
        group.enter()
        entries[photo.id] = Entry(photo: photo, batch: group)
        tell(.updated(photo))
        return photo
      }
    }
  }

  /// Notes how to end the work on a photo. If that photo is gone already, the work is ended now.
  package func work(on id: Int, cancel: @escaping @Sendable () -> Void) {
    queue.async(flags: .barrier) {
      if self.entries[id] == nil { cancel() }
      self.entries[id]?.cancel = cancel
    }
  }

  /// The photo can be shown.
  package func ready(_ id: Int, width: Int, height: Int) {
    settle(id) {
      $0.stage = .ready
      $0.width = width
      $0.height = height
    }
  }

  /// The photo cannot be shown. It is kept until `forgetFailures`, so that the notice can name it.
  package func fail(_ id: Int, _ reason: String) {
    settle(id) {
      $0.stage = .failed
      $0.reason = reason
    }
  }

  private func settle(_ id: Int, _ change: @escaping @Sendable (inout Photo) -> Void) {
    queue.async(flags: .barrier) {
      // Removed meanwhile, or settled by another: a page that was closed and its upload that still arrives, say.
      guard var entry = self.entries[id], entry.photo.stage == .arriving else { return }
      change(&entry.photo)
      entry.cancel = nil
      self.entries[id] = entry
      self.tell(.updated(entry.photo))
      entry.batch.leave()
    }
  }

  /// The eyes of the photo are known.
  package func found(_ eyes: [Photo.Eye], in id: Int) {
    queue.async(flags: .barrier) {
      guard self.entries[id] != nil else { return }
      self.entries[id]!.photo.eyes = eyes
      self.entries[id]!.cancel = nil
      self.tell(.updated(self.entries[id]!.photo))
    }
  }

  /// Takes the photo away, and ends the work on it.
  package func remove(_ id: Int) {
    queue.async(flags: .barrier) {
      guard let entry = self.entries.removeValue(forKey: id) else { return }
      entry.cancel?()
      self.tell(.removed(entry.photo))
      if entry.photo.stage == .arriving { entry.batch.leave() }
    }
  }

  /// Takes away what failed of a batch.
  package func forgetFailures(of batch: Int) {
    queue.async(flags: .barrier) {
      for (id, entry) in self.entries where entry.photo.batch == batch && entry.photo.stage == .failed {
        self.entries[id] = nil
        self.tell(.removed(entry.photo))
      }
    }
  }

  /// From within a barrier.
  private func tell(_ change: Change) {
    guard let listener else { return }
    listeners.async { listener(change) }
  }
}

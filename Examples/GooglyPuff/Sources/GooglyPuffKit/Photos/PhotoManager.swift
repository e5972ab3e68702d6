import Concourse

/// The photos of the program. Any thread may read and change them.
///
/// Readers run concurrently. A writer is a barrier of the concurrent queue: it starts when all earlier readers have
/// finished, and later ones wait for it. Changes are reported to the main queue in the order in which they were made.
package final class PhotoManager: @unchecked Sendable {  // SAFETY: GUARDED BY `queue`.
  /// The singleton that the program uses.
  package static let shared = PhotoManager()

  package enum Change: Sendable {
    case updated(Photo)
    case removed(Photo)
  }

  private struct Entry {
    var photo: Photo
    let batch: DispatchGroup
    /// Cancels the work on the photo: a download, or the search for faces.
    var cancel: (@Sendable () -> Void)?
    var isClaimed = false
  }

  /// The maximum number of photos.
  package let capacity: Int
  private let queue = DispatchQueue(label: "googlypuff.photos", attributes: .concurrent)
  private let listeners: DispatchQueue
  private var entries: [Int: Entry] = [:]
  private var lastID = 0
  private var listener: (@Sendable (Change) -> Void)?

  /// - Parameter listeners: the serial queue on which changes are reported.
  package init(capacity: Int = 2_000, listeners: DispatchQueue = .main) {
    self.capacity = capacity
    self.listeners = listeners
  }

  // MARK: Readers

  package var count: Int { queue.sync { entries.count } }

  /// A snapshot of all photos, in the order in which they were added.
  package var photos: [Photo] { queue.sync { entries.values.map(\.photo).sorted { $0.id < $1.id } } }

  package func photo(_ id: Int) -> Photo? { queue.sync { entries[id]?.photo } }

  // MARK: Writers

  /// Sets the closure that is called on the listeners' queue after each change.
  package func whenChanged(_ listener: @escaping @Sendable (Change) -> Void) {
    queue.async(flags: .barrier) { self.listener = listener }
  }

  /// Adds photos that are about to arrive, and enters the group once for each. The group is left when the photo is
  /// ready, has failed or was removed, after that change was submitted to the listeners' queue.
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

  /// Sets how to cancel the work on a photo. If the photo was removed already, the work is cancelled at once.
  package func work(on id: Int, cancel: @escaping @Sendable () -> Void) {
    queue.async(flags: .barrier) {
      if self.entries[id] == nil { cancel() }
      self.entries[id]?.cancel = cancel
    }
  }

  /// Whether the photo is expected, and this is the first call for it: of two uploads of one photo, one is accepted.
  package func claim(_ id: Int) -> Bool {
    queue.sync(flags: .barrier) {
      guard let entry = entries[id], entry.photo.stage == .arriving, !entry.isClaimed else { return false }
      entries[id]!.isClaimed = true
      return true
    }
  }

  /// The photo can be shown.
  package func ready(_ id: Int, width: Int, height: Int) {
    queue.async(flags: .barrier) {
      self.settle(id) {
        $0.stage = .ready
        $0.width = width
        $0.height = height
      }
    }
  }

  /// The photo cannot be shown. It stays until `forgetFailures`, so that the page can show that it failed.
  package func fail(_ id: Int, _ reason: String) { fail([id], reason) }

  package func fail(_ ids: Set<Int>, _ reason: String) {
    queue.async(flags: .barrier) {
      for id in ids.sorted() {
        self.settle(id) {
          $0.stage = .failed
          $0.reason = reason
        }
      }
    }
  }

  /// Called within a barrier.
  private func settle(_ id: Int, _ change: (inout Photo) -> Void) {
    // It may have been removed, or have failed: its page was closed, for example, while the upload went on.
    guard var entry = entries[id], entry.photo.stage == .arriving else { return }
    change(&entry.photo)
    entry.cancel = nil
    entries[id] = entry
    tell(.updated(entry.photo))
    entry.batch.leave()
  }

  /// The search for faces is done.
  package func found(_ eyes: [Photo.Eye], in id: Int) {
    queue.async(flags: .barrier) {
      guard self.entries[id] != nil else { return }
      self.entries[id]!.photo.eyes = eyes
      self.entries[id]!.cancel = nil
      self.tell(.updated(self.entries[id]!.photo))
    }
  }

  /// Removes the photo, and cancels the work on it.
  package func remove(_ id: Int) {
    queue.async(flags: .barrier) {
      guard let entry = self.entries.removeValue(forKey: id) else { return }
      entry.cancel?()
      self.tell(.removed(entry.photo))
      if entry.photo.stage == .arriving { entry.batch.leave() }
    }
  }

  /// Removes the failed photos of a batch.
  package func forgetFailures(of batch: Int) {
    queue.async(flags: .barrier) {
      for (id, entry) in self.entries where entry.photo.batch == batch && entry.photo.stage == .failed {
        self.entries[id] = nil
        self.tell(.removed(entry.photo))
      }
    }
  }

  /// Reports a change. Called within a barrier.
  private func tell(_ change: Change) {
    guard let listener else { return }
    listeners.async { listener(change) }
  }
}

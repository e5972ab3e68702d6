import Concourse

/// What the open pages show: the photos, the notices, the prompt. Like a view controller, it keeps its state on the
/// main queue and does its work elsewhere.
// SAFETY: the mutable state is OWNED BY the main queue.
package final class Gallery: @unchecked Sendable {
  /// What the page says when a batch has arrived.
  struct Notice: Sendable, Encodable {
    struct Failure: Sendable, Encodable {
      let name: String
      let reason: String
    }
    let batch: Int
    var arrived = 0
    var failures: [Failure] = []
  }

  private struct Page {
    var streams = 0
    /// Photos that the page has announced and will upload.
    var promised: Set<Int> = []
  }

  private let manager: PhotoManager
  private let store: PictureStore
  private let farm: Farm?
  private let events = EventStreams()
  private var photos: [Int: Photo] = [:]
  /// The notices of batches that have not ended.
  private var notices: [Int: Notice] = [:]
  private var pages: [String: Page] = [:]
  private var searching: Set<Int> = []
  private lazy var prompt = Prompt(
    isGalleryEmpty: { [unowned self] in photos.isEmpty },
    show: { [unowned self] isShown in events.send("prompt", isShown) })

  package init(manager: PhotoManager, store: PictureStore, farm: Farm? = nil) {
    self.farm = farm
    self.manager = manager
    self.store = store
    manager.whenChanged { change in MainQueue.run { self.changed(change) } }
  }

  // MARK: From any queue

  /// Adds a page's event stream. The page gets the notices that it has missed, all photos, then each change.
  ///
  /// - Parameter lastNotice: the number of the last notice that the page got before its stream broke off.
  /// - Returns: a closure to call when the stream has ended.
  func open(_ stream: EventStream, of page: String, lastNotice: Int?) -> @Sendable () -> Void {
    MainQueue.async {
      self.pages[page, default: Page()].streams += 1
      let photos = self.photos
      self.events.add(stream, lastNotice: lastNotice) { photos.values.sorted { $0.id < $1.id } }
      self.prompt.consider()
    }
    return {
      MainQueue.async {
        self.events.remove(stream)
        self.pages[page]?.streams -= 1
        self.awaitReturn(of: page)
      }
    }
  }

  /// Records that the page will upload these photos.
  func promise(_ photos: [Int], by page: String) {
    MainQueue.async {
      self.pages[page, default: Page()].promised.formUnion(photos)
      // The page may have been closed already.
      self.awaitReturn(of: page)
    }
  }

  /// The user opened a photo: starts the search for its faces.
  package func open(_ id: Int) {
    MainQueue.async {
      guard let photo = self.photos[id], photo.stage == .ready, photo.eyes == nil,
        self.searching.insert(id).inserted
      else { return }
      FaceSearch(id, manager: self.manager, store: self.store, farm: self.farm).start()
    }
  }

  /// Every photo of the batch is settled. Called on the main queue, after all changes of the photos.
  package func batchEnded(_ batch: Int) {
    events.send(notices.removeValue(forKey: batch) ?? Notice(batch: batch))
    manager.forgetFailures(of: batch)
  }

  // MARK: On the main queue

  private func changed(_ change: PhotoManager.Change) {
    switch change {
    case .updated(let photo):
      let wasSettled = photos.updateValue(photo, forKey: photo.id).map { $0.stage != .arriving } ?? false
      if !wasSettled { note(photo) }
      if photo.eyes != nil { searching.remove(photo.id) }
      events.send("photo", photo)
    case .removed(let photo):
      photos[photo.id] = nil
      searching.remove(photo.id)
      events.send("removed", photo.id)
      DispatchQueue.global(qos: .utility).async { [store] in store.remove(photo.id) }
    }
    // Only adding the first photo and removing the last one matter.
    if photos.count <= 1 { prompt.consider() }
  }

  private func note(_ photo: Photo) {
    switch photo.stage {
    case .arriving: break
    case .ready:
      notices[photo.batch, default: Notice(batch: photo.batch)].arrived += 1
      // A farm searches all photos, not only those that are looked at.
      if farm != nil { open(photo.id) }
    case .failed:
      notices[photo.batch, default: Notice(batch: photo.batch)].failures.append(
        Notice.Failure(name: photo.name, reason: photo.reason ?? ""))
    }
  }

  /// A page without a stream either reconnects soon or was closed. After five seconds it counts as closed, and the
  /// photos that it announced but did not upload have failed.
  private func awaitReturn(of page: String) {
    guard pages[page]?.streams == 0 else { return }
    MainQueue.async(after: .seconds(5)) {
      guard let left = self.pages[page], left.streams == 0 else { return }
      self.pages[page] = nil
      let missing = left.promised.filter { self.photos[$0]?.stage == .arriving }
      self.manager.fail(missing, "the page was closed before the upload was complete")
    }
  }
}

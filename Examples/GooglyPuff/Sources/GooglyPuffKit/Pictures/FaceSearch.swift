import Concourse
import GooglyPuffVision

/// Searches one photo for faces on the user-initiated global queue, draws the eyes, and passes the result through the
/// manager to the main queue. A farm's program searches elsewhere.
// SAFETY: `item` is set in `init` only. A work item may be cancelled from any thread.
final class FaceSearch: @unchecked Sendable {
  /// Bounds how many searches occupy a thread. More would only block in `permits.wait()`, each with a thread.
  private static let turnstile = Turnstile(places: 2)

  private let id: Int
  private let manager: PhotoManager
  private let store: PictureStore
  private let farm: Farm?
  private var item: DispatchWorkItem!

  init(_ id: Int, manager: PhotoManager, store: PictureStore, farm: Farm?) {
    self.farm = farm
    self.id = id
    self.manager = manager
    self.store = store
    item = DispatchWorkItem(qos: .userInitiated) { [weak self] in self?.run() }
  }

  func start() {
    // The manager retains the search until it ends. If the photo is removed first, the search never starts. A running
    // block cannot be stopped from outside, so the search checks `isCancelled` between its steps.
    manager.work(on: id) { self.item.cancel() }
    if let farm {
      DispatchQueue.global(qos: .userInitiated).async { self.ask(farm) }
      return
    }
    FaceSearch.turnstile.enter { turn in
      DispatchQueue.global(qos: .userInitiated).async {
        withExtendedLifetime(turn) { self.item.perform() }
      }
    }
  }

  private func run() {
    Darkroom.permits.wait()
    defer { Darkroom.permits.signal() }
    guard !item.isCancelled else { return }
    guard let bytes = store.read(.photo, of: id) else { return manager.found([], in: id) }
    do {
      keep(try GooglyPhoto(of: bytes, while: { !item.isCancelled }))
    } catch {
      // It cannot be encoded: the photo stays without eyes.
      manager.found([], in: id)
    }
  }

  private func ask(_ farm: Farm) {
    guard let name = manager.photo(id)?.name, let bytes = store.read(.photo, of: id) else {
      return manager.found([], in: id)
    }
    Task {
      do {
        keep(try await farm.search(id, name, bytes))
      } catch {
        manager.found([], in: id)
      }
    }
  }

  private func keep(_ googly: GooglyPhoto) {
    guard !item.isCancelled else { return }
    do {
      try store.write([UInt8](googly.photo), .googly, of: id)
      try store.write([UInt8](googly.thumbnail), .googlyThumbnail, of: id)
      manager.found(googly.eyes, in: id)
      // It may have been removed while its files were written.
      if manager.photo(id) == nil { store.remove(id) }
    } catch {
      // The files could not be written: the photo stays without eyes.
      manager.found([], in: id)
    }
  }
}

extension Photo.Eye {
  static func both(of face: GooglyFace) -> [Photo.Eye] {
    [face.eyes.0, face.eyes.1].map { Photo.Eye(x: $0.x, y: $0.y, radius: $0.radius) }
  }
}

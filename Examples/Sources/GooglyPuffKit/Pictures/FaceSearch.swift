import Concourse
import GooglyPuffVision

/// The search for the faces of one photo, on the queue for what a person waits for. It draws the eyes, and hands the
/// result to the main queue, by way of the manager.
// SAFETY: `item` is set once, before anybody else has the search; a work item may be cancelled from any thread.
final class FaceSearch: @unchecked Sendable {
  private let id: Int
  private let manager: PhotoManager
  private let store: PictureStore
  private var item: DispatchWorkItem!

  init(_ id: Int, manager: PhotoManager, store: PictureStore) {
    self.id = id
    self.manager = manager
    self.store = store
    item = DispatchWorkItem(qos: .userInitiated) { [weak self] in self?.run() }
  }

  func start() {
    // The manager keeps the search until it has ended. If the photo is removed before it begins, it never does; if it
    // has begun, it looks at `isCancelled` between two steps, since a running block cannot be stopped from outside.
    manager.work(on: id) { self.item.cancel() }
    DispatchQueue.global(qos: .userInitiated).async(execute: item)
  }

  private func run() {
    Darkroom.permits.wait()
    defer { Darkroom.permits.signal() }
    guard !item.isCancelled, let bytes = store.read(.photo, of: id) else { return }
    do {
      let picture = try Picture(decoding: bytes, side: Darkroom.photoSide)
      let faces = picture.faces(while: { !item.isCancelled })
      picture.drawEyes(on: faces)
      guard !item.isCancelled else { return }
      try store.write(picture.encode(), .googly, of: id)
      try store.write(
        picture.encode(shorterSide: Darkroom.thumbnailSide, quality: 82), .googlyThumbnail, of: id)
      manager.found(faces.flatMap(Photo.Eye.both), in: id)
      // Removed while its files were written.
      if manager.photo(id) == nil { store.remove(id) }
    } catch {
      // Its files could not be written: it stays as it is.
      manager.found([], in: id)
    }
  }
}

extension Photo.Eye {
  static func both(of face: GooglyFace) -> [Photo.Eye] {
    [face.eyes.0, face.eyes.1].map { Photo.Eye(x: $0.x, y: $0.y, radius: $0.radius) }
  }
}

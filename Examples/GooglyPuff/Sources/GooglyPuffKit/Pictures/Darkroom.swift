import Concourse

/// Makes a scaled photo and a thumbnail from each file that arrives.
///
/// Files that arrive while others are developed are collected, and then developed together by `concurrentPerform`. Each
/// photo is reported as soon as it is ready.
// SAFETY: `waiting` is OWNED BY `queue`, a serial queue. After `init` the source is only added to, which any thread may
// do.
package final class Darkroom: @unchecked Sendable {
  /// The longer side of a photo and the shorter side of a thumbnail, in pixels.
  package static let photoSide = 1_600
  package static let thumbnailSide = 360

  /// Bounds how many pictures are decoded at a time, here and in `FaceSearch`: one can take 400 MB.
  static let permits = DispatchSemaphore(value: 2)

  private struct File: Sendable {
    let id: Int
    let bytes: [UInt8]
    /// Released at the end of the loop, which admits the next file.
    let turn: Turnstile.Turn
  }

  private let manager: PhotoManager
  private let store: PictureStore
  private let queue = DispatchQueue(label: "googlypuff.darkroom", qos: .utility)
  private let arrivals: any DispatchSourceUserDataAdd
  private var waiting: [File] = []

  package init(manager: PhotoManager, store: PictureStore) {
    self.manager = manager
    self.store = store
    arrivals = DispatchSource.makeUserDataAddSource(queue: queue)
    arrivals.setEventHandler { [weak self] in self?.developAll() }
    arrivals.activate()
  }

  deinit { arrivals.cancel() }

  /// Develops a file, alone or together with others.
  package func develop(_ bytes: [UInt8], as id: Int, turn: Turnstile.Turn) {
    queue.async {
      self.waiting.append(File(id: id, bytes: bytes, turn: turn))
      // Adds before the handler runs are coalesced into one call.
      self.arrivals.add(data: 1)
    }
  }

  private func developAll() {
    let files = waiting
    waiting = []
    DispatchQueue.concurrentPerform(iterations: files.count) { develop(files[$0]) }
  }

  private func develop(_ file: File) {
    // Removed or failed while it waited.
    guard manager.photo(file.id)?.stage == .arriving else { return }
    do {
      Darkroom.permits.wait()
      defer { Darkroom.permits.signal() }
      let picture = try Picture(decoding: file.bytes, side: Darkroom.photoSide)
      try store.write(picture.encode(), .photo, of: file.id)
      try store.write(
        picture.encode(shorterSide: Darkroom.thumbnailSide, quality: 82), .thumbnail, of: file.id)
      manager.ready(file.id, width: picture.width, height: picture.height)
      // It may have been removed while its files were written.
      if manager.photo(file.id) == nil { store.remove(file.id) }
    } catch let error as PictureError {
      manager.fail(file.id, error.message)
    } catch {
      manager.fail(file.id, "the photo could not be stored: \(error)")
    }
  }
}

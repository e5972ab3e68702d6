import Concourse

/// Makes of each file that arrives a photo of moderate size and a thumbnail.
///
/// Files gather while others are developed. Then a loop takes all that have gathered, as many at a time as there are
/// processors; each photo is told as it gets ready.
// SAFETY: `waiting` is OWNED BY `queue`, a serial queue. The source is used after `init` only to add to it, which any
// thread may do.
package final class Darkroom: @unchecked Sendable {
  /// Pixels of the longer side of a photo, and of the shorter side of a thumbnail.
  package static let photoSide = 1_600
  package static let thumbnailSide = 360

  /// How many pictures may be decoded at a time, here and for faces: a decoded one can have a hundred megabytes.
  static let permits = DispatchSemaphore(value: 2)

  private struct File: Sendable {
    let id: Int
    let bytes: [UInt8]
    /// Dropped at the end of the loop, which lets the next ones in.
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

  /// Develops a file, at once or together with others.
  package func develop(_ bytes: [UInt8], as id: Int, turn: Turnstile.Turn) {
    queue.async {
      self.waiting.append(File(id: id, bytes: bytes, turn: turn))
      // However many are added before the handler runs, it runs once.
      self.arrivals.add(data: 1)
    }
  }

  private func developAll() {
    let files = waiting
    waiting = []
    DispatchQueue.concurrentPerform(iterations: files.count) { develop(files[$0]) }
  }

  private func develop(_ file: File) {
    // Removed while it waited.
    guard manager.photo(file.id) != nil else { return }
    do {
      Darkroom.permits.wait()
      defer { Darkroom.permits.signal() }
      let picture = try Picture(decoding: file.bytes, side: Darkroom.photoSide)
      try store.write(picture.encode(), .photo, of: file.id)
      try store.write(
        picture.encode(shorterSide: Darkroom.thumbnailSide, quality: 82), .thumbnail, of: file.id)
      manager.ready(file.id, width: picture.width, height: picture.height)
      // Removed while its files were written.
      if manager.photo(file.id) == nil { store.remove(file.id) }
    } catch let error as PictureError {
      manager.fail(file.id, error.message)
    } catch {
      manager.fail(file.id, "it could not be stored: \(error)")
    }
  }
}

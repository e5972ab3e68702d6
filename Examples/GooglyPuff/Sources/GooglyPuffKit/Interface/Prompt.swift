import Concourse

/// The prompt to add photos. It appears two seconds after a page was opened on an empty gallery, or the last photo was
/// removed: a delayed block on the main queue, which checks again that the gallery is empty.
// SAFETY: OWNED BY the main queue.
final class Prompt: @unchecked Sendable {
  static let delay = DispatchTimeInterval.seconds(2)

  private let isGalleryEmpty: () -> Bool
  private let show: (Bool) -> Void
  private var isShown = false

  init(isGalleryEmpty: @escaping () -> Bool, show: @escaping (Bool) -> Void) {
    self.isGalleryEmpty = isGalleryEmpty
    self.show = show
  }

  /// Called when a page was opened, or the photos have changed.
  func consider() {
    guard isGalleryEmpty() else {
      if isShown { show(false) }
      isShown = false
      return
    }
    MainQueue.async(after: Prompt.delay) {
      guard self.isGalleryEmpty() else { return }
      self.isShown = true
      // Sent to all pages, because one of them may be new.
      self.show(true)
    }
  }
}

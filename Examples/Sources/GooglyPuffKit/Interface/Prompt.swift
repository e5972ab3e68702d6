import Concourse

/// The invitation to add photos, two seconds after a page was opened without any, or the last one was removed: a delayed
/// block on the main queue, which looks again before it speaks.
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

  /// A page was opened, or the photos have changed.
  func consider() {
    guard isGalleryEmpty() else {
      if isShown { show(false) }
      isShown = false
      return
    }
    MainQueue.async(after: Prompt.delay) {
      guard self.isGalleryEmpty() else { return }
      self.isShown = true
      // Said again to all, as one of them may be new.
      self.show(true)
    }
  }
}

import Concourse

extension Listing {
  static let backgroundWork = Listing(
    "background-work", "heavy work in the background, its result on the main queue"
  ) {
    print in
    let done = DispatchSemaphore(value: 0)
    let screen = ImageScreen(size: 64) { screen in
      print("shown on \(isMainThread ? "the main thread" : "a worker"): \(screen.shown?.count ?? 0) pixels")
      done.signal()
    }
    screen.load()
    done.wait()
    withExtendedLifetime(screen) {}
  }
}

/// A screen with a picture that takes long to compute. Only items of one queue use its state.
final class ImageScreen: @unchecked Sendable {  // SAFETY: OWNED BY `interface`.
  /// What is on the screen.
  private(set) var shown: [UInt8]?
  private let size: Int
  private let interface: DispatchQueue
  private let whenShown: @Sendable (ImageScreen) -> Void

  /// - Parameters:
  ///   - size: the width and the height, in pixels.
  ///   - interface: the queue that the screen belongs to.
  ///   - whenShown: called in an item of that queue.
  init(
    size: Int, interface: DispatchQueue = .main, whenShown: @escaping @Sendable (ImageScreen) -> Void
  ) {
    self.size = size
    self.interface = interface
    self.whenShown = whenShown
  }

  /// Computes the picture and shows it.
  ///
  /// Both closures hold the screen weakly: if it is released before its picture is ready, the picture is not needed.
  func load(willCompute: @escaping @Sendable () -> Void = {}) {
    let interface = interface
    DispatchQueue.global(qos: .userInitiated).async { [weak self] in
      willCompute()
      guard let size = self?.size else { return }
      let picture = ImageScreen.paint(size)
      interface.async { [weak self] in
        guard let self else { return }
        shown = picture
        whenShown(self)
      }
    }
  }

  /// Rings around the middle.
  private static func paint(_ size: Int) -> [UInt8] {
    (0..<size * size).map { place in
      let (x, y) = (place % size - size / 2, place / size - size / 2)
      return UInt8(truncatingIfNeeded: x * x + y * y)
    }
  }
}

extension Listing {
  static let delayedPrompt = Listing("delay", "a prompt after two seconds") { print in
    let done = DispatchSemaphore(value: 0)
    let start = DispatchTime.now()
    print("a prompt is going to appear")
    showPrompt {
      let waited = start.distance(to: .now())
      print("add photos to begin (after \(wholeSeconds(waited)) s)")
      done.signal()
    }
    done.wait()
  }
}

/// Shows a prompt later.
///
/// - Parameters:
///   - delay: the queue may be late, but is never early.
///   - queue: where `show` is called.
func showPrompt(
  after delay: DispatchTimeInterval = .seconds(2), on queue: DispatchQueue = .main,
  show: @escaping @Sendable () -> Void
) {
  queue.asyncAfter(deadline: .now() + delay, execute: show)
}

private func wholeSeconds(_ interval: DispatchTimeInterval) -> Int {
  guard case .nanoseconds(let nanoseconds) = interval else { return 0 }
  return nanoseconds / 1_000_000_000
}

extension Listing {
  static let photoManager = Listing("photo-manager", "readers and a writer: a barrier in a concurrent queue")
  {
    print in
    let done = DispatchSemaphore(value: 0)
    let manager = PhotoManager.shared
    manager.whenAdded { count in
      print("\(count) photos, reported on \(isMainThread ? "the main thread" : "a worker")")
      done.signal()
    }
    for photo in ["harbour", "lighthouse", "ferry"] { manager.add(photo) }
    print("\(manager.photos)")
    for _ in 1...3 { done.wait() }
  }
}

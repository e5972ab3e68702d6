import Concourse

extension Listing {
  static let backgroundWork = Listing("background-work", "heavy work elsewhere, its result on the main queue")
  {
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

/// Something with a picture that takes its time, and with a state that only items of one queue touch.
package final class ImageScreen: @unchecked Sendable {  // SAFETY: OWNED BY `interface`.
  /// What is on the screen.
  package private(set) var shown: [UInt8]?
  private let size: Int
  private let interface: DispatchQueue
  private let whenShown: @Sendable (ImageScreen) -> Void

  /// - Parameters:
  ///   - size: the width and the height, in pixels.
  ///   - interface: the queue that the screen belongs to.
  ///   - whenShown: called in an item of that queue.
  package init(
    size: Int, interface: DispatchQueue = .main, whenShown: @escaping @Sendable (ImageScreen) -> Void
  ) {
    self.size = size
    self.interface = interface
    self.whenShown = whenShown
  }

  /// Computes the picture and shows it.
  ///
  /// Both closures hold the screen weakly: if it is gone before its picture is ready, nobody needs that.
  package func load(willCompute: @escaping @Sendable () -> Void = {}) {
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

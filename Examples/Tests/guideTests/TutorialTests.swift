import Concourse
import Testing

@testable import guide

/// The tutorial's listings but for the photo manager.
@Suite("Tutorial", .timeLimit(.minutes(10))) struct TutorialTests {
  @Test func thePictureIsShownOnTheInterfacesQueue() {
    let interface = DispatchQueue(label: "interface")
    let done = DispatchSemaphore(value: 0)
    let shown = Guarded((label: "", pixels: [UInt8]()))
    let screen = ImageScreen(size: 8, interface: interface) { screen in
      let label = DispatchQueue.currentLabel
      shown.use { $0 = (label, screen.shown ?? []) }
      done.signal()
    }
    screen.load()
    #expect(done.comes())
    #expect(shown.use { $0.label } == "interface")
    let pixels = shown.use { $0.pixels }
    #expect(pixels.count == 64)
    #expect(pixels[4 * 8 + 4] == 0 && pixels[4 * 8 + 7] == 9)
  }

  @Test func aScreenThatIsGoneIsNeitherKeptNorShown() {
    let interface = DispatchQueue(label: "interface")
    let begun = DispatchSemaphore(value: 0)
    let goOn = DispatchSemaphore(value: 0)
    let ended = DispatchSemaphore(value: 0)
    let shown = Guarded(false)
    var screen: ImageScreen? = ImageScreen(size: 8, interface: interface) { _ in shown.use { $0 = true } }
    weak let observed = screen
    screen?.load(willCompute: block(begun, goOn, EndSignal(ended)))
    #expect(begun.comes())
    // The work has begun, and does not keep the screen.
    screen = nil
    #expect(observed == nil)
    goOn.signal()
    // The work has ended when its closure is gone. What it had to show would be in the queue by now.
    #expect(ended.comes())
    interface.sync {}
    #expect(!shown.use { $0 })
  }

  private func block(
    _ begun: DispatchSemaphore, _ goOn: DispatchSemaphore, _ end: EndSignal
  ) -> @Sendable () -> Void {
    {
      begun.signal()
      goOn.wait()
      withExtendedLifetime(end) {}
    }
  }

  @Test func noScreenLeaks() {
    let interface = DispatchQueue(label: "interface")
    let done = DispatchSemaphore(value: 0)
    var screens = (0..<20).map { _ in ImageScreen(size: 4, interface: interface) { _ in done.signal() } }
    let observed = screens.map { WeakReference($0) }
    for screen in screens { screen.load() }
    for _ in screens { #expect(done.comes()) }
    // The items that have shown the screens have ended then.
    interface.sync {}
    #expect(observed.allSatisfy { $0.screen != nil })
    screens = []
    #expect(observed.allSatisfy { $0.screen == nil })
  }

  @Test func thePromptIsNotEarlyAndNotMuchLate() {
    let queue = DispatchQueue(label: "interface")
    let done = DispatchSemaphore(value: 0)
    let shown = Guarded<DispatchTime?>(nil)
    let start = DispatchTime.now()
    showPrompt(after: .milliseconds(200), on: queue) {
      shown.use { $0 = .now() }
      done.signal()
    }
    #expect(done.comes())
    let waited = (shown.use { $0 }?.uptimeNanoseconds ?? 0) - start.uptimeNanoseconds
    #expect(waited >= 200_000_000)
    // How late it may be is up to the machine; this is what no working one takes.
    #expect(waited < 30_000_000_000)
  }
}

/// A screen that may be gone.
private struct WeakReference {
  weak var screen: ImageScreen?
  init(_ screen: ImageScreen) { self.screen = screen }
}

/// Signals when nothing holds it any more.
private final class EndSignal: Sendable {
  private let semaphore: DispatchSemaphore
  init(_ semaphore: DispatchSemaphore) { self.semaphore = semaphore }
  deinit { semaphore.signal() }
}

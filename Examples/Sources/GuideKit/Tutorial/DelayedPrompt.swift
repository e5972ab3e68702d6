import Concourse

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

/// Shows a prompt in a while.
///
/// - Parameters:
///   - delay: when; the queue may be late, but is never early.
///   - queue: where `show` is called.
package func showPrompt(
  after delay: DispatchTimeInterval = .seconds(2), on queue: DispatchQueue = .main,
  show: @escaping @Sendable () -> Void
) {
  queue.asyncAfter(deadline: .now() + delay, execute: show)
}

private func wholeSeconds(_ interval: DispatchTimeInterval) -> Int {
  guard case .nanoseconds(let nanoseconds) = interval else { return 0 }
  return nanoseconds / 1_000_000_000
}

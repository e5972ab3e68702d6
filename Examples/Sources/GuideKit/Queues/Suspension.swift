import Concourse

extension Listing {
  static let suspension = Listing("suspend-resume", "a queue that holds its items back") { print in
    let queue = DispatchQueue(label: "org.concourse.guide.suspended")
    let step = HeldBack(queue)
    queue.async { print("the item runs") }
    for _ in 1...2 {
      print("resumed \(step.resume() ? "for good" : "once")")
    }
    queue.sync {}
  }
}

/// A queue that has been suspended twice: items start when it has been resumed as often.
///
/// Suspension takes effect between items. One that runs already runs to its end.
package final class HeldBack: @unchecked Sendable {  // SAFETY: OWNED BY whoever resumes.
  private let queue: DispatchQueue
  private var suspensions = 2

  package init(_ queue: DispatchQueue) {
    self.queue = queue
    for _ in 0..<suspensions { queue.suspend() }
  }

  /// - Returns: whether that was the last time.
  package func resume() -> Bool {
    suspensions -= 1
    queue.resume()
    return suspensions == 0
  }
}

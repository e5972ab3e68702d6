import Concourse

extension Listing {
  static let bothWays = Listing("async-then-sync", "what returns at once, and what waits its turn") {
    asyncThenSync(print: $0)
  }
}

/// The line in the middle may be printed first, second or, on a busy machine, third; the last of the three
/// is always last.
package func asyncThenSync(print: @escaping Output) {
  let queue = DispatchQueue(label: "org.concourse.guide.custom")
  queue.async { print("asynchronous item") }
  print("the submitting thread goes on")
  queue.sync { print("synchronous item") }
}

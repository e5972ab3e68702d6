import Concourse

extension Listing {
  static let currentQueue = Listing("current-queue", "where am I?, for debugging only") { print in
    let outer = DispatchQueue(label: "org.concourse.guide.outer")
    let inner = DispatchQueue(label: "org.concourse.guide.inner")
    print("in an item: \(outer.sync { DispatchQueue.currentLabel })")
    print(
      "in an item that another one waits for: \(outer.sync { inner.sync { DispatchQueue.currentLabel } })")
    outer.sync { inner.sync { expectToBeOnBoth(outer, inner) } }
    print("this thread holds both queues then, so there is no one current queue to ask for")
  }
}

/// What to do in place of asking for the current queue: say what must be the case. Ends the process if it
/// is not.
package func expectToBeOnBoth(_ outer: DispatchQueue, _ inner: DispatchQueue) {
  dispatchPrecondition(condition: .onQueue(inner))
  dispatchPrecondition(condition: .onQueue(outer))
}

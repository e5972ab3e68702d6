import Concourse

extension Listing {
  static let urgencies = Listing("global-queues", "the queues that are always there, one for each urgency") {
    print in
    for (name, queue) in globalQueues {
      // Their items run at the same time as each other; waiting for each keeps the lines in order.
      queue.sync { print("\(name): an item of \(DispatchQueue.currentLabel)") }
    }
  }
}

/// The four urgencies by their names. Asking for a global queue again gives the same object.
package var globalQueues: [(name: String, queue: DispatchQueue)] {
  [
    ("high", .global(qos: .userInitiated)),
    ("default", .global()),
    ("low", .global(qos: .utility)),
    ("background", .global(qos: .background)),
  ]
}

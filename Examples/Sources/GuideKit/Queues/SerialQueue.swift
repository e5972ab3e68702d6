import Concourse

extension Listing {
  static let serialQueue = Listing("serial-queue", "one item after the other, first in, first out") { print in
    let queue = makeSerialQueue()
    print("the queue \(queue.label)")
    for number in 1...5 { queue.async { print("item \(number)") } }
    queue.sync {}
  }
}

/// A queue of one's own. The label, in reverse-DNS style, is for people who look at the program from outside.
package func makeSerialQueue() -> DispatchQueue {
  DispatchQueue(label: "org.concourse.guide.serial")
}

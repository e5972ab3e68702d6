import Concourse

extension Listing {
  static let oneSerialQueue = Listing("loops-serial", "two loops on one serial queue") { print in
    print("\(loopsOnOneSerialQueue())")
  }
}

/// The second loop begins when the first has ended. Returns the numbers in the order in which they came.
package func loopsOnOneSerialQueue() -> [Int] {
  let queue = DispatchQueue(label: "org.concourse.guide.loops")
  let numbers = Guarded([Int]())
  queue.async { for number in 1...10 { numbers.use { $0.append(number) } } }
  queue.async { for number in 11...20 { numbers.use { $0.append(number) } } }
  queue.sync {}
  return numbers.use { $0 }
}

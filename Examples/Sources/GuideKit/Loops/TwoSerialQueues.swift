import Concourse

extension Listing {
  static let twoSerialQueues = Listing("loops-two-queues", "two loops, each on a serial queue of its own") {
    print in
    print("\(loopsOnTwoSerialQueues())")
  }
}

/// The loops run at the same time, each in its own order. Returns the numbers in the order in which they came.
package func loopsOnTwoSerialQueues() -> [Int] {
  let first = DispatchQueue(label: "org.concourse.guide.first")
  let second = DispatchQueue(label: "org.concourse.guide.second")
  let numbers = Guarded([Int]())
  first.async { for number in 1...10 { numbers.use { $0.append(number) } } }
  second.async { for number in 11...20 { numbers.use { $0.append(number) } } }
  first.sync {}
  second.sync {}
  return numbers.use { $0 }
}

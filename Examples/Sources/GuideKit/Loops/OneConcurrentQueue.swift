import Concourse

extension Listing {
  static let oneConcurrentQueue = Listing("loops-concurrent", "two loops on one concurrent queue") { print in
    print("\(loopsOnOneConcurrentQueue())")
  }
}

/// The loops are begun in order and run at the same time. Returns the numbers in the order in which they came.
package func loopsOnOneConcurrentQueue() -> [Int] {
  let queue = DispatchQueue(label: "org.concourse.guide.concurrent", attributes: .concurrent)
  let numbers = Guarded([Int]())
  queue.async { for number in 1...10 { numbers.use { $0.append(number) } } }
  queue.async { for number in 11...20 { numbers.use { $0.append(number) } } }
  // A barrier waits for all that came before it.
  queue.sync(flags: .barrier) {}
  return numbers.use { $0 }
}

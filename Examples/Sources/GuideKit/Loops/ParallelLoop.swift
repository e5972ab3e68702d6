import Concourse

extension Listing {
  static let parallelLoop = Listing("apply", "a loop whose iterations run at the same time") { print in
    print("squares up to 9²: \(squares(10))")
    print("the sum of 0..<100 in 25 strides of 4: \(sum(Array(0..<100), stride: 4))")
  }
}

/// The first squares, each computed by an iteration of its own. Returns when all have been.
package func squares(_ count: Int) -> [Int] {
  var squares = [Int](repeating: 0, count: count)
  squares.withUnsafeMutableBufferPointer { buffer in
    // SAFETY: each iteration writes to a place that no other looks at, before `concurrentPerform` returns.
    nonisolated(unsafe) let places = buffer
    DispatchQueue.concurrentPerform(iterations: count) { index in places[index] = index * index }
  }
  return squares
}

/// The sum of some numbers, where one addition is too little work for an iteration: each takes `stride`.
package func sum(_ numbers: [Int], stride: Int) -> Int {
  let total = Guarded(0)
  DispatchQueue.concurrentPerform(iterations: (numbers.count + stride - 1) / stride) { iteration in
    let start = iteration * stride
    let part = numbers[start..<min(start + stride, numbers.count)].reduce(0, +)
    total.use { $0 += part }
  }
  return total.use { $0 }
}

/// What must not be done: to wait, in an item of a serial queue, for another item of that queue, which
/// begins when this one has ended. Ends the process with a line that says so.
package func waitForOneself(on queue: DispatchQueue) {
  queue.sync {
    queue.sync {}
  }
}

import Concourse

extension Listing {
  static let completion = Listing("completion", "work elsewhere, and the answer on the caller's own queue") {
    print in
    let done = DispatchSemaphore(value: 0)
    average(of: [1, 2, 3, 4], reportingOn: DispatchQueue(label: "org.concourse.guide.caller")) { average in
      print("the average is \(average), on \(DispatchQueue.currentLabel)")
      done.signal()
    }
    done.wait()
  }
}

/// Computes the average of some numbers in the background, and tells it to the caller.
///
/// - Parameters:
///   - numbers: not empty.
///   - queue: where to tell it. The caller may let go of it at once: the closures below keep it.
///   - completion: called once, with the average.
package func average(
  of numbers: [Int], reportingOn queue: DispatchQueue, completion: @escaping @Sendable (Double) -> Void
) {
  DispatchQueue.global().async {
    let average = Double(numbers.reduce(0, +)) / Double(numbers.count)
    queue.async { completion(average) }
  }
}

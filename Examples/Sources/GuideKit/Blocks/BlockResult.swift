import Concourse

extension Listing {
  static let blockResult = Listing("block-result", "a closure that runs at once writes to its scope") {
    print in
    let numbers = [3, 1, 4, 1, 5, 9, 2, 6]
    print("the largest of \(numbers) is \(largest(of: numbers) ?? 0)")
  }
}

/// The largest number, found by an item of another queue.
///
/// `sync` returns when the closure has, so the closure may write to a variable of this function. An
/// asynchronous one may not: the compiler refuses it.
package func largest(of numbers: [Int]) -> Int? {
  var result: Int?
  DispatchQueue(label: "org.concourse.guide.maximum").sync {
    for number in numbers where number > result ?? .min { result = number }
  }
  return result
}

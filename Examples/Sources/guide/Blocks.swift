import Concourse

extension Listing {
  static let simpleBlock = Listing("simple-block", "a closure captures two numbers and prints them") {
    print in
    let printer = makePrinter(of: 3, and: 4, print)
    printer(5)
  }
}

/// A closure that prints the two numbers of its scope with the one it is given.
///
/// It captures copies of both, which live as long as the closure.
func makePrinter(of first: Int, and second: Int, _ print: @escaping Output) -> (Int) -> Void {
  { third in print("captured \(first) and \(second), called with \(third)") }
}

extension Listing {
  static let blockResult = Listing(
    "block-result", "a closure that runs at once writes a variable of its scope"
  ) {
    print in
    let numbers = [3, 1, 4, 1, 5, 9, 2, 6]
    print("the largest of \(numbers) is \(largest(of: numbers) ?? 0)")
  }
}

/// The largest number, found by an item of another queue.
///
/// `sync` returns after the closure, so the closure may write a variable of this function. The compiler refuses that
/// in an asynchronous one.
func largest(of numbers: [Int]) -> Int? {
  var result: Int?
  DispatchQueue(label: "org.concourse.guide.maximum").sync {
    for number in numbers where number > result ?? .min { result = number }
  }
  return result
}

extension Listing {
  static let capturingClosure = Listing("closure", "a closure with two captured values, called with a third")
  {
    print in
    let fare = makeFare(base: 250, perKilometer: 180)
    for distance in [1, 7] { print("\(distance) km: \(fare(distance)) cents") }
  }
}

/// A function of the distance: the closure captures the two prices.
func makeFare(base: Int, perKilometer: Int) -> @Sendable (_ kilometers: Int) -> Int {
  { kilometers in base + perKilometer * kilometers }
}

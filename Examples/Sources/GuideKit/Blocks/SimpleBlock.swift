extension Listing {
  static let simpleBlock = Listing("simple-block", "a closure captures two numbers and prints them") {
    print in
    let printer = makePrinter(of: 3, and: 4, print)
    printer(5)
  }
}

/// A closure that prints the two numbers of its scope with the one it is given.
///
/// It holds copies of both: they live on in the closure after this function has returned.
package func makePrinter(of first: Int, and second: Int, _ print: @escaping Output) -> (Int) -> Void {
  { third in print("captured \(first) and \(second), called with \(third)") }
}

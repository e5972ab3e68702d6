extension Listing {
  static let capturingClosure = Listing("closure", "a closure with two captured values, called with a third")
  {
    print in
    let fare = makeFare(base: 250, perKilometer: 180)
    for distance in [1, 7] { print("\(distance) km: \(fare(distance)) cents") }
  }
}

/// A function of the distance alone: the two prices are inside of it.
package func makeFare(base: Int, perKilometer: Int) -> @Sendable (_ kilometers: Int) -> Int {
  { kilometers in base + perKilometer * kilometers }
}

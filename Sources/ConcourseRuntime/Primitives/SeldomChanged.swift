import Synchronization

/// A value that is read often and changes at few, quiet moments, each of them ordered by something else.
///
/// The model does not schedule at it, unlike at an `Atomic`.
struct SeldomChanged<Value: AtomicRepresentable>: ~Copyable {
  private let word: Synchronization.Atomic<Value>

  init(_ value: consuming Value) { word = Synchronization.Atomic(value) }
}

// The same for each width: atomics of different widths have no common operations.

extension SeldomChanged where Value.AtomicRepresentation == UInt8.AtomicRepresentation {
  var value: Value {
    // ORDERING: relaxed, both; whoever must see a change is told of it by other means.
    @inline(__always) get { word.load(ordering: .relaxed) }
    nonmutating set { word.store(newValue, ordering: .relaxed) }
  }
}

extension SeldomChanged where Value.AtomicRepresentation == UInt16.AtomicRepresentation {
  var value: Value {
    // ORDERING: relaxed, both; as above.
    @inline(__always) get { word.load(ordering: .relaxed) }
    nonmutating set { word.store(newValue, ordering: .relaxed) }
  }
}

extension SeldomChanged where Value.AtomicRepresentation == UInt.AtomicRepresentation {
  var value: Value {
    // ORDERING: relaxed, both; as above.
    @inline(__always) get { word.load(ordering: .relaxed) }
    nonmutating set { word.store(newValue, ordering: .relaxed) }
  }
}

extension SeldomChanged: Sendable where Value: Sendable {}

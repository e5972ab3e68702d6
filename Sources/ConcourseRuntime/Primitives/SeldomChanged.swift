import Synchronization

/// A value that is read often and rarely changes. Something else orders each change.
///
/// Unlike an `Atomic`, it is not a scheduling point of the model.
struct SeldomChanged<Value: AtomicRepresentable>: ~Copyable {
  private let word: Synchronization.Atomic<Value>

  init(_ value: consuming Value) { word = Synchronization.Atomic(value) }
}

// The same for each width: atomics of different widths have no common operations.

extension SeldomChanged where Value.AtomicRepresentation == UInt8.AtomicRepresentation {
  var value: Value {
    // ORDERING: relaxed, both; threads that must see a change are notified by other means.
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

/// A value that is read often and rarely changes, in the model: an atomic whose relaxed loads may return older values.
struct SeldomChanged<Value: AtomicRepresentable>: ~Copyable {
  private let word: Atomic<Value>

  init(_ value: consuming Value) { word = Atomic(value) }

  var value: Value {
    // ORDERING: relaxed, both; as in the engine.
    get { word.load(ordering: .relaxed) }
    nonmutating set { word.store(newValue, ordering: .relaxed) }
  }
}

extension SeldomChanged: Sendable where Value: Sendable {}

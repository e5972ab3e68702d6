/// A value that is read often and rarely changes, in the model: an atomic whose relaxed loads may return older values.
///
/// Not a scheduling point: a load that must come before a change of another thread returns the older value instead.
struct SeldomChanged<Value: AtomicRepresentable>: ~Copyable {
  private let word: Atomic<Value>

  init(_ value: consuming Value) { word = Atomic(value) }

  var value: Value {
    get { word.loadQuietly() }
    nonmutating set { word.storeQuietly(newValue) }
  }
}

extension SeldomChanged: Sendable where Value: Sendable {}

@_exported public import Synchronization

/// The engine's atomic, with a scheduling point of the model at every operation.
///
/// Coroutines share one system thread and switch only between operations, so plain accesses of the storage are
/// indivisible and sequentially consistent: the model explores interleavings, not reorderings. The requested orderings
/// still define which steps happen before which, and `Model.Cell` reports plain accesses that they leave unordered.
///
/// Outside an execution it is a plain variable: hooks may use it, other threads may not.
@usableFromInline
struct Atomic<Value: AtomicRepresentable>: ~Copyable {
  private let storage: Synchronization.Atomic<Value>

  @usableFromInline
  init(_ initialValue: consuming Value) {
    storage = Synchronization.Atomic(initialValue)
  }

  private var representation: UnsafeMutablePointer<Value.AtomicRepresentation> {
    // SAFETY: an Atomic consists of its representation's storage, which may change but not move while borrowed. No
    // pointer outlives the operation that requested it.
    withUnsafePointer(to: storage) {
      UnsafeMutableRawPointer(mutating: UnsafeRawPointer($0))
        .assumingMemoryBound(to: Value.AtomicRepresentation.self)
    }
  }

  /// The word's address, which identifies it to the scheduler.
  var address: UInt { UInt(bitPattern: representation) }

  /// The word's bytes.
  var bits: WordBits {
    // SAFETY: the representation and its own size; read at once.
    WordBits(UnsafeRawPointer(representation), size: MemoryLayout<Value.AtomicRepresentation>.size)
  }

  private var value: Value {
    get { Value.decodeAtomicRepresentation(representation.pointee) }
    nonmutating set { representation.pointee = Value.encodeAtomicRepresentation(newValue) }
  }
}

extension Atomic: Sendable where Value: Sendable {}

// MARK: - Loads and stores

extension Atomic {
  @usableFromInline
  func load(
    ordering: AtomicLoadOrdering, file: StaticString = #fileID, line: UInt = #line,
    function: StaticString = #function
  ) -> Value {
    let scheduler = Scheduler.arrive(in: file)
    guard let scheduler else { return value }
    let step = Step(.load, at: address, was: bits, is: bits, file: file, line: line)
      .ordered(acquiring: ordering != .relaxed, releasing: false)
    if let stale = scheduler.staleBits(for: step, in: function) {
      scheduler.note(step.reading(stale))
      return stale.value()
    }
    scheduler.note(step)
    return value
  }

  @usableFromInline
  func store(
    _ desired: consuming Value, ordering: AtomicStoreOrdering, file: StaticString = #fileID,
    line: UInt = #line
  ) {
    let scheduler = Scheduler.arrive(in: file)
    let was = bits
    value = desired
    scheduler?.note(
      Step(.store, at: address, was: was, is: bits, file: file, line: line)
        .ordered(acquiring: false, releasing: ordering != .relaxed))
  }

  @usableFromInline
  func exchange(
    _ desired: consuming Value, ordering: AtomicUpdateOrdering, file: StaticString = #fileID,
    line: UInt = #line
  ) -> Value {
    let scheduler = Scheduler.arrive(in: file)
    let was = bits
    let original = value
    value = desired
    scheduler?.note(
      Step(.update, at: address, was: was, is: bits, file: file, line: line)
        .ordered(acquiring: ordering.acquires, releasing: ordering.releases))
    return original
  }
}

// MARK: - Compare and exchange

extension Atomic {
  @usableFromInline
  func compareExchange(
    expected: consuming Value, desired: consuming Value, ordering: AtomicUpdateOrdering,
    file: StaticString = #fileID, line: UInt = #line
  ) -> (exchanged: Bool, original: Value) {
    compareExchange(
      expected: expected, desired: desired, successOrdering: ordering,
      failureOrdering: ordering.acquires ? .acquiring : .relaxed, file: file, line: line)
  }

  @usableFromInline
  func compareExchange(
    expected: consuming Value, desired: consuming Value, successOrdering: AtomicUpdateOrdering,
    failureOrdering: AtomicLoadOrdering, file: StaticString = #fileID, line: UInt = #line
  ) -> (exchanged: Bool, original: Value) {
    let scheduler = Scheduler.arrive(in: file)
    let was = bits
    let original = value
    // Compares bits, like the processor.
    let exchanged = was == WordBits(Value.encodeAtomicRepresentation(expected))
    if exchanged { value = desired }
    let step = Step(
      exchanged ? .update : .failedUpdate, at: address, was: was, is: bits, file: file, line: line)
    scheduler?.note(
      exchanged
        ? step.ordered(acquiring: successOrdering.acquires, releasing: successOrdering.releases)
        : step.ordered(acquiring: failureOrdering != .relaxed, releasing: false))
    return (exchanged, original)
  }

  // The weak forms do not fail spuriously here: a retry would add no behaviour.

  @usableFromInline
  func weakCompareExchange(
    expected: consuming Value, desired: consuming Value, ordering: AtomicUpdateOrdering,
    file: StaticString = #fileID, line: UInt = #line
  ) -> (exchanged: Bool, original: Value) {
    compareExchange(expected: expected, desired: desired, ordering: ordering, file: file, line: line)
  }

  @usableFromInline
  func weakCompareExchange(
    expected: consuming Value, desired: consuming Value, successOrdering: AtomicUpdateOrdering,
    failureOrdering: AtomicLoadOrdering, file: StaticString = #fileID, line: UInt = #line
  ) -> (exchanged: Bool, original: Value) {
    compareExchange(
      expected: expected, desired: desired, successOrdering: successOrdering,
      failureOrdering: failureOrdering, file: file, line: line)
  }
}

// MARK: - Updates

extension Atomic {
  /// One indivisible read-modify-write.
  private func update(
    _ ordering: AtomicUpdateOrdering, _ file: StaticString, _ line: UInt, _ change: (Value) -> Value
  ) -> (oldValue: Value, newValue: Value) {
    let scheduler = Scheduler.arrive(in: file)
    let was = bits
    let old = value
    let new = change(old)
    value = new
    scheduler?.note(
      Step(.update, at: address, was: was, is: bits, file: file, line: line)
        .ordered(acquiring: ordering.acquires, releasing: ordering.releases))
    return (old, new)
  }
}

extension Atomic where Value: FixedWidthInteger {
  @usableFromInline @discardableResult
  func wrappingAdd(
    _ operand: Value, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line
  ) -> (oldValue: Value, newValue: Value) {
    update(ordering, file, line) { $0 &+ operand }
  }

  @usableFromInline @discardableResult
  func wrappingSubtract(
    _ operand: Value, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line
  ) -> (oldValue: Value, newValue: Value) {
    update(ordering, file, line) { $0 &- operand }
  }

  @usableFromInline @discardableResult
  func add(
    _ operand: Value, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line
  ) -> (oldValue: Value, newValue: Value) {
    update(ordering, file, line) { $0 + operand }
  }

  @usableFromInline @discardableResult
  func subtract(
    _ operand: Value, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line
  ) -> (oldValue: Value, newValue: Value) {
    update(ordering, file, line) { $0 - operand }
  }

  @usableFromInline @discardableResult
  func bitwiseOr(
    _ operand: Value, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line
  ) -> (oldValue: Value, newValue: Value) {
    update(ordering, file, line) { $0 | operand }
  }

  @usableFromInline @discardableResult
  func bitwiseAnd(
    _ operand: Value, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line
  ) -> (oldValue: Value, newValue: Value) {
    update(ordering, file, line) { $0 & operand }
  }

  @usableFromInline @discardableResult
  func bitwiseXor(
    _ operand: Value, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line
  ) -> (oldValue: Value, newValue: Value) {
    update(ordering, file, line) { $0 ^ operand }
  }

  @usableFromInline @discardableResult
  func min(
    _ operand: Value, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line
  ) -> (oldValue: Value, newValue: Value) {
    update(ordering, file, line) { Swift.min($0, operand) }
  }

  @usableFromInline @discardableResult
  func max(
    _ operand: Value, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line
  ) -> (oldValue: Value, newValue: Value) {
    update(ordering, file, line) { Swift.max($0, operand) }
  }
}

extension Atomic where Value == Bool {
  @usableFromInline @discardableResult
  func logicalOr(
    _ operand: Bool, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line
  ) -> (oldValue: Bool, newValue: Bool) {
    update(ordering, file, line) { $0 || operand }
  }

  @usableFromInline @discardableResult
  func logicalAnd(
    _ operand: Bool, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line
  ) -> (oldValue: Bool, newValue: Bool) {
    update(ordering, file, line) { $0 && operand }
  }

  @usableFromInline @discardableResult
  func logicalXor(
    _ operand: Bool, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line
  ) -> (oldValue: Bool, newValue: Bool) {
    update(ordering, file, line) { $0 != operand }
  }
}

extension AtomicUpdateOrdering {
  fileprivate var acquires: Bool { self != .relaxed && self != .releasing }
  fileprivate var releases: Bool { self != .relaxed && self != .acquiring }
}

@_exported public import Synchronization

/// The engine's atomic, with a scheduling point of the model at every operation.
///
/// The storage has the newest store. Older ones are in the execution's `Location`, and `Access` chooses which of them
/// an operation reads or follows, as C11 allows for its ordering.
///
/// Outside an execution it is a plain variable: hooks may use it, other threads may not.
@usableFromInline
struct Atomic<Value: AtomicRepresentable>: ~Copyable {
  private let storage: Synchronization.Atomic<Value>
  // The ledger's build has the engine's layout.
  #if !LEDGER
    private let identity = WordIdentity()
  #endif

  @usableFromInline
  init(_ initialValue: consuming Value) {
    storage = Synchronization.Atomic(initialValue)
  }

  private var representation: UnsafeMutablePointer<Value.AtomicRepresentation> {
    // SAFETY: an Atomic begins with its representation's storage, which may change but not move while borrowed. No
    // pointer outlives the operation that requested it.
    withUnsafePointer(to: storage) {
      UnsafeMutableRawPointer(mutating: UnsafeRawPointer($0))
        .assumingMemoryBound(to: Value.AtomicRepresentation.self)
    }
  }

  /// The word's address, which identifies it to the kernel.
  var address: UInt { UInt(bitPattern: representation) }

  /// The same in all executions of a scenario (`WordIdentity`).
  var key: UInt64 {
    #if LEDGER
      0
    #else
      identity.key
    #endif
  }

  private var value: Value {
    get { Value.decodeAtomicRepresentation(representation.pointee) }
    nonmutating set { representation.pointee = Value.encodeAtomicRepresentation(newValue) }
  }

  #if !LEDGER
    /// An access of the plain memory beside the word (`PlainMemory`).
    func touchNeighbour(writing: Bool, _ file: StaticString, _ line: UInt) {
      guard let scheduler = Scheduler.current, scheduler.isExecuting else { return }
      if let maker = identity.maker(in: scheduler), scheduler.running!.clock[maker.id] < maker.count {
        scheduler.fail(
          .race, "what lies beside the word at \(file):\(line) is used while \(maker.id) makes it")
      }
      scheduler.access(
        &scheduler.neighbours[identity.number, default: PlainRecord()], isWrite: writing, "plain memory",
        file, line)
    }
  #endif

  /// An operation, at its scheduling point; nil outside executions.
  func access(
    _ file: StaticString, _ line: UInt, _ function: StaticString, isQuiet: Bool = false, isLoad: Bool = false
  ) -> Access? {
    #if LEDGER
      Access(
        at: address, size: MemoryLayout<Self>.size, file: file, line: line, isQuiet: isQuiet, isLoad: isLoad
      ) {
        WordBits(representation.pointee)
      }
    #else
      Access(identity, at: address, file: file, line: line, function: function, isQuiet: isQuiet) {
        WordBits(representation.pointee)
      }
    #endif
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
    guard let access = access(file, line, function, isLoad: true) else { return value }
    return access.load(Ordering(ordering)).value()
  }

  @usableFromInline
  func store(
    _ desired: consuming Value, ordering: AtomicStoreOrdering, file: StaticString = #fileID,
    line: UInt = #line, function: StaticString = #function
  ) {
    let access = access(file, line, function)
    let new = Value.encodeAtomicRepresentation(desired)
    if access?.store(WordBits(new), Ordering(ordering)) ?? true { representation.pointee = new }
  }

  @usableFromInline
  func exchange(
    _ desired: consuming Value, ordering: AtomicUpdateOrdering, file: StaticString = #fileID,
    line: UInt = #line, function: StaticString = #function
  ) -> Value {
    let access = access(file, line, function)
    let new = Value.encodeAtomicRepresentation(desired)
    let (original, isNewest) =
      access?.update(Ordering(ordering)) { _ in WordBits(new) } ?? (WordBits(representation.pointee), true)
    if isNewest { representation.pointee = new }
    return original.value()
  }
}

// MARK: - Compare and exchange

extension Atomic {
  @usableFromInline
  func compareExchange(
    expected: consuming Value, desired: consuming Value, ordering: AtomicUpdateOrdering,
    file: StaticString = #fileID, line: UInt = #line, function: StaticString = #function
  ) -> (exchanged: Bool, original: Value) {
    let failure: AtomicLoadOrdering =
      ordering == .sequentiallyConsistent
      ? .sequentiallyConsistent : Ordering(ordering).acquires ? .acquiring : .relaxed
    return compareExchange(
      expected: expected, desired: desired, successOrdering: ordering, failureOrdering: failure,
      file: file, line: line, function: function)
  }

  @usableFromInline
  func compareExchange(
    expected: consuming Value, desired: consuming Value, successOrdering: AtomicUpdateOrdering,
    failureOrdering: AtomicLoadOrdering, file: StaticString = #fileID, line: UInt = #line,
    function: StaticString = #function
  ) -> (exchanged: Bool, original: Value) {
    let access = access(file, line, function)
    let old = WordBits(Value.encodeAtomicRepresentation(expected))
    let new = Value.encodeAtomicRepresentation(desired)
    guard let access else {
      let found = WordBits(representation.pointee)
      if found == old { representation.pointee = new }
      return (found == old, found.value())
    }
    let (exchanged, original, isNewest) = access.compareExchange(
      old, WordBits(new), Ordering(successOrdering), Ordering(failureOrdering))
    if exchanged && isNewest { representation.pointee = new }
    return (exchanged, original.value())
  }

  // The weak forms do not fail spuriously here: a retry would add no behaviour.

  @usableFromInline
  func weakCompareExchange(
    expected: consuming Value, desired: consuming Value, ordering: AtomicUpdateOrdering,
    file: StaticString = #fileID, line: UInt = #line, function: StaticString = #function
  ) -> (exchanged: Bool, original: Value) {
    compareExchange(
      expected: expected, desired: desired, ordering: ordering, file: file, line: line, function: function)
  }

  @usableFromInline
  func weakCompareExchange(
    expected: consuming Value, desired: consuming Value, successOrdering: AtomicUpdateOrdering,
    failureOrdering: AtomicLoadOrdering, file: StaticString = #fileID, line: UInt = #line,
    function: StaticString = #function
  ) -> (exchanged: Bool, original: Value) {
    compareExchange(
      expected: expected, desired: desired, successOrdering: successOrdering,
      failureOrdering: failureOrdering, file: file, line: line, function: function)
  }
}

// MARK: - Updates

extension Atomic {
  /// One indivisible read-modify-write.
  private func update(
    _ ordering: AtomicUpdateOrdering, _ file: StaticString, _ line: UInt, _ function: StaticString,
    _ change: (Value) -> Value
  ) -> (oldValue: Value, newValue: Value) {
    func changed(_ bits: WordBits) -> WordBits {
      WordBits(Value.encodeAtomicRepresentation(change(bits.value())))
    }
    let (old, isNewest) =
      access(file, line, function)?.update(Ordering(ordering), changed) ?? (
        WordBits(representation.pointee), true
      )
    let new = change(old.value())
    if isNewest { value = new }
    return (old.value(), new)
  }
}

extension Atomic where Value: FixedWidthInteger {
  @usableFromInline @discardableResult
  func wrappingAdd(
    _ operand: Value, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line,
    function: StaticString = #function
  ) -> (oldValue: Value, newValue: Value) {
    update(ordering, file, line, function) { $0 &+ operand }
  }

  @usableFromInline @discardableResult
  func wrappingSubtract(
    _ operand: Value, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line,
    function: StaticString = #function
  ) -> (oldValue: Value, newValue: Value) {
    update(ordering, file, line, function) { $0 &- operand }
  }

  @usableFromInline @discardableResult
  func add(
    _ operand: Value, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line,
    function: StaticString = #function
  ) -> (oldValue: Value, newValue: Value) {
    update(ordering, file, line, function) { $0 + operand }
  }

  @usableFromInline @discardableResult
  func subtract(
    _ operand: Value, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line,
    function: StaticString = #function
  ) -> (oldValue: Value, newValue: Value) {
    update(ordering, file, line, function) { $0 - operand }
  }

  @usableFromInline @discardableResult
  func bitwiseOr(
    _ operand: Value, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line,
    function: StaticString = #function
  ) -> (oldValue: Value, newValue: Value) {
    update(ordering, file, line, function) { $0 | operand }
  }

  @usableFromInline @discardableResult
  func bitwiseAnd(
    _ operand: Value, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line,
    function: StaticString = #function
  ) -> (oldValue: Value, newValue: Value) {
    update(ordering, file, line, function) { $0 & operand }
  }

  @usableFromInline @discardableResult
  func bitwiseXor(
    _ operand: Value, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line,
    function: StaticString = #function
  ) -> (oldValue: Value, newValue: Value) {
    update(ordering, file, line, function) { $0 ^ operand }
  }

  @usableFromInline @discardableResult
  func min(
    _ operand: Value, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line,
    function: StaticString = #function
  ) -> (oldValue: Value, newValue: Value) {
    update(ordering, file, line, function) { Swift.min($0, operand) }
  }

  @usableFromInline @discardableResult
  func max(
    _ operand: Value, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line,
    function: StaticString = #function
  ) -> (oldValue: Value, newValue: Value) {
    update(ordering, file, line, function) { Swift.max($0, operand) }
  }
}

extension Atomic where Value == Bool {
  @usableFromInline @discardableResult
  func logicalOr(
    _ operand: Bool, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line,
    function: StaticString = #function
  ) -> (oldValue: Bool, newValue: Bool) {
    update(ordering, file, line, function) { $0 || operand }
  }

  @usableFromInline @discardableResult
  func logicalAnd(
    _ operand: Bool, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line,
    function: StaticString = #function
  ) -> (oldValue: Bool, newValue: Bool) {
    update(ordering, file, line, function) { $0 && operand }
  }

  @usableFromInline @discardableResult
  func logicalXor(
    _ operand: Bool, ordering: AtomicUpdateOrdering, file: StaticString = #fileID, line: UInt = #line,
    function: StaticString = #function
  ) -> (oldValue: Bool, newValue: Bool) {
    update(ordering, file, line, function) { $0 != operand }
  }
}

/// Marks the accesses of plain memory that belongs to one thread at a time.
///
/// The model checks that all of them are ordered, by what atomics publish: two unordered ones, of which one writes, are
/// a race. The memory is named by an atomic that lies beside it. In this build the calls are empty.
@usableFromInline
package enum PlainMemory {
  @inlinable @inline(__always)
  package static func reads<Value>(beside word: borrowing Atomic<Value>) {}

  /// A write, or a change of hands.
  @inlinable @inline(__always)
  package static func writes<Value>(beside word: borrowing Atomic<Value>) {}
}

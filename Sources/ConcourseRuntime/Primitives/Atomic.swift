@_exported public import Synchronization

/// The engine's one name for an atomic.
///
/// Everything that can race goes through this name, so that the model build
/// (Tests/Model) can put a type in its place whose every operation is a
/// scheduling point of a deterministic scheduler.
@usableFromInline
package typealias Atomic<Value: AtomicRepresentable> = Synchronization.Atomic<Value>

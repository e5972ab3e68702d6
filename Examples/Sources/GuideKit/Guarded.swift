import Concourse

/// A value that only items of a queue of its own touch: a lock as Dispatch has it.
package final class Guarded<Value>: @unchecked Sendable {  // SAFETY: GUARDED BY `queue`.
  private let queue = DispatchQueue(label: "org.concourse.guide.guarded")
  private var value: Value

  package init(_ value: Value) { self.value = value }

  /// Calls `body` with the value, when nobody else has it.
  package func use<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
    try queue.sync { try body(&value) }
  }
}

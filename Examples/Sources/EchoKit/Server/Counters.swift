import Synchronization

/// What the server counts while it runs.
final class Counters: Sendable {
  let accepted = Counter()
  let closed = Counter()
  /// Connections that broke.
  let failed = Counter()
  /// Connections closed with output pending, since their time was over.
  let cutOff = Counter()
  /// Bytes sent back.
  let bytes = Counter()
  /// How often a connection's input was paused because its client did not read.
  let pauses = Counter()

  var statistics: Statistics {
    // Closed first: nobody is closed who was not accepted before, so `open` is never negative.
    let closed = closed.value
    return Statistics(
      open: accepted.value - closed, accepted: accepted.value, failed: failed.value, cutOff: cutOff.value,
      bytes: bytes.value, pauses: pauses.value)
  }
}

final class Counter: Sendable {
  private let count = Atomic<Int>(0)

  func add(_ amount: Int) {
    // ORDERING: relaxed; a number by itself, which publishes nothing.
    count.wrappingAdd(amount, ordering: .relaxed)
  }

  // ORDERING: relaxed; pairs with the addition above, and orders nothing else.
  var value: Int { count.load(ordering: .relaxed) }
}

/// What the server has done so far.
package struct Statistics: Sendable, Equatable {
  package let open: Int
  package let accepted: Int
  package let failed: Int
  package let cutOff: Int
  package let bytes: Int
  package let pauses: Int

  package var line: String {
    "\(open) open, \(accepted) accepted, \(failed) broken, \(cutOff) cut off, \(bytes) bytes echoed, "
      + "\(pauses) pauses"
  }
}

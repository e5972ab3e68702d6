/// How often a worker departs from its usual order, in entries that it begins. DESIGN.md states what follows for
/// each class; the model has smaller numbers.
///
/// The usual order is: the queue that the worker keeps, then the most urgent root. Without a departure, two queues
/// that hand an item to and fro keep every root out, and a root that never runs dry keeps out those below it.
enum Fairness {
  /// Every so many entries a root goes first, another one each time.
  static let rootPeriod: UInt32 = 61
  /// Every so many entries a root that is more urgent than the kept queue goes before it.
  static let slotPeriod: UInt32 = 8
}

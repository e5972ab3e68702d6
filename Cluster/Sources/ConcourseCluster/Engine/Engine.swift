// The seam between the interface and what stores items. An engine moves bytes; it knows neither types nor handlers.

internal import Concourse
internal import Glibc

/// Stores the items of all queues, and gives them to workers.
protocol Engine: Sendable {
  /// Makes the queue, unless it exists.
  /// - Throws: ``ClusterError/mismatch(queue:reason:)`` if it exists with other settings.
  func open(_ settings: QueueSettings) async throws -> any EngineQueue
  /// Ends the connection. Operations that still wait throw ``ClusterError/closed``.
  func close() async
}

/// One queue of an engine.
protocol EngineQueue: Sendable {
  /// Returns when the item is stored durably.
  func store(_ item: NewItem) async throws -> ClusterSubmission
  /// Submits an item that wants a result, and waits for the end of the item or of the one that has its id.
  func run(_ item: NewItem) async throws -> ItemOutcome
  /// Waits until there is no item of the group that has not ended.
  func finished(_ group: String) async throws
  /// Makes a worker known. It gets deliveries once it requests them.
  /// - Parameter receive: Called for each delivery, from any thread; it must return soon.
  func deliveries(to receive: @escaping @Sendable (any Delivery) -> Void) async throws -> any DeliverySource
  /// The items that are not finished: waiting, running, and waiting for another attempt.
  func pendingCount() async throws -> Int
  /// At most `count` failed items whose numbers are above the given one, the oldest first.
  func failures(after number: UInt64, atMost count: Int) async throws -> [StoredFailure]
  /// Submits a failed item again, as the last one of the queue.
  func putBack(_ number: UInt64) async throws
  func discard(_ number: UInt64) async throws
  /// Ends the item of that id, if it has not started.
  func cancel(id: String) async throws -> ClusterCancellation
  func isSuspended() async throws -> Bool
  func setSuspended(_ isSuspended: Bool) async throws
}

/// An item as it is submitted.
struct NewItem: Sendable {
  var bytes: [UInt8]
  /// Given by the program, which wants the item to be submitted once.
  var id: String?
  /// The item does not start before it; `nil` for an item that may start at once.
  var due: WallTime?
  /// Whether the engine keeps what becomes of it.
  var wantsResult = false
  var group: String?
  var order = ItemOrder.none
}

/// Which earlier items must have ended before an item starts, on a concurrent queue.
enum ItemOrder: Hashable, Sendable {
  case none
  /// Those of the same key.
  case key(String)
  /// All of them; and items behind it start when it has ended. Only of queues with barriers.
  case barrier
}

/// What became of an item.
enum ItemOutcome: Sendable {
  /// The handler has returned; `nil` if it returns nothing.
  case result([UInt8]?)
  /// The item was put aside.
  case failed(reason: String, attempts: Int)
  case cancelled
}

/// A worker as its engine sees it.
protocol DeliverySource: AnyObject, Sendable {
  /// Allows the engine as many further deliveries.
  func request(_ count: Int)
  /// Allows no more deliveries. Those that are under way still arrive; `ended` is called once, after the last one.
  func cancel(_ ended: @escaping @Sendable () -> Void)
}

/// An item that was given to a worker. One of `finish`, `again` and `bury` ends the delivery. It needs beats until then.
protocol Delivery: AnyObject, Sendable {
  var bytes: [UInt8] { get }
  /// 1 for the first start of the item.
  var attempt: Int { get }
  /// Asked before the handler starts. Waits while the queue is suspended.
  /// - Parameters:
  ///   - isCancelled: Whether the worker waits no longer.
  ///   - place: The item leaves it if it has to wait for others.
  /// - Returns: False if another worker may have the item by now, or if it is a repetition, was cancelled, or was given
  ///   back; the delivery has ended then.
  func begin(unless isCancelled: @escaping @Sendable () -> Bool, in place: some DeliveryPlace) async -> Bool
  /// How often the engine wants a beat; `nil` if it needs none.
  var beatInterval: Duration? { get }
  /// Tells the engine that the worker still has the item.
  func beat()
  /// Whether anything becomes of a result.
  var wantsResult: Bool { get }
  /// Returns when the item does not need its place any more; its acknowledgement may have no answer yet.
  /// - Parameters:
  ///   - result: Kept if the item wants it.
  ///   - ended: Called once, when the delivery has ended.
  /// - Throws: ``NoAttemptHelps`` or ``ResultNotKept`` if the result is not kept. The delivery has not ended then.
  func finish(returning result: [UInt8]?, _ ended: @escaping @Sendable () -> Void) async throws
  /// Gives the item back; it is delivered again after the delay at the earliest.
  func again(after delay: Duration) async
  /// Puts the item aside, to the failed ones.
  /// - Returns: False if the engine could not take it; the item is delivered again then.
  func bury(reason: String) async -> Bool
}

/// The engine did not take the result of a start. It may take that of another one.
struct ResultNotKept: Error, CustomStringConvertible {
  let reason: String
  var description: String { "its result cannot be kept: \(reason)" }
}

/// One of the places of a worker, of which there are as many as items may run there at the same time.
protocol DeliveryPlace: Sendable {
  /// The item waits for others, and needs none meanwhile.
  func leave()
  /// The item has waited. Returns when it has a place again; another worker may have the item by then.
  func take() async
}

/// A failed item as an engine keeps it.
struct StoredFailure: Sendable {
  let number: UInt64
  let bytes: [UInt8]
  let reason: String
  let attempts: Int
  /// That of its submission, if the program gave one and the engine knows it.
  var id: String?
  /// When it was put aside, if the engine knows that.
  var time = ""
}

/// The time of day, in nanoseconds since 1970.
struct WallTime: Hashable, Comparable, Sendable {
  let nanoseconds: Int64

  static var now: WallTime {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return WallTime(nanoseconds: Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec))
  }

  static func < (a: WallTime, b: WallTime) -> Bool { a.nanoseconds < b.nanoseconds }

  /// At most 100 years away.
  static func + (time: WallTime, duration: Duration) -> WallTime {
    WallTime(nanoseconds: time.nanoseconds + max(duration.forServers, -time.nanoseconds))
  }

  static func - (end: WallTime, start: WallTime) -> Duration {
    .nanoseconds(end.nanoseconds) - .nanoseconds(start.nanoseconds)
  }

  var asDeadline: DispatchWallTime {
    DispatchWallTime(
      timespec: timespec(
        tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000)))
  }
}

extension Duration {
  /// At most 292 years.
  var inNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (product, isTooLong) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, overflow) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
    return isTooLong || overflow ? (seconds < 0 ? .min : .max) : sum
  }

  /// At most 100 years: the servers add it to the time of day.
  var forServers: Int64 { min(inNanoseconds, 100 * 365 * 86_400 * 1_000_000_000) }

  var asInterval: DispatchTimeInterval { .nanoseconds(Int(inNanoseconds)) }

  /// The same text on each machine, and another one for each other time, to the nanosecond.
  var exact: String {
    let nanoseconds = inNanoseconds
    if nanoseconds % 1_000_000_000 == 0 { return "\(nanoseconds / 1_000_000_000) s" }
    return nanoseconds % 1_000_000 == 0 ? "\(nanoseconds / 1_000_000) ms" : "\(nanoseconds) ns"
  }
}

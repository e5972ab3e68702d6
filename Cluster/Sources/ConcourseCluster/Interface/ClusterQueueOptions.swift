/// How items of a cluster queue may run.
public struct ClusterQueueAttributes: OptionSet, Sendable {
  public let rawValue: Int
  public init(rawValue: Int) { self.rawValue = rawValue }

  /// Items run at the same time, on one machine or on many. A queue without this attribute is serial.
  public static let concurrent = ClusterQueueAttributes(rawValue: 1)

  /// Items of a concurrent queue may be barriers (``ClusterItemFlags/barrier``). On servers, each item of such a queue
  /// asks before it starts whether it is behind one, which takes a request. A serial queue needs no such attribute.
  public static let barriers = ClusterQueueAttributes(rawValue: 2)
}

/// How an item runs beside others of its queue.
public struct ClusterItemFlags: OptionSet, Sendable {
  public let rawValue: Int
  public init(rawValue: Int) { self.rawValue = rawValue }

  /// The item runs alone: after all items have ended, in the whole cluster, that were stored before it, and before any
  /// starts that is stored after it. An item that was put aside has ended. A concurrent queue needs
  /// ``ClusterQueueAttributes/barriers`` for that; on a serial queue each item runs alone.
  public static let barrier = ClusterItemFlags(rawValue: 1)
}

/// What a cluster queue does with items that fail, that take long, and that are too many.
///
/// Each process that uses the queue must give the same options: they are stored with the queue, and a process that
/// gives others gets ``ClusterError/mismatch(queue:reason:)``.
public struct ClusterQueueOptions: Hashable, Sendable {
  /// How often an item is started before it is put aside, at least 1. Starts that ended with the worker count, too.
  public var attempts = 5
  /// The time between the first failure of an item and its second start. It doubles with each further failure.
  public var retryDelay = Duration.seconds(1)
  /// The longest time between a failure and the next start.
  public var longestRetryDelay = Duration.seconds(300)
  /// The most items that are running anywhere or wait for another attempt. A serial queue has 1, whatever is set here.
  public var width = 1_000
  /// The most items that the queue keeps; a submission beyond throws ``ClusterError/full(queue:limit:)``. No limit if
  /// `nil`. On a replicated engine, submissions at the same time may exceed the limit by a few.
  /// There, items that were acknowledged while a server was killed may count for ever.
  public var limit: Int?
  /// How long the engine waits for a sign of life of the worker that has an item, before it gives the item to another
  /// one. Workers give such signs by themselves, three in that time.
  public var patience = Duration.seconds(30)
  /// How long the engine remembers the ids of submissions, at least.
  public var idsAreKept = Duration.seconds(120)

  /// How long the engine keeps the result of a `run`, at least.
  public var resultsAreKept = Duration.seconds(3_600)

  /// The options with their defaults.
  public init() {}

  /// The time between the given attempt, which failed, and the next.
  func delay(afterAttempt attempt: Int) -> Duration {
    var (delay, failures) = (retryDelay, 1)
    while delay != .zero, delay < longestRetryDelay, failures < attempt {
      delay *= 2
      failures += 1
    }
    return min(delay, longestRetryDelay)
  }
}

/// What an engine must know of a queue.
struct QueueSettings: Hashable, Sendable {
  let label: String
  let isSerial: Bool
  /// Whether items may be barriers on a queue where that makes a difference.
  let hasBarriers: Bool
  let options: ClusterQueueOptions
  static let longestLabel = 200
  /// What the caller of a `run` is told whose id belongs to an item without a caller.
  static let wantsNoResult = "\"async\" has submitted the item of that id"

  init(label: String, attributes: ClusterQueueAttributes, options: ClusterQueueOptions) {
    func require(_ condition: Bool, _ need: String, _ value: Any) {
      if !condition { misuse("a cluster queue needs \(need), not \(value) (queue \"\(label)\")") }
    }
    require(options.attempts >= 1, "at least one attempt", options.attempts)
    require(options.width >= 1, "a width of at least 1", options.width)
    require(options.limit ?? 1 >= 1, "a limit of at least 1", options.limit ?? 0)
    require(options.retryDelay >= .zero, "a delay that is not negative", options.retryDelay)
    require(
      options.longestRetryDelay >= .zero, "a longest delay that is not negative", options.longestRetryDelay)
    require(options.patience >= .seconds(1), "a patience of at least 1 second", options.patience)
    require(options.idsAreKept >= .seconds(1), "to keep ids for at least 1 second", options.idsAreKept)
    require(
      options.resultsAreKept >= .seconds(1), "to keep results for at least 1 second", options.resultsAreKept)
    // The servers make files of that name.
    require(!label.isEmpty, "a label", "an empty one")
    let length = NATSNames.encoded(label).utf8.count
    require(
      length <= Self.longestLabel,
      "a label of at most \(Self.longestLabel) letters, digits, \"-\" and \"_\", of which any other byte counts as three",
      length)
    self.label = label
    isSerial = !attributes.contains(.concurrent)
    hasBarriers = attributes.contains([.concurrent, .barriers])
    self.options = options
  }

  func order(key: String?, _ flags: ClusterItemFlags) -> ItemOrder {
    if isSerial { return .none }
    guard flags.contains(.barrier) else { return key.map { .key($0) } ?? .none }
    if !hasBarriers {
      misuse("a barrier needs a cluster queue with the attribute \"barriers\" (queue \"\(label)\")")
    }
    return .barrier
  }

  /// The most items that have been given to workers and are not finished.
  var width: Int { isSerial ? 1 : options.width }
}

/// Ends the process with one line, in release builds too.
func misuse(_ text: String) -> Never { fatalError("Concourse: BUG IN CLIENT OF CLUSTER: \(text)") }

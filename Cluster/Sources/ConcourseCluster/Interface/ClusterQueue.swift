public import Concourse
internal import FoundationEssentials

/// A queue whose items any machine of a cluster may submit and run.
///
/// **At least once** is promised: an item that was stored runs until one of its starts returns, or until it has failed
/// as often as the options allow. It may run more than once, if a worker or its connection ends between the end of the
/// handler and the acknowledgement, if a server dies with the acknowledgement, or if a submission without an id had to
/// be repeated. With an id its submission counts once; the effect of an item needs a check of its own where twice would
/// be wrong.
///
/// A **serial** queue gives items to one worker at a time, in the order in which they were stored. An item that fails
/// holds the queue until it succeeds or is put aside. If its worker is lost, another one gets the item after
/// ``ClusterQueueOptions/patience``; a worker that was only stopped may then still run it, too. When the server dies
/// that leads the queue, another worker may get the last item of that moment once more. Two submissions have an order if
/// the first has returned before the second begins.
///
/// ## Order for each key
///
/// On a concurrent queue, items may have a **key**: those of one key run as on a serial queue, and the keys beside each
/// other. There may be any number of keys; none has to be made known. On servers, an item that waits for others of its
/// key has reached a worker and waits there, so it counts for ``ClusterQueueOptions/width``: the queue looks that many
/// items ahead, and a longer run of items of one key holds up what lies behind it. What is said of a serial queue and
/// its lost workers and servers holds for each key.
///
/// ## Barriers
///
/// A queue with the attribute ``ClusterQueueAttributes/barriers`` takes items that run alone in the whole cluster, with
/// ``ClusterItemFlags/barrier``. A barrier whose worker is lost runs again elsewhere, and the items behind it wait for
/// that; so do they while it fails, until it is put aside. Items that wait count for ``ClusterQueueOptions/width``.
///
/// Creating a value sends no request. The first operation creates the queue if the cluster does not have it.
public struct ClusterQueue<Item: Codable & Sendable>: Sendable {
  /// The name of the queue in the whole cluster.
  public let label: String
  private let settings: QueueSettings
  private static var longestID: Int { 256 }
  private static var longestKey: Int { 256 }
  private let cluster: Cluster

  /// A queue of the cluster.
  /// - Parameters:
  ///   - label: The name, which is the same on each machine: at most 200 letters, digits, "-" and "_"; each other byte
  ///     counts as three.
  ///   - attributes: `[]` for a serial queue, `.concurrent`, or `[.concurrent, .barriers]`.
  ///   - options: What happens to items that fail or take long. The same on each machine.
  ///   - cluster: Where the items are stored.
  public init(
    label: String, attributes: ClusterQueueAttributes = [],
    options: ClusterQueueOptions = ClusterQueueOptions(),
    on cluster: Cluster
  ) {
    self.label = label
    settings = QueueSettings(label: label, attributes: attributes, options: options)
    self.cluster = cluster
  }

  /// Submits an item, and returns when the engine has stored it durably.
  /// - Parameters:
  ///   - item: What a handler gets, on any machine. It is encoded as JSON.
  ///   - key: Items of the same key run one at a time in the whole cluster, in the order in which they were stored;
  ///     items of different keys, and items without one, run in parallel up to the width. An item that fails holds the
  ///     others of its key until it succeeds or is put aside. At most 256 bytes. On a serial queue it changes nothing.
  ///   - flags: ``ClusterItemFlags/barrier`` for an item that runs alone; its key makes no difference then.
  ///   - id: Of submissions with the same id the first counts, as long as the engine keeps ids. At most 256 bytes.
  ///   - group: Contains the item until it has ended. Of a submission that does not count, it contains nothing.
  /// - Returns: Whether the item was stored, or had been before.
  /// - Throws: ``ClusterError``. Nothing was stored, except perhaps with
  ///   ``ClusterError/notAcknowledged(queue:id:reason:)`` and ``ClusterError/closed``.
  ///   `CancellationError` if the task is cancelled before the engine has answered; the item may be stored then, too.
  @discardableResult
  public func async(
    _ item: Item, key: String? = nil, flags: ClusterItemFlags = [], id: String? = nil,
    group: ClusterGroup<Item>? = nil
  ) async throws -> ClusterSubmission {
    try await store(item, key: key, flags: flags, id: id, group: group)
  }

  /// Submits an item that joins the queue at the deadline, and returns when the engine has stored it durably.
  ///
  /// The engine keeps the item and its deadline; neither this process nor a server needs to live until then. The item
  /// does not start before the deadline. Then it becomes the last one of the queue, also on a serial queue: an item
  /// that waits for its deadline holds no other item up. Items have no order among themselves if their deadlines lie
  /// close together or had passed when a worker came. `pendingCount` and ``ClusterQueueOptions/limit`` count an item
  /// that waits.
  ///
  /// On servers, the processes that offer to work move the item into the queue. So the first worker that comes after
  /// the deadline does that. The deadline is kept as a time of day: a machine whose clock is ahead starts the item so
  /// much earlier. When a worker or a server is killed at the deadline, the item may start some seconds later.
  /// - Parameters:
  ///   - deadline: When the item joins the queue, in the time of this machine. A past deadline is now; one that is more
  ///     than 100 years away counts as 100 years.
  ///   - item: As in `async`.
  ///   - key: As in `async`. The item has its place among the others from the deadline on.
  ///   - flags: As in `async`.
  ///   - id: As in `async`, in common with it. It is kept from the submission on, not from the deadline.
  ///   - group: Contains the item from its submission on.
  /// - Returns: As `async`.
  /// - Throws: As `async`.
  @discardableResult
  public func asyncAfter(
    deadline: DispatchTime, _ item: Item, key: String? = nil, flags: ClusterItemFlags = [], id: String? = nil,
    group: ClusterGroup<Item>? = nil
  ) async throws -> ClusterSubmission {
    let delay = deadline.uptimeNanoseconds.subtractingReportingOverflow(DispatchTime.now().uptimeNanoseconds)
    return try await store(
      item, key: key, flags: flags, id: id, group: group,
      due: delay.overflow ? nil : .now + .nanoseconds(Int64(clamping: delay.partialValue)))
  }

  /// As `asyncAfter(deadline:_:key:flags:id:group:)`, with a time of day.
  @discardableResult
  public func asyncAfter(
    wallDeadline: DispatchWallTime, _ item: Item, key: String? = nil, flags: ClusterItemFlags = [],
    id: String? = nil,
    group: ClusterGroup<Item>? = nil
  ) async throws -> ClusterSubmission {
    let isNever = wallDeadline == .distantFuture
    // Others are encoded as negated nanoseconds.
    let time = WallTime(nanoseconds: Int64(clamping: 0 &- wallDeadline.rawValue))
    return try await store(
      item, key: key, flags: flags, id: id, group: group,
      due: isNever ? .now + .seconds(Int64.max) : min(time, .now + .seconds(Int64.max)))
  }

  /// Submits an item, waits until it has run, anywhere, and returns what its handler has returned.
  ///
  /// A handler that throws is not the end: the item runs again as often as the options allow. If this task is
  /// cancelled or its process ends, the item runs all the same. With an id its result can still be had: a `run` with
  /// the same id, on any machine, waits for the first item of that id, or returns its result at once. That holds as long
  /// as ids are kept, and results are kept at least as long, and at least for
  /// ``ClusterQueueOptions/resultsAreKept``. If the item runs more than once, the first result counts.
  ///
  /// It waits as long as it takes, also if no process offers to work; cancel the task to end that. Do not call it in a
  /// handler of the same queue: the item could wait for its caller.
  /// - Parameters:
  ///   - item: As in `async`.
  ///   - key: As in `async`.
  ///   - flags: As in `async`.
  ///   - id: As in `async`, in common with it.
  ///   - group: As in `async`.
  ///   - type: What the handler returns. The result is encoded as JSON, and has the same limit as an item.
  /// - Throws: As `async`; ``ClusterError/itemFailed(queue:reason:attempts:)`` if the item was put aside;
  ///   ``ClusterError/itemCancelled(queue:)``;
  ///   ``ClusterError/noResult(queue:reason:)`` if the handler returns something else or nothing, or if `async` has
  ///   submitted the item of that id. ``ClusterError/engine(queue:reason:)`` if no server answers for the `timeout` of
  ///   the cluster; the item may have been stored then. `CancellationError` if the task is cancelled.
  public func run<Result: Codable & Sendable>(
    _ item: Item, key: String? = nil, flags: ClusterItemFlags = [], id: String? = nil,
    group: ClusterGroup<Item>? = nil,
    returning type: Result.Type = Result.self
  ) async throws -> Result {
    let (queue, new) = try await prepared(
      item, key: key, flags: flags, id: id, group: group, wantsResult: true)
    let outcome = try await queue.run(new)
    cluster.figures(of: label).change { $0.submitted += 1 }
    switch outcome {
    case .result(let bytes):
      guard let bytes else {
        throw ClusterError.noResult(queue: label, reason: "its handler returns nothing")
      }
      do {
        return try JSONDecoder().decode(type, from: Data(bytes))
      } catch {
        throw ClusterError.noResult(queue: label, reason: "what its handler returned is no \(type): \(error)")
      }
    case .cancelled: throw ClusterError.itemCancelled(queue: label)
    case .failed(let reason, let attempts):
      throw ClusterError.itemFailed(queue: label, reason: reason, attempts: attempts)
    }
  }

  func finished(_ group: String) async throws { try await cluster.open(settings).finished(group) }

  private func store(
    _ item: Item, key: String?, flags: ClusterItemFlags, id: String?, group: ClusterGroup<Item>?,
    due: WallTime? = nil
  ) async throws -> ClusterSubmission {
    let (queue, new) = try await prepared(item, key: key, flags: flags, id: id, group: group, due: due)
    let submission = try await queue.store(new)
    cluster.figures(of: label).change { $0.submitted += 1 }
    return submission
  }

  private func prepared(
    _ item: Item, key: String?, flags: ClusterItemFlags, id: String?, group: ClusterGroup<Item>?,
    due: WallTime? = nil,
    wantsResult: Bool = false
  ) async throws -> (any EngineQueue, NewItem) {
    if let group, group.queue.label != label {
      misuse(
        "an item of cluster queue \"\(label)\" cannot enter group \"\(group.label)\" of queue \"\(group.queue.label)\""
      )
    }
    if let count = id?.utf8.count, count > Self.longestID {
      throw ClusterError.idTooLong(queue: label, bytes: count, limit: Self.longestID)
    }
    if let count = key?.utf8.count, count > Self.longestKey {
      throw ClusterError.keyTooLong(queue: label, bytes: count, limit: Self.longestKey)
    }
    let bytes: [UInt8]
    do {
      bytes = [UInt8](try JSONEncoder().encode(item))
    } catch {
      throw ClusterError.notEncoded(queue: label, reason: "\(error)")
    }
    let isPast = due.map { $0 <= .now } ?? true
    let new = NewItem(
      bytes: bytes, id: id, due: isPast ? nil : due, wantsResult: wantsResult, group: group?.label,
      order: settings.order(key: key, flags))
    return (try await cluster.open(settings), new)
  }

  /// Offers this process as a worker. The handler runs for items of the queue until the registration is cancelled.
  ///
  /// An item is finished when the handler returns. If the handler throws, the item runs again after a delay that
  /// doubles each time, here or elsewhere; after ``ClusterQueueOptions/attempts`` it is put aside. An item that cannot
  /// be decoded as `Item` is put aside at once, since another attempt would not help.
  ///
  /// - Parameters:
  ///   - qos: The class of the queue that runs the handler.
  ///   - width: The most items that run here at the same time. A serial queue runs one in the whole cluster.
  ///   - handler: Runs on a queue of Concourse with the label of this one. It may block its thread.
  /// - Returns: The registration. The cluster keeps it, too.
  public func handle(
    qos: DispatchQoS = .unspecified, width: Int = 1,
    _ handler: @escaping @Sendable (Item) async throws -> Void
  ) async throws -> ClusterRegistration {
    try await register(qos: qos, width: width) { item, _ in
      try await handler(item)
      return nil
    }
  }

  /// As the other `handle`, with a result for the callers of `run`.
  ///
  /// The result is stored before the item is finished. If it cannot be encoded, is too large, or is refused by the servers
  /// since they may keep no more, the item is put aside at once, although its handler has returned.
  public func handle<Result: Codable & Sendable>(
    qos: DispatchQoS = .unspecified, width: Int = 1,
    _ handler: @escaping @Sendable (Item) async throws -> Result
  ) async throws -> ClusterRegistration {
    try await register(qos: qos, width: width) { item, wantsResult in
      let result = try await handler(item)
      guard wantsResult else { return nil }
      do {
        return [UInt8](try JSONEncoder().encode(result))
      } catch {
        throw NoAttemptHelps(reason: "the result cannot be encoded: \(error)")
      }
    }
  }

  private func register(
    qos: DispatchQoS, width: Int,
    _ handler: @escaping @Sendable (_ item: Item, _ wantsResult: Bool) async throws -> [UInt8]?
  ) async throws -> ClusterRegistration {
    if width < 1 {
      misuse("a handler of a cluster queue needs a width of at least 1, not \(width) (queue \"\(label)\")")
    }
    let registration = ClusterRegistration(
      settings: settings, qos: qos, width: settings.isSerial ? 1 : width, cluster: cluster
    ) { bytes, wantsResult in
      let item: Item
      do {
        item = try JSONDecoder().decode(Item.self, from: Data(bytes))
      } catch {
        throw NoAttemptHelps(reason: "the item is no \(Item.self): \(error)")
      }
      return try await handler(item, wantsResult)
    }
    try await registration.start(on: cluster.open(settings))
    return registration
  }

  /// The number of items that are stored and not finished: waiting, running, or between two attempts.
  /// On servers, a submission or an end may be counted a moment later.
  public func pendingCount() async throws -> Int { try await cluster.open(settings).pendingCount() }

  /// Items that were put aside, the oldest first.
  /// - Parameters:
  ///   - number: Those after this one, to get what an earlier call has left.
  ///   - count: The most items that it returns, which it reads one by one.
  public func failedItems(after number: UInt64 = 0, atMost count: Int = 1_000) async throws
    -> [ClusterFailure<Item>]
  {
    try await cluster.open(settings).failures(after: number, atMost: count).map { failure in
      ClusterFailure(
        number: failure.number, item: try? JSONDecoder().decode(Item.self, from: Data(failure.bytes)),
        bytes: failure.bytes, reason: failure.reason, attempts: failure.attempts)
    }
  }

  /// Submits an item that was put aside again. It becomes the last one of the queue, with all its attempts and its key,
  /// without its group; a barrier is one again.
  /// - Throws: ``ClusterError/noSuchFailure(queue:number:)`` if no failed item has that number.
  public func putBack(_ number: UInt64) async throws { try await cluster.open(settings).putBack(number) }

  /// Cancels the item of an id, if no worker has got it yet, or if it waits there for others of its key, or for or as a
  /// barrier. It does not run then, and a `run` that waits for it throws ``ClusterError/itemCancelled(queue:)``. The id
  /// remains taken for as long as ids are kept.
  ///
  /// On servers, the death of the server that leads the queue may hide that a worker has got the item in the last
  /// moment before; `cancelled` is returned then, and that start of the item goes on.
  /// - Parameter id: That of the submission, which has returned.
  /// - Throws: ``ClusterError/engine(queue:reason:)``, ``ClusterError/closed``; the item may be cancelled then, or not.
  @discardableResult
  public func cancel(id: String) async throws -> ClusterCancellation {
    try await cluster.open(settings).cancel(id: id)
  }

  /// Suspends the queue in the whole cluster until `resume`: items that run go on, and no other one starts. Submissions
  /// are stored.
  ///
  /// The engine keeps that, whatever processes and servers end. There is no count: one `resume` ends any number of
  /// suspensions. Workers learn of it at once or within a second; if one cannot reach the servers it starts no item
  /// later than ten seconds after this call has returned, and in a partition, not before the servers know of that.
  /// Items that had reached a worker wait there. If that is cancelled, it gives them back, which counts as a start.
  public func suspend() async throws { try await cluster.open(settings).setSuspended(true) }

  /// Ends the suspension. Workers learn of it at once or within a second.
  public func resume() async throws { try await cluster.open(settings).setSuspended(false) }

  /// Whether the queue is suspended in the whole cluster.
  public func isSuspended() async throws -> Bool { try await cluster.open(settings).isSuspended() }

  /// Removes an item that was put aside for good.
  /// - Throws: ``ClusterError/noSuchFailure(queue:number:)`` if no failed item has that number.
  public func discard(_ number: UInt64) async throws { try await cluster.open(settings).discard(number) }
}

/// What became of a submission.
public enum ClusterSubmission: Hashable, Sendable {
  /// The item is stored.
  case stored
  /// An item with the same id had been stored before, so this one counts for nothing.
  case duplicate
}

/// What became of an item that was to be cancelled.
public enum ClusterCancellation: Hashable, Sendable {
  /// It does not run.
  case cancelled
  /// A worker has got it, and may have started it. That start goes on; if it fails, the item does not start again, as
  /// long as ids are kept.
  case started
  /// The queue has no item of that id, or it has ended.
  case notPending
}

/// An item that failed too often, or that no handler can decode.
public struct ClusterFailure<Item: Codable & Sendable>: Sendable {
  /// Names the failure for `putBack` and `discard`.
  public let number: UInt64
  /// The item, if it can be decoded.
  public let item: Item?
  /// The item as JSON.
  public let bytes: [UInt8]
  /// What the last attempt threw.
  public let reason: String
  /// How often it was started.
  public let attempts: Int
}

/// Another attempt would fail, too.
struct NoAttemptHelps: Error {
  let reason: String
}

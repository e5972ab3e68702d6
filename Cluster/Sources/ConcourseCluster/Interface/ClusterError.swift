/// Why an operation on a cluster failed.
public enum ClusterError: Error, Hashable, CustomStringConvertible {
  /// None of the servers answered.
  case unreachable(servers: [String], reason: String)
  /// The server does not accept the credentials.
  case refused(servers: [String], reason: String)
  /// The queue exists with another form or other options.
  case mismatch(queue: String, reason: String)
  /// The queue has as many items as its limit allows. Nothing was stored.
  case full(queue: String, limit: Int)
  /// The item is too large for the engine. Nothing was stored.
  case tooLarge(queue: String, bytes: Int, limit: Int)
  /// The id has more bytes than engines take. Nothing was stored.
  case idTooLong(queue: String, bytes: Int, limit: Int)
  /// The key has more bytes than engines take. Nothing was stored.
  case keyTooLong(queue: String, bytes: Int, limit: Int)
  /// The item could not be encoded. Nothing was stored.
  case notEncoded(queue: String, reason: String)
  /// The engine has not acknowledged the item in time. It may have stored it: submit the item again with the same id.
  case notAcknowledged(queue: String, id: String, reason: String)
  /// The queue has no failed item of that number.
  case noSuchFailure(queue: String, number: UInt64)
  /// The item of a `run` was put aside, after so many starts. The reason is what the last one threw.
  case itemFailed(queue: String, reason: String, attempts: Int)
  /// The item of a `run` was cancelled.
  case itemCancelled(queue: String)
  /// The item of a `run` has ended, or will, without a result of the type that the caller wants.
  case noResult(queue: String, reason: String)
  /// The engine answered with an error.
  case engine(queue: String, reason: String)
  /// The cluster has been shut down.
  case closed

  public var description: String {
    switch self {
    case .unreachable(let servers, let reason):
      "no server of the cluster can be reached (\(servers.joined(separator: ", "))): \(reason)"
    case .refused(let servers, let reason):
      "the cluster refuses the credentials (\(servers.joined(separator: ", "))): \(reason)"
    case .mismatch(let queue, let reason): "cluster queue \"\(queue)\" exists in another form: \(reason)"
    case .full(let queue, let limit): "cluster queue \"\(queue)\" is full: it has \(limit) items"
    case .tooLarge(let queue, let bytes, let limit):
      "an item for cluster queue \"\(queue)\" has \(bytes) bytes; the most is \(limit)"
    case .idTooLong(let queue, let bytes, let limit):
      "an id for cluster queue \"\(queue)\" has \(bytes) bytes; the most is \(limit)"
    case .keyTooLong(let queue, let bytes, let limit):
      "a key for cluster queue \"\(queue)\" has \(bytes) bytes; the most is \(limit)"
    case .notEncoded(let queue, let reason):
      "an item for cluster queue \"\(queue)\" cannot be encoded: \(reason)"
    case .notAcknowledged(let queue, let id, let reason):
      "cluster queue \"\(queue)\" has not acknowledged item \"\(id)\", which may be stored: \(reason)"
    case .noSuchFailure(let queue, let number):
      "cluster queue \"\(queue)\" has no failed item of number \(number)"
    case .itemFailed(let queue, let reason, let attempts):
      "an item of cluster queue \"\(queue)\" was put aside after \(attempts) attempts: \(reason)"
    case .itemCancelled(let queue): "an item of cluster queue \"\(queue)\" was cancelled"
    case .noResult(let queue, let reason):
      "an item of cluster queue \"\(queue)\" has no result: \(reason)"
    case .engine(let queue, let reason): "cluster queue \"\(queue)\": \(reason)"
    case .closed: "the cluster has been shut down"
    }
  }
}

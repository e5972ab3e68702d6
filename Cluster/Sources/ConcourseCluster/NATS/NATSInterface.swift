// The names of the interface's JSON.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

internal import FoundationEssentials

// Requests to the servers' JetStream interface and their answers, as JSON. Times are in nanoseconds.

/// What a server says when it refuses a request.
struct NATSRefusal: Error, Decodable, CustomStringConvertible {
  let code: Int
  let err_code: Int?
  let text: String?

  enum CodingKeys: String, CodingKey {
    case code
    case err_code
    case text = "description"
  }

  var description: String { "\(text ?? "error \(code)") (\(err_code ?? code))" }

  static let noPeers = 10005
  static let noConsumer = 10014
  static let noStream = 10059
  static let noMessage = 10037
  static let badRequest = 10003
  static let otherConfiguration = 10058
  private static let accountIsFull = 10002
  private static let storageIsFull = 10047
  private static let notStored = 10077

  /// Whether the same request may succeed later: a leader is being chosen, or servers are missing. All requests for a
  /// stream or consumer come after its creation; but when two processes create it at the same time, the second answer
  /// may come before the leader has it.
  var isPassing: Bool {
    !isFull && (code == 503 || [Self.noPeers, Self.noConsumer, Self.noStream].contains(err_code))
  }

  /// The stream, the account or the server has as much as it may. The code of a stream that has its most bytes or messages
  /// is that of other trouble, too.
  var isFull: Bool {
    switch err_code {
    case Self.accountIsFull, Self.storageIsFull: true
    case Self.notStored: text?.hasPrefix("maximum ") == true
    default: false
    }
  }
}

struct NATSStream: Codable {
  var name: String
  var description: String
  var subjects: [String]
  var retention: String
  var storage = "file"
  var num_replicas: Int
  var max_msgs_per_subject = -1
  var max_age: Int64 = 0
}

struct NATSConsumerRequest: Encodable {
  var stream_name: String
  var config: Consumer

  struct Consumer: Encodable {
    var durable_name: String
    var ack_policy = "explicit"
    var deliver_policy = "all"
    var replay_policy = "instant"
    var ack_wait: Int64
    var max_deliver = -1
    var max_ack_pending: Int
  }
}

struct NATSPull: Encodable {
  var batch: Int
  var expires: Int64
}

struct NATSStreamQuestion: Encodable { var subjects_filter: String }

struct NATSNothing: Codable {}

struct NATSStreamInfo: Decodable {
  var config: Config
  var state: State
  var cluster: NATSCluster?

  struct Config: Decodable { var description: String? }
  struct State: Decodable {
    var messages: Int
    /// The place of the last message that was stored.
    var last_seq: UInt64
    /// How many messages the subjects have that were asked for.
    var subjects: [String: Int]?
  }
}

struct NATSConsumerInfo: Decodable {
  /// Items that were not delivered yet.
  var num_pending: Int
  /// Items that were delivered, and not acknowledged.
  var num_ack_pending: Int
  /// The last item that was given out.
  var delivered: Place
  /// All items up to it were acknowledged.
  var ack_floor: Place
  var cluster: NATSCluster?

  struct Place: Decodable { var stream_seq: UInt64 }

  var isConfirmed: Bool { cluster?.isConfirmed ?? true }
}

/// The servers that have a stream or consumer. One that is alone tells nothing of them.
struct NATSCluster: Decodable {
  /// The name of the server that answers.
  var leader: String?
  /// The others.
  var replicas: [Replica]?

  struct Replica: Decodable {
    /// How long ago the leader has heard from it, in nanoseconds.
    var active: Int64
  }

  /// A leader hears from the others each second, and they choose another one after four seconds without it.
  static let longestSilence = Duration.seconds(2)

  /// Whether the leader has just heard from a majority, itself included. One that is cut off answers for a dozen seconds
  /// while there is another leader, whose deliveries it does not know.
  var isConfirmed: Bool {
    guard let replicas else { return true }
    let heard = replicas.count { .nanoseconds($0.active) <= Self.longestSilence }
    return 1 + heard > (1 + replicas.count) / 2
  }
}

struct NATSGet: Encodable {
  var seq: UInt64?
  var next_by_subj: String?
  var last_by_subj: String?

  /// Whether the message is one that was asked for. A server that does not know a part of the question ignores it.
  func isAnswered(by message: NATSStored.Message) -> Bool {
    if let filter = next_by_subj {
      return message.seq >= seq ?? 0 && NATSNames.matches(message.subject, filter)
    }
    if let filter = last_by_subj { return NATSNames.matches(message.subject, filter) }
    return message.seq == seq
  }
}

struct NATSDelete: Encodable {
  var seq: UInt64
  /// Whether its bytes may stay on the disk.
  var no_erase = false
}

struct NATSPurge: Encodable { var filter: String }

struct NATSStored: Decodable {
  var message: Message

  struct Message: Decodable {
    var seq: UInt64
    var subject: String
    var hdrs: Data?
    var data: Data?
    /// When it was stored.
    var time: String?
  }

  /// The headers, encoded as `NATSNames` does.
  func header(_ name: String) -> String? { rawHeader(name).map { NATSNames.decoded($0) } }

  func rawHeader(_ name: String) -> String? {
    guard let headers = message.hdrs else { return nil }
    for line in String(decoding: headers, as: UTF8.self).split(whereSeparator: \.isNewline) {
      if line.hasPrefix(name + ": ") { return String(line.dropFirst(name.count + 2)) }
    }
    return nil
  }
}

private struct NATSAnswer: Decodable { var error: NATSRefusal? }

/// Encodes what is not made to fail.
func encoded(_ value: some Encodable) throws -> [UInt8] { [UInt8](try JSONEncoder().encode(value)) }

/// - Throws: ``NATSRefusal`` if the answer is one.
func decoded<Answer: Decodable>(_ bytes: [UInt8], as: Answer.Type = Answer.self) throws -> Answer {
  let data = Data(bytes)
  if let refusal = try JSONDecoder().decode(NATSAnswer.self, from: data).error { throw refusal }
  return try JSONDecoder().decode(Answer.self, from: data)
}

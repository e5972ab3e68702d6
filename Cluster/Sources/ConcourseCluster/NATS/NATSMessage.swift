internal import CNATS

/// A message that a server has sent.
struct NATSMessage: Sendable {
  let subject: String
  let reply: String?
  let bytes: [UInt8]
  /// The id with which it was stored.
  var id: String?
  /// Names the try that stored it, if a program gave the id.
  var token: String?
  /// When it may start, if it may not at once.
  var due: WallTime?
  /// Whether a caller waits for its result.
  var wantsResult = false
  /// Three digits, of messages by which the server says something of a request.
  var status: String?
  /// How many of a request's messages will not come, of such messages.
  var missing: Int?

  /// Which part of an item's subject says what must have ended before it starts: after "concourse", the queue and
  /// "items".
  var order: String? {
    if hasNoParts { return nil }
    let parts = subject.utf8.split(separator: UInt8(ascii: "."))
    guard parts.count == 6, !parts[3].elementsEqual("-".utf8) else { return nil }
    return String(Substring(parts[3]))
  }

  /// Whether an item has neither an order nor an id of a program nor a group, as most have.
  var hasNoParts: Bool { subject.utf8.suffix(6).elementsEqual(".-.-.-".utf8) }
}

extension NATSMessage {
  /// Copies a message of the library.
  init(_ message: OpaquePointer) {
    subject = String(cString: natsMsg_GetSubject(message))
    reply = natsMsg_GetReply(message).map { String(cString: $0) }
    bytes = Self.bytes(of: message)
    id = Self.header(NATSQueue.Header.id, of: message)
    token = Self.header(NATSQueue.Header.token, of: message)
    wantsResult = Self.header(NATSQueue.Header.wantsResult, of: message) != nil
    due = Self.header(NATSQueue.Header.due, of: message).flatMap { Int64($0) }.map {
      WallTime(nanoseconds: $0)
    }
    status = Self.status(of: message)
    missing = status == nil ? nil : Self.header("Nats-Pending-Messages", of: message).flatMap { Int($0) }
  }

  /// Copies what counts of the answer to a request.
  init(answer message: OpaquePointer) {
    (subject, reply, bytes) = ("", nil, Self.bytes(of: message))
    status = Self.status(of: message)
  }

  /// Whether it is the answer to a message that was stored. A refusal begins with its error.
  var saysStored: Bool { bytes.starts(with: "{\"stream\":".utf8) }

  private static func bytes(of message: OpaquePointer) -> [UInt8] {
    let count = Int(natsMsg_GetDataLength(message))
    return count == 0 ? [] : [UInt8](UnsafeRawBufferPointer(start: natsMsg_GetData(message), count: count))
  }

  /// Only messages without bytes have one.
  private static func status(of message: OpaquePointer) -> String? {
    natsMsg_GetDataLength(message) == 0 ? header("Status", of: message) : nil
  }

  private static func header(_ name: String, of message: OpaquePointer) -> String? {
    var value: UnsafePointer<CChar>?
    guard natsMsgHeader_Get(message, name, &value) == NATS_OK, let value else { return nil }
    return String(cString: value)
  }
}

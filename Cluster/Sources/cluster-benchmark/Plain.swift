import CNATS
import Concourse
import FoundationEssentials
import Glibc

/// The client library as its examples use it: publications without waiting, batches fetched by one thread, and
/// acknowledgements without an answer. An item is JSON, as those of a queue are.
///
/// It gives less: an acknowledgement that is lost goes unnoticed, and so does a publication that fails.
// SAFETY: the library's functions take their objects from any thread; one thread submits, and one runs items.
final class Plain: Side, @unchecked Sendable {
  private struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  private var connection: OpaquePointer?
  private var context: OpaquePointer?
  private var subscription: OpaquePointer?

  init(_ servers: [String]) throws {
    var options = jsOptions()
    try Self.check(jsOptions_Init(&options), "jsOptions_Init")
    options.PublishAsync.MaxPending = Int64(inFlight)
    options.PublishAsync.StallWait = 60_000
    try Self.check(natsConnection_ConnectTo(&connection, servers.joined(separator: ",")), "connect")
    try Self.check(natsConnection_JetStream(&context, connection, &options), "JetStream")
    try Self.withStrings(["plain", "plain.items"]) { strings in
      var stream = jsStreamConfig()
      jsStreamConfig_Init(&stream)
      stream.Name = strings[0]
      stream.Retention = js_WorkQueuePolicy
      stream.Replicas = 3
      var subject: UnsafePointer<CChar>? = strings[1]
      try withUnsafeMutablePointer(to: &subject) { subjects in
        stream.Subjects = subjects
        stream.SubjectsLen = 1
        // The servers may not have a leader yet, or not know each other; then they refuse at once.
        var (status, tries) = (js_AddStream(nil, context, &stream, nil, nil), 1)
        while status != NATS_OK, tries < 60 {
          nats_Sleep(500)
          status = js_AddStream(nil, context, &stream, nil, nil)
          tries += 1
        }
        try Self.check(status, "js_AddStream")
      }
    }
    try Self.check(
      js_PullSubscribe(&subscription, context, "plain.items", "workers", nil, nil, nil), "js_PullSubscribe")
  }

  func submit(_ count: Int) async throws {
    try await DispatchQueue.global().run { [self] in
      for number in 0..<count { try publish(number) }
      try Self.check(js_PublishAsyncComplete(context, nil), "js_PublishAsyncComplete")
    }
  }

  func submit(_ count: Int, every interval: UInt64) async throws {
    try await pace(count, every: interval) { number in try publish(number) }
    try Self.check(js_PublishAsyncComplete(context, nil), "js_PublishAsyncComplete")
  }

  private func publish(_ number: Int) throws {
    let bytes = try JSONEncoder().encode(Item(number: number, time: now()))
    try bytes.withUnsafeBytes { bytes in
      try Self.check(
        js_PublishAsync(context, "plain.items", bytes.baseAddress, Int32(bytes.count), nil), "js_PublishAsync"
      )
    }
  }

  func run(_ count: Int) async throws -> [UInt64] {
    try await DispatchQueue.global().run { [self] in
      var delays: [UInt64] = []
      delays.reserveCapacity(count)
      while delays.count < count {
        var list = natsMsgList()
        let status = natsSubscription_Fetch(
          &list, subscription, Int32(min(inFlight, count - delays.count)), 1_000, nil)
        if status == NATS_TIMEOUT { continue }
        try Self.check(status, "natsSubscription_Fetch")
        for index in 0..<Int(list.Count) {
          let message = list.Msgs[index]
          // SAFETY: the message has as many bytes.
          let bytes = Data(
            bytes: natsMsg_GetData(message)!, count: Int(natsMsg_GetDataLength(message)))
          let item = try JSONDecoder().decode(Item.self, from: bytes)
          delays.append(now() - item.time)
          try Self.check(natsMsg_Ack(message, nil), "natsMsg_Ack")
        }
        natsMsgList_Destroy(&list)
      }
      return delays
    }
  }

  func rest() async {}

  private static func check(_ status: natsStatus, _ call: String) throws {
    guard status == NATS_OK else {
      throw Failure(description: "\(call): \(String(cString: natsStatus_GetText(status)))")
    }
  }

  private static func withStrings(
    _ strings: [String], _ body: ([UnsafePointer<CChar>?]) throws -> Void
  ) throws {
    let copies = strings.map { strdup($0) }
    defer { for copy in copies { free(copy) } }
    try body(copies.map { UnsafePointer($0) })
  }
}

internal import CNATS
internal import Concourse
internal import Glibc

/// The engine of a real cluster: JetStream on servers of NATS.
final class NATSEngine: Engine {
  let connection: NATSConnection
  let replicas: Int
  /// How long an operation is repeated while servers do not answer.
  let timeout: Duration

  private init(connection: NATSConnection, replicas: Int, timeout: Duration) {
    self.connection = connection
    self.replicas = replicas
    self.timeout = timeout
  }

  static func connect(
    servers: [String], credentials: ClusterCredentials, tls: ClusterTLS? = nil, replicas: Int,
    timeout: Duration
  ) async throws -> NATSEngine {
    // The library blocks the thread.
    let connection = try await DispatchQueue.global().run { () throws(ClusterError) -> NATSConnection in
      do {
        return try NATSConnection { try connected(to: servers, credentials, tls) }
      } catch {
        throw error as? ClusterError ?? .unreachable(servers: servers, reason: "\(error)")
      }
    }
    return NATSEngine(connection: connection, replicas: replicas, timeout: timeout)
  }

  /// A connection of the library, which the caller owns.
  private static func connected(
    to servers: [String], _ credentials: ClusterCredentials, _ tls: ClusterTLS?
  ) throws(ClusterError) -> OpaquePointer {
    var options: OpaquePointer?
    var status = natsOptions_Create(&options)
    defer { natsOptions_Destroy(options) }
    func set(_ call: () -> natsStatus) { if status == NATS_OK { status = call() } }
    let names = servers.map { strdup($0) }
    defer { for name in names { free(name) } }
    var pointers = names.map { UnsafePointer($0) }
    set { natsOptions_SetServers(options, &pointers, Int32(pointers.count)) }
    switch credentials {
    case .none: break
    case .password(let user, let password): set { natsOptions_SetUserInfo(options, user, password) }
    case .token(let token): set { natsOptions_SetToken(options, token) }
    case .file(let path): set { natsOptions_SetUserCredentialsFromFiles(options, path, nil) }
    }
    if let tls {
      set { natsOptions_SetSecure(options, true) }
      if let file = tls.authorities { set { natsOptions_LoadCATrustedCertificates(options, file) } }
      if tls.certificate != nil || tls.key != nil {
        set { natsOptions_LoadCertificatesChain(options, tls.certificate ?? "", tls.key ?? "") }
      }
      if let name = tls.serverName { set { natsOptions_SetExpectedHostname(options, name) } }
    }
    set { natsOptions_SetName(options, "concourse") }
    set { natsOptions_SetTimeout(options, 5_000) }
    // A connection that was lost is made again (`NATSLink` for the exception), and one that is silent counts as lost.
    set { natsOptions_SetMaxReconnect(options, -1) }
    set { natsOptions_SetReconnectWait(options, 250) }
    set { natsOptions_SetPingInterval(options, 5_000) }
    set { natsOptions_SetMaxPingsOut(options, 2) }
    // While the network is cut, writing would block threads as soon as the kernel's buffer is full.
    set { natsOptions_SetWriteDeadline(options, 5_000) }
    // The least: what is published without a connection shall fail (`NATSConnection.publish`).
    set { natsOptions_SetReconnectBufSize(options, 1) }
    // Messages of all subscriptions come on the library's few threads, not on one for each.
    set { natsOptions_UseGlobalMessageDelivery(options, true) }
    var connection: OpaquePointer?
    set { natsConnection_Connect(&connection, options) }
    guard status == NATS_OK, let connection else { throw failure(status, servers) }
    return connection
  }

  private static func failure(_ status: natsStatus, _ servers: [String]) -> ClusterError {
    var code = status
    let text = NATSConnection.text(status)
    // After the place in the library's source. It often says the same once more.
    let detail = nats_GetLastError(&code).map { String(cString: $0) }?.split(separator: "): ", maxSplits: 1)
      .last
    let reason = detail.map { $0 == text ? text : "\(text), \($0)" } ?? text
    switch status {
    case NATS_CONNECTION_AUTH_FAILED, NATS_NOT_PERMITTED: return .refused(servers: servers, reason: reason)
    default: return .unreachable(servers: servers, reason: reason)
    }
  }

  func close() async {
    await DispatchQueue.global().run { [connection] in connection.close() }
  }

  func open(_ settings: QueueSettings) async throws -> any EngineQueue {
    let queue = NATSQueue(settings, on: self)
    try await queue.create(replicas: replicas)
    return queue
  }

  /// Asks JetStream, and repeats that while it cannot answer.
  func ask<Answer: Decodable>(
    _ operation: String, _ request: some Encodable, as: Answer.Type = Answer.self,
    repeatedFor time: Duration? = nil
  ) async throws -> Answer {
    let body = try encoded(request)
    return try await repeated(for: time ?? timeout) {
      try decoded(try await self.connection.request("$JS.API.\(operation)", body).bytes)
    }
  }

  /// Repeats an operation as long as its failures are such that pass, with growing pauses.
  /// - Throws: What no repetition would mend, and the last failure when the time is over, as the operation has thrown
  ///   it.
  func repeated<Result>(for time: Duration, _ operation: () async throws -> Result) async throws -> Result {
    let end = ContinuousClock.now + time
    var pause = Duration.milliseconds(50)
    while true {
      do {
        return try await operation()
      } catch {
        let isPassing =
          switch error {
          case NATSFailure.closed, NATSFailure.tooLarge: false
          case is NATSFailure: true
          case let refusal as NATSRefusal: refusal.isPassing
          default: false
          }
        guard isPassing, ContinuousClock.now + pause < end else { throw error }
        try await Task.sleep(for: pause)
        pause = min(pause * 2, .seconds(2))
      }
    }
  }
}

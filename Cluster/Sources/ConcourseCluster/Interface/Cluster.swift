internal import Synchronization

/// The machines that share queues, or this process alone.
///
/// ```swift
/// let cluster = try await Cluster.connect(servers: ["nats://10.0.0.1", "nats://10.0.0.2", "nats://10.0.0.3"])
/// let photos = ClusterQueue<Photo>(label: "photos", attributes: .concurrent, on: cluster)
/// ```
public final class Cluster: Sendable {
  private enum Phase {
    case open
    case closed
  }

  private struct Queue {
    let settings: QueueSettings
    let opening: Task<any EngineQueue, any Error>
    /// What the task has returned.
    var opened: (any EngineQueue)?
  }

  private struct State {
    var phase = Phase.open
    var queues: [String: Queue] = [:]
    var registrations: [ObjectIdentifier: ClusterRegistration] = [:]
    var figures: [String: QueueFigures] = [:]
  }

  private let engine: any Engine
  private let state = Mutex(State())

  init(engine: any Engine) { self.engine = engine }

  /// A cluster in this process, without a server: for tests and for the first day.
  ///
  /// Its queues are kept in memory and end with the process. Everything else is as on a real cluster.
  public static func embedded() -> Cluster { Cluster(engine: EmbeddedEngine()) }

  /// Connects to servers of NATS with JetStream, at least one of which must answer now.
  ///
  /// A connection that is lost is made again by itself, with any of these servers or of those that they name.
  /// - Parameters:
  ///   - servers: Where they are: `"nats://host:port"`.
  ///   - credentials: What the servers ask this process for.
  ///   - tls: How connections are encrypted; `nil` if they are not. A server that demands encryption refuses those then.
  ///   - replicas: On how many servers each item is stored before its submission returns: 1, 3 or 5. Of three servers
  ///     one may be lost at a time, of five two.
  ///   - timeout: How long an operation is repeated while the servers cannot take it.
  /// - Throws: ``ClusterError/unreachable(servers:reason:)`` or ``ClusterError/refused(servers:reason:)``.
  public static func connect(
    servers: [String], credentials: ClusterCredentials = .none, tls: ClusterTLS? = nil, replicas: Int = 3,
    timeout: Duration = .seconds(60)
  ) async throws -> Cluster {
    if servers.isEmpty { misuse("a cluster needs at least one server") }
    return Cluster(
      engine: try await NATSEngine.connect(
        servers: servers, credentials: credentials, tls: tls, replicas: replicas, timeout: timeout))
  }

  /// Cancels all registrations, waits until the items that run here have finished, and ends the connection.
  ///
  /// Afterwards each operation throws ``ClusterError/closed``. Do not call it in a handler: it would wait for itself.
  public func shutdown() async {
    let registrations = state.withLock { state in
      state.phase = .closed
      return Array(state.registrations.values)
    }
    for registration in registrations { registration.cancel() }
    for registration in registrations { await registration.drained() }
    await engine.close()
  }

  /// The engine's queue, which the first caller opens. A failure is not kept: the next caller tries again.
  func open(_ settings: QueueSettings) async throws -> any EngineQueue {
    let queue = try state.withLock { state throws in
      if case .closed = state.phase { throw ClusterError.closed }
      if let known = state.queues[settings.label] {
        guard known.settings == settings else {
          throw ClusterError.mismatch(
            queue: settings.label, reason: "this process uses it with other attributes or options")
        }
        return known
      }
      let engine = engine
      let queue = Queue(settings: settings, opening: Task { try await engine.open(settings) })
      state.queues[settings.label] = queue
      return queue
    }
    // Awaiting the task, even one that has ended, costs much more.
    if let opened = queue.opened { return opened }
    do {
      let opened = try await queue.opening.value
      state.withLock { state in state.queues[settings.label]?.opened = opened }
      return opened
    } catch {
      state.withLock { state in
        if state.queues[settings.label]?.opening == queue.opening { state.queues[settings.label] = nil }
      }
      throw error
    }
  }

  var openQueues: [String: Task<any EngineQueue, any Error>] {
    state.withLock { $0.queues.mapValues(\.opening) }
  }
  var figures: [String: QueueFigures] { state.withLock { $0.figures } }

  /// Those of that queue.
  func figures(of label: String) -> QueueFigures {
    state.withLock { state in
      if let figures = state.figures[label] { return figures }
      let figures = QueueFigures()
      state.figures[label] = figures
      return figures
    }
  }

  /// Keeps the registration until `remove`.
  func add(_ registration: ClusterRegistration) throws {
    try state.withLock { state throws in
      if case .closed = state.phase { throw ClusterError.closed }
      state.registrations[ObjectIdentifier(registration)] = registration
    }
  }

  func remove(_ registration: ClusterRegistration) {
    state.withLock { state in _ = state.registrations.removeValue(forKey: ObjectIdentifier(registration)) }
  }
}

/// How connections to the servers are encrypted. All files are PEM, and are read when the cluster connects.
public struct ClusterTLS: Hashable, Sendable {
  /// The file of the certificates that sign those of the servers. `nil` for those that OpenSSL finds by itself.
  public var authorities: String?
  /// The file of this process's certificate, if the servers ask for one, with those that sign it behind it.
  public var certificate: String?
  /// The file of that certificate's private key.
  public var key: String?
  /// The name that the servers' certificates must have. If it is `nil`, any certificate of the authorities is accepted.
  public var serverName: String?

  /// Encryption with the files of those paths.
  public init(
    authorities: String? = nil, certificate: String? = nil, key: String? = nil, serverName: String? = nil
  ) {
    self.authorities = authorities
    self.certificate = certificate
    self.key = key
    self.serverName = serverName
  }
}

/// What a process shows to the servers.
public enum ClusterCredentials: Sendable {
  case none
  case password(user: String, password: String)
  case token(String)
  /// A file with a user's token and key, as the tools of NATS write it.
  case file(path: String)
}

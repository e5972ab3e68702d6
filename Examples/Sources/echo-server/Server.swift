import ExampleSupport
import Glibc
import Synchronization

/// Listens, and has a `Connection` for each client.
// SAFETY: the variables are OWNED BY `queue`, a serial queue; the methods called from outside submit to it.
final class Server: @unchecked Sendable {
  private enum Phase {
    case accepting
    /// All places are taken, or there is no descriptor; clients wait in the kernel.
    case full
    case stopping(whenStopped: @Sendable () -> Void)
    case stopped
  }

  /// Such as `127.0.0.1:7007` or `[::1]:7007`.
  let address: String
  let port: UInt16
  private let maximumConnections: Int
  private let silence: Double
  private let report: @Sendable (String) -> Void
  private let queue = DispatchQueue(label: "echo.server")
  private let counters = Counters()
  private let descriptor: Int32
  private var listener: SwitchedSource
  private var listens = true
  private var phase = Phase.accepting
  private var connections: [ObjectIdentifier: Connection] = [:]
  private var hasReportedShortage = false

  /// Clients can connect from now on; they are served after `start`.
  ///
  /// - Parameter report: called with messages for the administrator, on a queue of the server.
  init(_ options: Options, report: @escaping @Sendable (String) -> Void) throws(ServerError) {
    let socket = try Listener(host: options.host, port: options.port)
    port = socket.port
    address = socket.address
    descriptor = socket.descriptor
    maximumConnections = options.maximumConnections
    silence = options.silence
    self.report = report
    listener = SwitchedSource(DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue))
  }

  var statistics: Statistics { counters.statistics }

  func start() {
    queue.sync {
      listener.source.setEventHandler { self.accept() }
      listener.source.setCancelHandler {
        close(self.descriptor)
        self.listens = false
        self.endIfNothingIsLeft()
      }
      listener.resume()
    }
  }

  /// Stops in good order: accepts no more clients, sends back what has been received, and closes everything. Clients
  /// that have not taken their output after `grace` seconds are cut off.
  ///
  /// - Parameter whenStopped: called once, on a queue of the server; every descriptor is closed by then.
  func stop(grace: Int, whenStopped: @escaping @Sendable () -> Void) {
    queue.async {
      switch self.phase {
      case .accepting, .full: break
      case .stopping, .stopped: return
      }
      self.phase = .stopping(whenStopped: whenStopped)
      self.listener.cancel()
      for connection in self.connections.values { connection.stop() }
    }
    queue.asyncAfter(deadline: .now() + .seconds(grace)) { [weak self] in self?.abortAll() }
  }

  /// Cuts off all clients at once. To be called after `stop`.
  func abort() { queue.async { self.abortAll() } }

  // MARK: On the queue

  private func accept() {
    // A bounded number for each event, so that many new clients do not delay the items of the connections that end.
    for _ in 0..<64 {
      guard case .accepting = phase else { return }
      switch Socket.accept(from: descriptor) {
      case .connection(let client): serve(client)
      case .nothing: return
      case .failed(let error):
        pauseAccepting()
        if !hasReportedShortage {
          hasReportedShortage = true
          report("cannot accept: \(describe(errno: error)); further clients have to wait")
        }
        // The descriptors that become free may not be ours, so no event tells when to try again.
        queue.asyncAfter(deadline: .now() + .seconds(1)) { [weak self] in self?.resumeAccepting() }
        return
      }
    }
  }

  private func serve(_ client: Int32) {
    counters.accepted.add(1)
    let connection = Connection(client, counters, silence: silence) { [queue] connection in
      queue.async { self.forget(connection) }
    }
    connections[ObjectIdentifier(connection)] = connection
    connection.start()
    if connections.count == maximumConnections { pauseAccepting() }
  }

  private func forget(_ connection: Connection) {
    counters.closed.add(1)
    connections[ObjectIdentifier(connection)] = nil
    resumeAccepting()
    endIfNothingIsLeft()
  }

  private func pauseAccepting() {
    guard case .accepting = phase else { return }
    phase = .full
    listener.suspend()
  }

  private func resumeAccepting() {
    guard case .full = phase, connections.count < maximumConnections else { return }
    phase = .accepting
    listener.resume()
  }

  private func abortAll() {
    for connection in connections.values { connection.abort() }
  }

  private func endIfNothingIsLeft() {
    guard case .stopping(let whenStopped) = phase, !listens, connections.isEmpty else { return }
    phase = .stopped
    whenStopped()
  }
}

/// What the server counts while it runs.
final class Counters: Sendable {
  let accepted = Counter()
  let closed = Counter()
  /// Connections that broke.
  let failed = Counter()
  /// Connections that were closed with output pending, after the grace.
  let cutOff = Counter()
  /// Bytes sent back.
  let bytes = Counter()
  /// How often a connection's input was paused because its client did not read.
  let pauses = Counter()

  var statistics: Statistics {
    // `closed` first: a connection is accepted before it is closed, so `open` is never negative.
    let closed = closed.value
    return Statistics(
      open: accepted.value - closed, accepted: accepted.value, failed: failed.value, cutOff: cutOff.value,
      bytes: bytes.value, pauses: pauses.value)
  }
}

final class Counter: Sendable {
  private let count = Atomic<Int>(0)

  func add(_ amount: Int) {
    // ORDERING: relaxed; a number by itself, which publishes nothing.
    count.wrappingAdd(amount, ordering: .relaxed)
  }

  // ORDERING: relaxed; pairs with the addition above, and orders nothing else.
  var value: Int { count.load(ordering: .relaxed) }
}

/// What the server has done so far.
struct Statistics: Sendable {
  let open: Int
  let accepted: Int
  let failed: Int
  let cutOff: Int
  let bytes: Int
  let pauses: Int

  var line: String {
    "\(open) open, \(accepted) accepted, \(failed) broken, \(cutOff) cut off, \(bytes) bytes echoed, "
      + "\(pauses) pauses"
  }
}

/// The number of descriptors that the process may open.
enum DescriptorLimit {
  /// Descriptors that are not connections: standard input and output, the listener, those of the runtime and the C
  /// library.
  static let reserve = 32

  /// Raises the soft limit as far as `connections` need and the hard limit allows. The soft one is usually 1,024, for
  /// programs with select().
  ///
  /// - Returns: how many connections there is room for, at most `connections`.
  static func makeRoom(for connections: Int) -> Int {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &limit) == 0 else { return connections }
    let wanted = rlim_t(connections + reserve)
    if limit.rlim_cur < wanted {
      var raised = limit
      raised.rlim_cur = min(wanted, limit.rlim_max)
      if setrlimit(resource, &raised) == 0 { limit = raised }
    }
    return limit.rlim_cur < wanted ? max(1, Int(limit.rlim_cur) - reserve) : connections
  }
}

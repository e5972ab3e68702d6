import Glibc

/// Listens, and has a `Connection` for each client.
// SAFETY: what changes is OWNED BY `queue`, a serial queue; the methods called from outside submit to it.
package final class Server: @unchecked Sendable {
  private enum Phase {
    case accepting
    /// All places are taken, or no descriptor is to be had; clients wait in the kernel.
    case full
    case stopping(whenStopped: @Sendable () -> Void)
    case stopped
  }

  /// As `127.0.0.1:7007`.
  package let address: String
  package let port: UInt16
  private let maximumConnections: Int
  private let report: @Sendable (String) -> Void
  private let queue = DispatchQueue(label: "echo.server")
  private let counters = Counters()
  private let descriptor: Int32
  private var listener: SwitchedSource
  private var listens = true
  private var phase = Phase.accepting
  private var connections: [ObjectIdentifier: Connection] = [:]
  private var saidThatItCannot = false

  /// Clients can connect from now on; they are served after `start`.
  ///
  /// - Parameter report: told what an administrator should know, on a queue of the server.
  package init(_ options: Options, report: @escaping @Sendable (String) -> Void) throws(ServerError) {
    let socket = try Listener(host: options.host, port: options.port)
    address = socket.address
    port = socket.port
    descriptor = socket.descriptor
    maximumConnections = options.maximumConnections
    self.report = report
    listener = SwitchedSource(DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue))
  }

  package var statistics: Statistics { counters.statistics }

  package func start() {
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

  /// Stops in good order: nobody is accepted any more, what has been received is sent back, all is closed.
  /// Clients that have not taken their output after `grace` seconds are cut off.
  ///
  /// - Parameter whenStopped: called once, on a queue of the server; every descriptor is closed by then.
  package func stop(grace: Int, whenStopped: @escaping @Sendable () -> Void) {
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

  /// Cuts off all clients at once; only of use after `stop`.
  package func abort() {
    queue.async { self.abortAll() }
  }

  // MARK: On the queue

  private func accept() {
    // Some for an event, so that the connections' own news is not held up by a crowd at the door.
    for _ in 0..<64 {
      guard case .accepting = phase else { return }
      switch Socket.accept(from: descriptor) {
      case .connection(let client): serve(client)
      case .nobody: return
      case .cannot(let error):
        pauseAccepting()
        if !saidThatItCannot {
          saidThatItCannot = true
          report("cannot accept: \(String(cString: strerror(error))); further clients have to wait")
        }
        // Others use descriptors too, and do not tell when they have closed some.
        queue.asyncAfter(deadline: .now() + .seconds(1)) { [weak self] in self?.resumeAccepting() }
        return
      }
    }
  }

  private func serve(_ client: Int32) {
    counters.accepted.add(1)
    let connection = Connection(client, counters) { [queue] connection in
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

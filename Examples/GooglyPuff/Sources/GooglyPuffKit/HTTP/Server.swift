import ExampleSupport

/// Accepts clients, and creates a `Connection` for each.
// SAFETY: the mutable state is OWNED BY `queue`, a serial queue.
final class Server: @unchecked Sendable {
  let listener: Listener
  private let turnstile: Turnstile
  private let plan: @Sendable (RequestHead) -> Plan
  private let queue = DispatchQueue(label: "googlypuff.server")
  private var accepting: SwitchedSource
  private var connections = 0

  init(_ listener: Listener, turnstile: Turnstile, plan: @escaping @Sendable (RequestHead) -> Plan) {
    self.listener = listener
    self.turnstile = turnstile
    self.plan = plan
    accepting = SwitchedSource(
      DispatchSource.makeReadSource(fileDescriptor: listener.descriptor, queue: queue))
  }

  func start() {
    queue.async {
      self.accepting.source.setEventHandler { self.accept() }
      self.accepting.resume()
    }
  }

  private func accept() {
    while connections < Limits.connections {
      let client: Int32
      switch Socket.accept(from: listener.descriptor) {
      case .connection(let descriptor): client = descriptor
      case .nothing: return
      case .failed: return pause()
      }
      connections += 1
      let connection = Connection(client, turnstile: turnstile, plan: plan) { [self] _ in
        queue.async { [self] in
          connections -= 1
          accepting.resume()
        }
      }
      connection.start()
    }
    // Further clients wait in the backlog.
    accepting.suspend()
  }

  /// Retries after a second: no event reports that the process has descriptors again.
  private func pause() {
    accepting.suspend()
    queue.asyncAfter(deadline: .now() + .seconds(1)) { self.accepting.resume() }
  }
}

/// The failed items of a queue, for a program that knows neither the type of its items nor its options.
package struct FailedItems: Sendable {
  package struct Item: Sendable {
    /// Names it for `putBack` and `discard`.
    package let number: UInt64
    /// That of its submission, if the program gave one.
    package let id: String?
    package let attempts: Int
    /// What the last attempt threw.
    package let reason: String
    package let bytes: Int
    /// When it was put aside, as the servers write it.
    package let time: String
  }

  /// Whether a queue can have that label.
  package static func isLabel(_ text: String) -> Bool {
    !text.isEmpty && NATSNames.encoded(text).utf8.count <= QueueSettings.longestLabel
  }

  private let engine: NATSEngine
  private let queue: NATSQueue
  private let label: String

  /// - Parameter timeout: How long an operation is repeated while the servers cannot take it.
  package init(
    of label: String, servers: [String], credentials: ClusterCredentials = .none, tls: ClusterTLS? = nil,
    timeout: Duration = .seconds(10)
  ) async throws {
    self.label = label
    // Nothing is made here, so neither replicas nor options matter.
    engine = try await NATSEngine.connect(
      servers: servers, credentials: credentials, tls: tls, replicas: 1, timeout: timeout)
    queue = NATSQueue(QueueSettings(label: label, attributes: [], options: ClusterQueueOptions()), on: engine)
  }

  package func close() async { await engine.close() }

  /// The number of the last item that was put aside.
  package func last() async throws -> UInt64 {
    do {
      // A queue that exists may be without a leader for some seconds.
      return try await engine.repeated(for: engine.timeout) {
        do {
          let info: NATSStreamInfo = try await engine.ask(
            "STREAM.INFO.\(queue.names.failedStream)", NATSNothing(), repeatedFor: .zero)
          return info.state.last_seq
        } catch let refusal as NATSRefusal where refusal.err_code == NATSRefusal.noStream {
          throw ClusterError.engine(queue: label, reason: "these servers have no such queue")
        }
      }
    } catch let error as ClusterError {
      throw error
    } catch {
      throw ClusterError.engine(queue: label, reason: "\(error)")
    }
  }

  /// The oldest ones after that number, at most so many.
  package func list(after number: UInt64, atMost count: Int) async throws -> [Item] {
    try await queue.failures(after: number, atMost: count) { failure in
      Item(
        number: failure.number, id: failure.id, attempts: failure.attempts, reason: failure.reason,
        bytes: failure.bytes.count, time: failure.time)
    }
  }

  /// Submits it again, as `ClusterQueue.putBack` does.
  package func putBack(_ number: UInt64) async throws { try await queue.putBack(number) }

  package func discard(_ number: UInt64) async throws { try await queue.discard(number) }
}

/// How to handle a request, decided from its head.
package enum Plan: Sendable {
  case answer(Response)
  case receive(Receiver)
  /// The connection becomes an event stream, passed to the closure. The closure returned is called when it has ended.
  case stream(@Sendable (EventStream) -> @Sendable () -> Void)

  /// Takes the body of a request.
  package struct Receiver: Sendable {
    /// The maximum size of the body, and the error message for a larger one.
    var limit = 0
    var tooLarge = "the request is too large"
    /// Whether the body is read only after the turnstile has admitted it.
    var takesTurn = false
    /// Called with the whole body; the answer may come from any queue, at any time.
    var received: @Sendable ([UInt8], Turnstile.Turn?, @escaping @Sendable (Response) -> Void) -> Void
    /// Called instead if the body does not arrive.
    var broken: @Sendable (String) -> Void = { _ in }
  }
}

/// A stream of server-sent events to a page.
package struct EventStream: Sendable {
  private let connection: Connection

  init(_ connection: Connection) { self.connection = connection }

  package var id: ObjectIdentifier { ObjectIdentifier(connection) }

  /// Sends an event. The value is computed and encoded on the connection's queue, to keep the main queue free.
  package func send<Value: Encodable & Sendable>(
    _ name: String, _ value: @escaping @autoclosure @Sendable () -> Value
  ) {
    connection.push { Array("event: \(name)\ndata: ".utf8) + JSON.encode(value()) + Array("\n\n".utf8) }
  }
}

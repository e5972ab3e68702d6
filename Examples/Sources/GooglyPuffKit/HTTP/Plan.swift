/// What is to become of a request, decided from its head.
package enum Plan: Sendable {
  case answer(Response)
  case receive(Receiver)
  /// The connection becomes a stream of events, given to the closure; it has ended when the closure's result is called.
  case stream(@Sendable (EventStream) -> @Sendable () -> Void)

  /// Takes the body of a request.
  package struct Receiver: Sendable {
    /// How large the body may be, and what to say of a larger one.
    var limit = 0
    var tooLarge = "the request is too large"
    /// Whether the body is read only when there is a place for it.
    var takesTurn = false
    /// Called with the whole body; the answer may come from any queue, at any time.
    var received: @Sendable ([UInt8], Turnstile.Turn?, @escaping @Sendable (Response) -> Void) -> Void
    /// Called instead if the body does not come.
    var broken: @Sendable (String) -> Void = { _ in }
  }
}

/// Where a page listens to what happens.
package struct EventStream: Sendable {
  private let connection: Connection

  init(_ connection: Connection) { self.connection = connection }

  package var id: ObjectIdentifier { ObjectIdentifier(connection) }

  /// Sends an event. It is encoded on the connection's queue, as the caller, usually the main queue, has better things
  /// to do.
  package func send<Value: Encodable & Sendable>(
    _ name: String, _ value: @escaping @autoclosure @Sendable () -> Value
  ) {
    connection.push { Array("event: \(name)\ndata: ".utf8) + JSON.encode(value()) + Array("\n\n".utf8) }
  }
}

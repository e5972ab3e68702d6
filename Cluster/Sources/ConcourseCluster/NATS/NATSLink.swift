internal import CNATS
internal import Concourse
internal import Synchronization

// The library's connection and its subscriptions, which outlive it.
//
// The library makes a lost connection again by itself. It gives up if a server refuses the credentials twice, as one does
// whose configuration is being changed: then it closes the connection and ends its subscriptions, for good. The link makes
// another connection, and gives it the subscriptions of the one before.

/// A connection of the library. It is destroyed with the last reference.
final class NATSHandle: Sendable {
  // SAFETY: the library's functions take a connection from any thread. It is destroyed in `deinit`.
  nonisolated(unsafe) let pointer: OpaquePointer
  /// Connections of a link are numbered in the order in which they were made.
  let number: Int

  init(_ pointer: OpaquePointer, number: Int) {
    self.pointer = pointer
    self.number = number
  }

  deinit {
    // Elsewhere, since the last reference may end on the library's thread, for which destroying waits.
    // SAFETY: no other reference is left.
    nonisolated(unsafe) let pointer = pointer
    DispatchQueue.global().async { natsConnection_Destroy(pointer) }
  }

  /// Whether the library does not make it again.
  var isGivenUp: Bool { natsConnection_IsClosed(pointer) }
}

final class NATSLink: Sendable {
  private struct State {
    var isClosed = false
    var handle: NATSHandle
    /// Whether another connection is being made.
    var isReplacing = false
    var subscribers: [ObjectIdentifier: NATSSubscriber] = [:]
  }

  private static let shortestPause = Duration.milliseconds(250)
  private static let longestPause = Duration.seconds(5)

  private let connect: @Sendable () throws -> OpaquePointer
  private let state: Mutex<State>

  /// - Parameter connect: Makes a connection of the library, which the link owns. It blocks the thread.
  init(_ connect: @escaping @Sendable () throws -> OpaquePointer) throws {
    self.connect = connect
    state = Mutex(State(handle: NATSHandle(try connect(), number: 1)))
  }

  /// The present connection, which the library may have given up.
  var handle: NATSHandle { state.withLock { $0.handle } }
  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// Ends the connection, after what was published has been sent, and all subscriptions.
  func close() {
    let (handle, subscribers) = state.withLock { state in
      state.isClosed = true
      return (state.handle, Array(state.subscribers.values))
    }
    _ = natsConnection_FlushTimeout(handle.pointer, 1_000)
    natsConnection_Close(handle.pointer)
    for subscriber in subscribers { subscriber.end() }
  }

  /// Makes another connection if the library has given up that one.
  func replace(_ handle: NATSHandle) {
    guard handle.isGivenUp else { return }
    let begins = state.withLock { state in
      guard !state.isClosed, !state.isReplacing, state.handle === handle else { return false }
      state.isReplacing = true
      return true
    }
    if begins { replaceLater(after: Self.shortestPause) }
  }

  private func replaceLater(after pause: Duration) {
    DispatchQueue.global(qos: .userInitiated).asyncAfter(deadline: .now() + pause.asInterval) { [weak self] in
      self?.replace(orLaterAfter: min(pause * 2, Self.longestPause))
    }
  }

  private func replace(orLaterAfter pause: Duration) {
    if isClosed { return }
    guard let pointer = try? connect() else { return replaceLater(after: pause) }
    let new = NATSHandle(pointer, number: handle.number + 1)
    let subscribers = state.withLock { state -> [NATSSubscriber] in
      if state.isClosed { return [] }
      state.isReplacing = false
      state.handle = new
      return Array(state.subscribers.values)
    }
    // One that fails belongs to a connection that has been given up again.
    for subscriber in subscribers { try? subscriber.subscribe(on: new) }
    replace(new)
  }

  /// Calls the handler for each message, one after the other, on a thread of the library. It must return soon.
  /// - Parameter ended: Called once, after the last message of a subscription that was cancelled, or when the link was
  ///   closed.
  func subscribe(
    _ subject: String, ended: @escaping @Sendable () -> Void = {},
    _ handle: @escaping @Sendable (OpaquePointer) -> Void
  ) throws -> NATSSubscription {
    let subscriber = NATSSubscriber(of: self, subject, handle: handle, ended: ended)
    let connection = try state.withLock { state throws in
      if state.isClosed { throw NATSFailure.closed }
      state.subscribers[ObjectIdentifier(subscriber)] = subscriber
      return state.handle
    }
    do {
      try subscriber.subscribe(on: connection)
    } catch {
      let goesOn = connection.isGivenUp && !isClosed
      if !goesOn {
        remove(subscriber)
        throw isClosed ? NATSFailure.closed : error
      }
      // The next connection gets it.
      replace(connection)
    }
    return NATSSubscription(subscriber)
  }

  fileprivate func remove(_ subscriber: NATSSubscriber) {
    state.withLock { state in _ = state.subscribers.removeValue(forKey: ObjectIdentifier(subscriber)) }
  }
}

/// A subscription on whatever connection the link has. Destroying it cancels it.
final class NATSSubscription: Sendable {
  private let subscriber: NATSSubscriber

  fileprivate init(_ subscriber: NATSSubscriber) { self.subscriber = subscriber }

  deinit { subscriber.cancel() }

  /// Wants no more messages. Those that the server has sent still come, for five seconds at most.
  func drain() { subscriber.end()?.drain() }
}

/// What a subscription is for. The link keeps it until its end.
private final class NATSSubscriber: Sendable {
  private struct State {
    /// The library's subscription on the connection of that number.
    var subscription: LibrarySubscription?
    var number = 0
    /// How many subscriptions the library has whose end it has not told.
    var living = 0
    /// No further message is wanted.
    var isOver = false
    var hasEnded = false

    /// Whether `ended` is to be called now.
    mutating func ends() -> Bool {
      guard isOver, living == 0, !hasEnded else { return false }
      hasEnded = true
      return true
    }
  }

  let handle: @Sendable (OpaquePointer) -> Void
  private let ended: @Sendable () -> Void
  private let subject: String
  private weak let link: NATSLink?
  private let state = Mutex(State())

  init(
    of link: NATSLink, _ subject: String, handle: @escaping @Sendable (OpaquePointer) -> Void,
    ended: @escaping @Sendable () -> Void
  ) {
    (self.link, self.subject, self.handle, self.ended) = (link, subject, handle, ended)
  }

  /// Subscribes on a connection that is newer than the one before.
  func subscribe(on connection: NATSHandle) throws {
    let goesOn = state.withLock { state in
      guard !state.isOver, connection.number > state.number else { return false }
      (state.number, state.living) = (connection.number, state.living + 1)
      return true
    }
    guard goesOn else { return }
    // SAFETY: balanced by one of the releases below.
    let context = Unmanaged.passRetained(Context(subscriber: self, connection: connection))
    var pointer: OpaquePointer?
    let status = natsConnection_Subscribe(
      &pointer, connection.pointer, subject,
      { _, _, message, context in
        defer { natsMsg_Destroy(message) }
        // SAFETY: retained until the subscription's completion, after which no message comes.
        Unmanaged<Context>.fromOpaque(context!).takeUnretainedValue().subscriber.handle(message!)
      }, context.toOpaque())
    guard status == NATS_OK, let pointer else {
      // SAFETY: the library has not taken the context.
      context.release()
      hasEnded()
      throw NATSFailure.library(NATSConnection.text(status))
    }
    let subscription = LibrarySubscription(pointer)
    // Messages wait in memory for the handler; none is dropped.
    natsSubscription_SetPendingLimits(pointer, -1, -1)
    let completion = natsSubscription_SetOnCompleteCB(
      pointer,
      { context in
        // SAFETY: the last use of the context.
        let context = Unmanaged<Context>.fromOpaque(context!).takeRetainedValue()
        context.subscriber.hasEnded()
        context.subscriber.link?.replace(context.connection)
      }, context.toOpaque())
    guard completion == NATS_OK else {
      // The connection was closed meanwhile. The context stays: nothing says when its last message has come.
      hasEnded()
      throw NATSFailure.library(NATSConnection.text(completion))
    }
    let isOld = state.withLock { state in
      // It may have been cancelled, or be on another connection, meanwhile.
      if state.isOver || state.number != connection.number { return true }
      state.subscription = subscription
      return false
    }
    if isOld { subscription.drain() }
  }

  /// The library has ended a subscription.
  private func hasEnded() {
    let ends = state.withLock { state in
      state.living -= 1
      if link?.isClosed ?? true { state.isOver = true }
      return state.ends()
    }
    if ends { tell() }
  }

  /// Wants no more messages.
  /// - Returns: The library's subscription, with whose end this one ends.
  @discardableResult
  func end() -> LibrarySubscription? {
    let (ends, subscription) = state.withLock { state in
      state.isOver = true
      return (state.ends(), state.subscription)
    }
    if ends { tell() }
    return subscription
  }

  /// The same, without those that the server has sent.
  func cancel() {
    end()
    // Not destroyed under the lock.
    let subscription = state.withLock { state in
      defer { state.subscription = nil }
      return state.subscription
    }
    withExtendedLifetime(subscription) {}
  }

  private func tell() {
    link?.remove(self)
    ended()
  }

  /// What the library has of a subscription.
  private final class Context: Sendable {
    let subscriber: NATSSubscriber
    let connection: NATSHandle

    init(subscriber: NATSSubscriber, connection: NATSHandle) {
      (self.subscriber, self.connection) = (subscriber, connection)
    }
  }
}

/// A subscription of the library. It is destroyed, and cancelled, with the last reference.
private final class LibrarySubscription: Sendable {
  // SAFETY: the library's functions take a subscription from any thread. It is destroyed in `deinit`.
  private nonisolated(unsafe) let pointer: OpaquePointer

  init(_ pointer: OpaquePointer) { self.pointer = pointer }

  deinit { natsSubscription_Destroy(pointer) }

  func drain() {
    if natsSubscription_DrainTimeout(pointer, 5_000) != NATS_OK { natsSubscription_Unsubscribe(pointer) }
  }
}

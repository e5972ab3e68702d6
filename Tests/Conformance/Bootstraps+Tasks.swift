// Bootstraps by tasks: with sources that resume them, and with event loops of the program's own beside Dispatch, as
// swift-nio has them.

import Glibc

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

extension Bootstrap {
  /// A server and a client that are tasks. Each wait is a source, which is made, fires, and is cancelled.
  func tasks(streams: Bool) {
    let (server, client) = (endpoint("server", streams: streams), endpoint("client", streams: streams))
    server.bind(number)
    if streams { precondition(listen(server.descriptor, 128) == 0) }
    Task.detached { [self] in
      await withTaskGroup(of: Void.self) { group in
        group.addTask { [self] in await answer(server, streams: streams) }
        group.addTask { [self] in await ask(client, server, streams: streams) }
      }
      for endpoint in [server, client] { close(endpoint.descriptor) }
      told.signal()
    }
  }

  private func answer(_ server: Endpoint, streams: Bool) async {
    guard streams else {
      server.send(to: await receive(server))
      return
    }
    await ready(server)
    let connection = note(server.accept()!)
    _ = await receive(connection)
    connection.send()
    close(connection.descriptor)
  }

  private func ask(_ client: Endpoint, _ server: Endpoint, streams: Bool) async {
    if number % 16 == 0 { try? await Task.sleep(nanoseconds: UInt64(number % 1_000) * 3_000) }
    _ = client.connect(to: server)
    if streams { await ready(client, writing: true) }
    client.send()
    _ = await receive(client)
  }

  private func receive(_ endpoint: Endpoint) async -> sockaddr_in {
    while true {
      await ready(endpoint)
      let (count, from) = endpoint.receive()
      if count > 0 { return from }
    }
  }

  private func ready(_ endpoint: Endpoint, writing: Bool = false) async {
    await withCheckedContinuation { continuation in
      watch(endpoint, writing: writing, then: { continuation.resume() }) { $0.cancel() }.activate()
    }
  }

  /// Sockets in event loops of the program's own. A task binds the server, sleeps, looks a name up on queues, and asks.
  func loops(sleeping nanoseconds: UInt64) {
    let (server, client) = (endpoint("server"), endpoint("client"))
    let (serving, asking) = (ProgramLoop.all[number % 2], ProgramLoop.all[(number / 2) % 2])
    Task.detached { [self] in
      await withCheckedContinuation { continuation in
        serving.submit {
          server.bind(self.number)
          serving.watch(server) {
            server.answerAll()
          }
          continuation.resume()
        }
      }
      if nanoseconds > 0 { try? await Task.sleep(nanoseconds: nanoseconds) }
      await lookUp()
      await withCheckedContinuation { continuation in
        asking.submit {
          _ = client.connect(to: server)
          asking.watch(client) {
            guard client.receive().count > 0 else { return }
            asking.end(client)
            continuation.resume()
          }
          client.send()
        }
      }
      await withCheckedContinuation { continuation in
        serving.submit {
          serving.end(server)
          continuation.resume()
        }
      }
      told.signal()
    }
  }

  /// An item that blocks for another, as a program's helpers for blocking calls do.
  private func lookUp() async {
    await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        let found = DispatchSemaphore(value: 0)
        DispatchQueue.global().async {
          var list: UnsafeMutablePointer<addrinfo>?
          if getaddrinfo("127.0.0.1", "80", nil, &list) == 0 { freeaddrinfo(list) }
          found.signal()
        }
        found.wait()
        continuation.resume()
      }
    }
  }
}

/// A thread that waits in `poll` for its own sockets. Ends with the process.
final class ProgramLoop: Sendable {
  static let all = [ProgramLoop(), ProgramLoop()]

  /// Written to make the thread look at `items`.
  private let wakeUp: Ends
  private let items = Shared([@Sendable () -> Void]())
  /// Used by the thread only.
  private let handlers = Shared([Int32: @Sendable () -> Void]())

  init() {
    var pair: [Int32] = [-1, -1]
    precondition(pipe(&pair) == 0)
    wakeUp = Ends(pair)
    startThread { [self] in run() }
  }

  func submit(_ item: @escaping @Sendable () -> Void) {
    items.change { $0.append(item) }
    wakeUp.send()
  }

  /// Calls `handler` while there is something to read. Call on the thread, as `end`.
  func watch(_ endpoint: Endpoint, _ handler: @escaping @Sendable () -> Void) {
    handlers.change {
      $0[endpoint.descriptor] = {
        endpoint.calls.increment()
        handler()
      }
    }
  }

  func end(_ endpoint: Endpoint) {
    handlers.change { $0[endpoint.descriptor] = nil }
    close(endpoint.descriptor)
  }

  private func run() {
    while true {
      let descriptors = [wakeUp.near] + handlers.value.keys
      var waits = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      guard poll(&waits, nfds_t(waits.count), -1) > 0 else { continue }
      if waits[0].revents != 0 {
        wakeUp.receive(64)
        var due = [@Sendable () -> Void]()
        items.change { swap(&$0, &due) }
        for item in due { item() }
      }
      for ready in waits.dropFirst() where ready.revents != 0 { handlers.value[ready.fd]?() }
    }
  }
}

/// Starts a thread that no pool knows.
func startThread(_ body: @escaping @Sendable () -> Void) {
  final class Body {
    let call: @Sendable () -> Void

    init(_ call: @escaping @Sendable () -> Void) { self.call = call }
  }
  var thread = pthread_t()
  let failure = pthread_create(
    &thread, nil,
    { argument in
      // SAFETY: the reference that the creating thread has passed on, taken once.
      Unmanaged<Body>.fromOpaque(argument!).takeRetainedValue().call()
      return nil
    }, Unmanaged.passRetained(Body(body)).toOpaque())
  precondition(failure == 0)
  pthread_detach(thread)
}

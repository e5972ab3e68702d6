// Clients and servers on the loopback, made, told and ended again and again: every step may meet the engine at another
// moment. `BootstrapTests` has the kinds of bootstraps. One that does not end is examined before anything is touched: a
// datagram that lies in its socket while the handler has not run is a lost wake-up, an empty socket is not.

import Glibc

#if CONCOURSE
  import ConcourseEvents
#else
  import Dispatch
#endif

/// A socket on the loopback that does not block.
final class Endpoint: Sendable {
  let name: String
  let descriptor: Int32
  /// How often its handler was called, and what it read.
  let calls = Shared(0)
  let received = Shared(0)

  init(_ name: String, _ descriptor: Int32) {
    (self.name, self.descriptor) = (name, descriptor)
  }

  convenience init(_ name: String, streams: Bool) {
    let type = Int32((streams ? SOCK_STREAM : SOCK_DGRAM).rawValue) | Int32(SOCK_NONBLOCK.rawValue)
    self.init(name, socket(AF_INET, type, 0))
  }

  /// Binds it to a port that the kernel chooses, on an address that depends on `number`: an address has 28,000 ports,
  /// and a connection that has ended keeps its own for a minute.
  func bind(_ number: Int) {
    withAddress(Self.loopback(UInt32(2 + number % 65_000))) {
      precondition(Glibc.bind(descriptor, $0, $1) == 0)
    }
  }

  func connect(to other: Endpoint) -> Int32 {
    withAddress(other.address) { Glibc.connect(descriptor, $0, $1) == 0 ? 0 : errno }
  }

  func accept() -> Endpoint? {
    let accepted = Glibc.accept(descriptor, nil, nil)
    guard accepted >= 0 else { return nil }
    _ = fcntl(accepted, F_SETFL, O_RDWR | O_NONBLOCK)
    return Endpoint("connection", accepted)
  }

  var address: sockaddr_in {
    var own = Self.loopback(1)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutableBytes(of: &own) {
      _ = getsockname(descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), &length)
    }
    return own
  }

  /// - Returns: 0 or the errno.
  @discardableResult
  func send(to peer: sockaddr_in? = nil) -> Int32 {
    var byte: UInt8 = 42
    let count =
      if let peer {
        withAddress(peer) { sendto(descriptor, &byte, 1, Int32(MSG_NOSIGNAL), $0, $1) }
      } else {
        Glibc.send(descriptor, &byte, 1, Int32(MSG_NOSIGNAL))
      }
    return count == 1 ? 0 : errno
  }

  /// Receives once.
  /// - Returns: the number of bytes, or the errno negated; and the sender of a datagram.
  func receive() -> (count: Int, from: sockaddr_in) {
    var byte: UInt8 = 0
    var from = Self.loopback(1)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let count = withUnsafeMutableBytes(of: &from) {
      let place = $0.baseAddress!.assumingMemoryBound(to: sockaddr.self)
      return recvfrom(descriptor, &byte, 1, 0, place, &length)
    }
    if count > 0 { received.increment() }
    return (count < 0 ? -Int(errno) : count, from)
  }

  /// Answers the datagrams that are there.
  func answerAll() {
    var (count, from) = receive()
    while count > 0 {
      send(to: from)
      (count, from) = receive()
    }
  }

  /// The error of the socket, which reading clears.
  func takeError() -> Int32 {
    var (error, length) = (Int32(0), socklen_t(4))
    getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length)
    return error
  }

  private static func loopback(_ host: UInt32) -> sockaddr_in {
    sockaddr_in(
      sin_family: sa_family_t(AF_INET), sin_port: 0,
      sin_addr: in_addr(s_addr: (0x7f00_0000 | host).bigEndian),
      sin_zero: (0, 0, 0, 0, 0, 0, 0, 0))
  }

  private func withAddress<Result>(
    _ address: sockaddr_in, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) -> Result {
    withUnsafeBytes(of: address) {
      body($0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
    }
  }

  /// What the kernel has for the handler, and what the handler has had.
  var state: String {
    var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    _ = Glibc.poll(&poll, 1, 0)
    var (waiting, byte) = (Int32(-1), UInt8(0))
    _ = ioctl(descriptor, UInt(FIONREAD), &waiting)
    let peeked = recv(descriptor, &byte, 1, Int32(MSG_PEEK))
    // SO_MEMINFO is 55; its ninth number counts the packets that the kernel has dropped at this socket.
    var memory = [UInt32](repeating: 0, count: 9)
    var length = socklen_t(36)
    getsockopt(descriptor, SOL_SOCKET, 55, &memory, &length)
    let state =
      "\(name) (descriptor \(descriptor)): \(calls.value) calls, \(received.value) received, events "
      + "0x\(String(poll.revents, radix: 16)), FIONREAD \(waiting), peek \(peeked), dropped \(memory[8])"
    return poll.revents == 0 ? state : state + "\n    READY, BUT NOT REPORTED, unless a thread is about to"
  }
}

/// One bootstrap: its sockets, its sources, and whether the client has been told.
final class Bootstrap: Sendable {
  /// Chooses the order of the steps, who takes them, and the delays.
  let number: Int
  let told = DispatchSemaphore(value: 0)
  private let closed = DispatchGroup()
  private let endpoints = Shared([Endpoint]())
  private let sources = Shared([DispatchSource]())
  /// Shared by two bootstraps in three.
  private let queue = DispatchQueue(label: "bootstrap")

  init(_ number: Int) { self.number = number }

  func note(_ endpoint: Endpoint) -> Endpoint {
    endpoints.change { $0.append(endpoint) }
    return endpoint
  }

  func endpoint(_ name: String, streams: Bool = false) -> Endpoint { note(Endpoint(name, streams: streams)) }

  /// Makes a source that closes its descriptor when it has been cancelled. It is not active.
  func watch(
    _ endpoint: Endpoint, writing: Bool = false, then: (@Sendable () -> Void)? = nil,
    _ handler: @escaping @Sendable (DispatchSource) -> Void
  ) -> DispatchSource {
    let target = [queue, DispatchQueue(label: "own", target: queue), .global()][number % 3]
    let made: any DispatchSourceProtocol =
      writing
      ? DispatchSource.makeWriteSource(fileDescriptor: endpoint.descriptor, queue: target)
      : DispatchSource.makeReadSource(fileDescriptor: endpoint.descriptor, queue: target)
    let source = made as! DispatchSource
    closed.enter()
    // The cycle ends with the cancellation, which releases the handlers.
    source.setEventHandler {
      endpoint.calls.increment()
      handler(source)
    }
    source.setCancelHandler { [closed] in
      if let then { then() } else { close(endpoint.descriptor) }
      closed.leave()
    }
    return source
  }

  /// Keeps a source to be cancelled when the client has been told.
  func keep(_ source: DispatchSource) -> DispatchSource {
    sources.change { $0.append(source) }
    return source
  }

  /// Takes the steps in an order, by threads and with delays that depend on the number.
  func take(_ steps: [@Sendable () -> Void]) {
    var (left, seed) = (steps, UInt64(number))
    func choice(of count: Int) -> Int {
      seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(seed >> 33) % count
    }
    while !left.isEmpty {
      let step = left.remove(at: choice(of: left.count))
      switch choice(of: 16) {
      case 0..<4: step()
      case 4..<8: DispatchQueue.global().async(execute: step)
      case 8..<12: queue.async(execute: step)
      case 12: queue.asyncAfter(deadline: .now() + .microseconds(choice(of: 3_000)), execute: step)
      default: queue.asyncAfter(deadline: .now() + .microseconds(choice(of: 50)), execute: step)
      }
    }
  }

  /// Waits until the client has been told, and all is closed.
  /// - Returns: nil, or what was seen when that did not come in time.
  func finish(within limit: DispatchTimeInterval) -> String? {
    if told.wait(timeout: .now() + limit) != .success {
      return "the client was not told" + late("\n  told late: ") { told.wait(timeout: $0) }
    }
    for source in sources.value { source.cancel() }
    if closed.wait(timeout: .now() + limit) == .success { return nil }
    return "not all was closed" + late("\n  closed late: ") { closed.wait(timeout: $0) }
  }

  /// Describes a stall, and says whether it ends by itself.
  private func late(_ title: String, _ wait: (DispatchTime) -> DispatchTimeoutResult) -> String {
    let seen = Self.describe(endpoints.value, number)
    if getenv("CONCOURSE_BOOTSTRAPS_HOLD") != nil {
      print(seen)
      while true { pause() }
    }
    return seen + title + (wait(.now() + .seconds(5)) == .success ? "yes" : "no")
  }

  private static func describe(_ endpoints: [Endpoint], _ number: Int) -> String {
    var lines = ["", "  bootstrap \(number) of process \(getpid())"] + endpoints.map { "  " + $0.state }
    lines += text("/proc/net/snmp").split(separator: "\n").filter { $0.hasPrefix("Udp:") }.map { "  \($0)" }
    for thread in names(in: "/proc/self/task") {
      let (name, place) = (text("/proc/self/task/\(thread)/comm"), text("/proc/self/task/\(thread)/wchan"))
      let call = text("/proc/self/task/\(thread)/syscall")
      let state = text("/proc/self/task/\(thread)/stat").split(separator: ")").last?.prefix(2) ?? ""
      lines.append("  thread \(thread) \(name.dropLast(1))\(state) \(place) \(call.prefix(60).dropLast(1))")
    }
    return lines.joined(separator: "\n")
  }

  private static func text(_ path: String) -> String {
    let file = open(path, O_RDONLY)
    defer { if file >= 0 { close(file) } }
    var bytes = [UInt8](repeating: 0, count: 4_096)
    let count = file < 0 ? 0 : read(file, &bytes, bytes.count)
    return String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)
  }

  // MARK: Kinds

  /// A datagram and its answer.
  func datagrams() {
    let (server, client) = (endpoint("server"), endpoint("client"))
    server.bind(number)
    precondition(client.connect(to: server) == 0)
    let serving = keep(
      watch(server) { _ in server.answerAll() })
    let asking = keep(
      watch(client) { [told] _ in
        while client.receive().count > 0 { told.signal() }
      })
    take([{ serving.activate() }, { asking.activate() }, { client.send() }])
  }

  /// Connections: `clients` at once, each of which sends a byte and waits for the answer.
  func streams(clients: Int) {
    let listener = endpoint("listener", streams: true)
    listener.bind(number)
    precondition(listen(listener.descriptor, 128) == 0)
    let accepting = keep(
      watch(listener) { [self] _ in
        while let accepted = listener.accept() { serve(note(accepted)) }
      })
    let answers = Shared(0)
    var steps: [@Sendable () -> Void] = [{ accepting.activate() }]
    for _ in 0..<clients {
      let client = endpoint("client", streams: true)
      let asking = keep(
        watch(client) { [told] _ in
          guard client.receive().count > 0 else { return }
          answers.increment()
          if answers.value == clients { told.signal() }
        })
      let activate: @Sendable () -> Void = { asking.activate() }
      let connecting = watch(client, writing: true, then: activate) { source in
        if client.takeError() == 0 && client.send() == 0 { source.cancel() }
      }
      steps.append {
        _ = client.connect(to: listener)
        connecting.activate()
      }
    }
    take(steps)
  }

  /// Answers each byte of a connection until its peer closes it.
  private func serve(_ connection: Endpoint) {
    watch(connection) { source in
      var count = connection.receive().count
      while count > 0 {
        connection.send()
        count = connection.receive().count
      }
      if count != -Int(EAGAIN) { source.cancel() }
    }.activate()
  }

  /// A peer that sends and is gone, orderly or not, while its connection is being watched.
  func shortVisit() {
    let (listener, client) = (endpoint("listener", streams: true), Endpoint("client", streams: true))
    _ = fcntl(client.descriptor, F_SETFL, O_RDWR)
    listener.bind(number)
    precondition(listen(listener.descriptor, 128) == 0)
    let accepting = keep(
      watch(listener) { [self] _ in
        guard let connection = listener.accept() else { return }
        let source = watch(note(connection)) { [told] source in
          let count = connection.receive().count
          guard count <= 0 && count != -Int(EAGAIN) else { return }
          source.cancel()
          told.signal()
        }
        source.activate()
      })
    take([
      { accepting.activate() },
      { [number] in
        _ = client.connect(to: listener)
        client.send()
        var hard = linger(l_onoff: number % 2 == 0 ? 1 : 0, l_linger: 0)
        setsockopt(client.descriptor, SOL_SOCKET, SO_LINGER, &hard, socklen_t(MemoryLayout<linger>.size))
        close(client.descriptor)
      },
    ])
  }

  /// A port where no one listens: the kernel answers a datagram with an error, and refuses a connection.
  func refusal() {
    let streams = number % 2 == 0
    let (closed, client) = (endpoint("closed", streams: streams), endpoint("client", streams: streams))
    // The port stays taken: a stream's for want of `listen`, a datagram's as it takes only what its own peer sends.
    closed.bind(number)
    if !streams { _ = closed.connect(to: closed) }
    let asking = keep(
      watch(client, writing: streams) { [told] source in
        let error = streams ? client.takeError() : Int32(-client.receive().count)
        guard error == ECONNREFUSED else { return }
        source.cancel()
        told.signal()
      })
    // The first datagram is sent when the client is connected, before or after the source is active.
    let connect: @Sendable () -> Void = {
      _ = client.connect(to: closed)
      if !streams { client.send() }
    }
    if streams {
      connect()
      asking.activate()
    } else {
      take([connect, { asking.activate() }])
    }
    keep(watch(closed) { _ in }).activate()
  }
}

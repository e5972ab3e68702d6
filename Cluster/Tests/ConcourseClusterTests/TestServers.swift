import Glibc
import Synchronization
import Testing

/// Servers of NATS on free ports of loopback, which form a cluster if there are several.
///
/// Each server has a guard, so none outlives this process.
final class TestServers: Sendable {
  private struct Server {
    var process: pid_t
    var guardian: Guardian
  }

  /// Three servers for all tests that end none. They end with the process.
  static let shared = Task { try await TestServers.start(3) }

  /// For ``ClusterQueue``.
  let addresses: [String]
  /// Where the servers tell whether they are well.
  private let monitors: [UInt16]
  private let folder: String
  private let servers: Mutex<[Server?]>

  private init(addresses: [String], monitors: [UInt16], folder: String, count: Int) {
    self.addresses = addresses
    self.monitors = monitors
    self.folder = folder
    servers = Mutex(Array(repeating: nil, count: count))
  }

  deinit { stop() }

  /// - Parameter authorization: A part of the servers' configuration.
  static func start(_ count: Int, authorization: String = "", jetStream: Bool = true) async throws
    -> TestServers
  {
    // Another program may take a port between its choice and the server's start.
    for _ in 1...5 {
      let servers = try make(count, authorization: authorization, jetStream: jetStream)
      for index in 0..<count { try servers.start(index) }
      if try await servers.allAnswer() { return servers }
      servers.stop()
    }
    throw Failed("no servers of NATS can be started")
  }

  private static func make(_ count: Int, authorization: String, jetStream: Bool) throws -> TestServers {
    var template = Array(
      "\(getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp")/cluster-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw Failed("no temporary folder: \(errno)") }
    let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let ports = try freePorts(3 * count)
    let (clients, routes, monitors) = (ports[..<count], ports[count..<2 * count], ports[(2 * count)...])
    for (index, (client, route)) in zip(clients, routes).enumerated() {
      let others = routes.map { "\"nats://127.0.0.1:\($0)\"" }.joined(separator: ", ")
      let configuration = """
        server_name: "\(name(of: index, in: folder))"
        listen: "127.0.0.1:\(client)"
        http: "127.0.0.1:\(monitors[2 * count + index])"
        include "\(index).added"
        \(jetStream ? "jetstream { store_dir: \"\(folder)/\(index)\", max_file: 1GB }" : "")
        \(count > 1 ? "cluster { name: tests, listen: \"127.0.0.1:\(route)\", routes: [\(others)] }" : "")

        """
      for (name, text) in [("conf", configuration), ("added", authorization + "\n")] {
        guard let file = fopen("\(folder)/\(index).\(name)", "w") else {
          throw Failed("no configuration: \(errno)")
        }
        fputs(text, file)
        fclose(file)
      }
    }
    return TestServers(
      addresses: clients.map { "nats://127.0.0.1:\($0)" }, monitors: Array(monitors), folder: folder,
      count: count)
  }

  /// No other server has that name, on whatever port.
  private static func name(of index: Int, in folder: String) -> String {
    "\(folder.split(separator: "/").last!)-\(index)"
  }

  /// Gives a server that does not run a disk of its own, of that size; or changes the size of that disk.
  /// - Returns: False if this process may not do that.
  func limitDisk(of index: Int, to size: String, again: Bool = false) throws -> Bool {
    let options = again ? "remount,size=\(size)" : "size=\(size)"
    let mounter = try spawn([
      "sh", "-c", "mkdir -p \"$1\" && mount -t tmpfs -o \"$2\" tmpfs \"$1\" 2>/dev/null", "disk",
      file("\(index)"), options,
    ])
    var status: Int32 = 0
    waitpid(mounter, &status, 0)
    return status == 0
  }

  /// The path of a file that goes with the servers.
  func file(_ name: String) -> String { "\(folder)/\(name)" }

  private func start(_ index: Int) throws {
    let process = try spawn(["nats-server", "-c", "\(folder)/\(index).conf", "-l", "\(folder)/\(index).log"])
    let guardian = try Guardian(of: process, folder: folder)
    servers.withLock { $0[index] = Server(process: process, guardian: guardian) }
  }

  /// Changes the part of a server's configuration that `start` calls its authorization, for its next start.
  func configure(_ index: Int, _ lines: String) throws {
    let path = "\(folder)/\(index).added"
    guard let file = fopen(path, "w") else { throw Failed("no configuration: \(errno)") }
    fputs(lines + "\n", file)
    fclose(file)
  }

  /// Starts a server that does not run, and waits until it answers.
  func restart(_ index: Int) async throws {
    // Another program may use its port for a while.
    for _ in 1...50 {
      try start(index)
      if try await answers(index) { return }
      kill(index)
      try await Task.sleep(for: .milliseconds(100))
    }
    throw Failed("server \(index) cannot be started again")
  }

  /// Waits until the server has all that the others have, unless that does not matter any more.
  func untilCurrent(_ index: Int, unless isOver: () -> Bool = { false }) async throws {
    let request = "GET /healthz HTTP/1.0\r\n\r\n"
    while !isOver(), !Self.greeting(at: monitors[index], to: request).contains("\"ok\"") {
      try await Task.sleep(for: .milliseconds(50))
    }
  }

  /// Sends a signal that does not end the server.
  func signal(_ index: Int, _ signal: Int32) {
    servers.withLock { servers in _ = servers[index].map { Glibc.kill($0.process, signal) } }
  }

  /// Kills a server as a crash of its machine's system would, except that its writes reach the disk.
  func kill(_ index: Int) {
    guard
      let server = servers.withLock({ servers in
        defer { servers[index] = nil }
        return servers[index]
      })
    else { return }
    // The guard first: it must not find another process of the same number.
    server.guardian.end()
    Glibc.kill(server.process, SIGKILL)
    waitpid(server.process, nil, 0)
  }

  func stop() {
    for index in addresses.indices { kill(index) }
    if let remover = try? spawn(["sh", "-c", Guardian.removal, "remover", folder]) {
      waitpid(remover, nil, 0)
    }
  }

  private func allAnswer() async throws -> Bool {
    for index in addresses.indices { if try await !answers(index) { return false } }
    // A server answers before it finds that another program has its port for routes, and ends.
    for index in addresses.indices where addresses.count > 1 {
      while routes(of: index) < addresses.count - 1 {
        if addresses.indices.contains(where: hasEnded) { return false }
        try await Task.sleep(for: .milliseconds(20))
      }
    }
    return true
  }

  /// How many connections the server has to others. Later versions have several to each.
  private func routes(of index: Int) -> Int {
    let text = Self.greeting(at: monitors[index], to: "GET /routez HTTP/1.0\r\n\r\n")
    let name = "\"num_routes\":"
    guard let start = text.firstRange(of: name)?.upperBound else { return 0 }
    return Int(text[start...].drop { $0 == " " }.prefix { $0.isNumber }) ?? 0
  }

  /// Waits until the server answers.
  /// - Returns: False if it has ended.
  private func answers(_ index: Int) async throws -> Bool {
    let port = UInt16(addresses[index].split(separator: ":").last!)!
    while !Self.greeting(at: port).contains("\"\(Self.name(of: index, in: folder))\"") {
      if hasEnded(index) { return false }
      try await Task.sleep(for: .milliseconds(20))
    }
    return true
  }

  private func hasEnded(_ index: Int) -> Bool {
    let process = servers.withLock { $0[index]!.process }
    var end = siginfo_t()
    // It stays a child, so that `kill` does not find another process of the same number.
    waitid(P_PID, id_t(process), &end, WEXITED | WNOHANG | WNOWAIT)
    return end.si_signo == SIGCHLD
  }

  /// What the program on the port says of itself, or answers to a request.
  private static func greeting(at port: UInt16, to request: String = "") -> String {
    let socket = connection(to: port)
    defer { close(socket) }
    var patience = timeval(tv_sec: 1, tv_usec: 0)
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    if !request.isEmpty { send(socket, request, request.utf8.count, Int32(MSG_NOSIGNAL)) }
    var bytes = [UInt8](repeating: 0, count: 4_096)
    let count = recv(socket, &bytes, bytes.count, 0)
    return String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)
  }

  /// A socket that is connected to that port of loopback, or that has failed to connect.
  static func connection(to port: UInt16) -> Int32 {
    let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    _ = withAddress(port, { connect(socket, $0, $1) })
    return socket
  }

  /// A socket that listens on a free port of loopback, and the port.
  static func listener() throws -> (Int32, UInt16) {
    let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let port = try bind(socket)
    guard listen(socket, 16) == 0 else { throw Failed("cannot listen: \(errno)") }
    return (socket, port)
  }

  /// Binds the socket to a free port of loopback.
  private static func bind(_ socket: Int32) throws -> UInt16 {
    var address = sockaddr_in()
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    guard withAddress(0, { Glibc.bind(socket, $0, $1) }) == 0,
      withUnsafeMutablePointer(
        to: &address,
        { pointer in
          // SAFETY: the family says that it is an Internet address.
          pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &size) }
        }) == 0
    else { throw Failed("no free port: \(errno)") }
    return UInt16(bigEndian: address.sin_port)
  }

  /// Ports that no program listens on now, all different.
  private static func freePorts(_ count: Int) throws -> [UInt16] {
    var sockets: [Int32] = []
    defer { for socket in sockets { close(socket) } }
    return try (0..<count).map { _ in
      let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
      sockets.append(socket)
      return try bind(socket)
    }
  }

  private static func withAddress<Result>(
    _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  )
    -> Result
  {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafePointer(to: &address) { pointer in
      // SAFETY: the family says that it is an Internet address.
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }
}

/// A shell that waits for the end of a connection to this process. If this process ends in any way, the connection
/// does, and the guard kills another process and removes a folder.
struct Guardian: Sendable {
  private let process: pid_t
  private let connection: Int32

  /// Removes the folder that is the script's argument. What is mounted in it goes first.
  static let removal = "[ -n \"$1\" ] || exit 0; umount -q -l \"$1\"/* 2>/dev/null; rm -rf \"$1\""

  init(of guarded: pid_t, folder: String = "") throws {
    // Other children must not keep the connection open, so it is never inherited but as standard input.
    var ends: [Int32] = [0, 0]
    guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
      throw Failed("no pair of sockets: \(errno)")
    }
    defer { close(ends[0]) }
    connection = ends[1]
    process = try spawn(
      ["sh", "-c", "read -r line; kill -9 \"$1\"; shift; \(Self.removal)", "guard", "\(guarded)", folder],
      input: ends[0])
  }

  /// Ends the guard, and not what it guards.
  func end() {
    kill(process, SIGKILL)
    waitpid(process, nil, 0)
    close(connection)
  }
}

/// Starts a program, which inherits standard output and error only.
func spawn(_ arguments: [String], input: Int32? = nil) throws -> pid_t {
  var actions = posix_spawn_file_actions_t()
  posix_spawn_file_actions_init(&actions)
  defer { posix_spawn_file_actions_destroy(&actions) }
  if let input {
    posix_spawn_file_actions_adddup2(&actions, input, 0)
  } else {
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
  }
  var pointers = arguments.map { strdup($0) } + [nil]
  defer { for pointer in pointers { free(pointer) } }
  var process: pid_t = 0
  let error = posix_spawnp(&process, arguments[0], &actions, nil, &pointers, environ)
  guard error == 0 else {
    throw Failed("\(arguments[0]) cannot be started: \(String(cString: strerror(error)))")
  }
  return process
}

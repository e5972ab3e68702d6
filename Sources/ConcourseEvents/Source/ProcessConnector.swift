internal import CConcourse
internal import Glibc

/// Receives the events of a process.
protocol ProcessListener: AnyObject, Sendable {
  /// Called on a polling thread. May be called once more after `remove`.
  func processChanged(_ events: DispatchSource.ProcessEvent)
}

/// The kernel's announcements of forks and execs: the only way in which Linux reports them.
///
/// They cover all processes of the machine, and arrive on one socket that is open while sources need it. The kernel
/// grants it to privileged processes in the initial process namespace and, since 6.6, to some others. Only a request
/// tells whether the kernel grants it.
final class ProcessConnector {
  static let shared = ProcessConnector()

  private let lock = Lock(.processConnector)
  // GUARDED BY `lock`.
  private var users = 0
  private var socket: Int32 = -1
  private var watch: FileWatch?
  private var listeners: [pid_t: [any ProcessListener]] = [:]

  /// At most this many announcements are read before other descriptors get their turn.
  private static let batch = 256
  /// At most this many announcements are read before the kernel's answer; more than the socket holds.
  private static let maxBeforeAnswer = 16_384

  /// Whether the kernel grants announcements to this process now.
  static var isPermitted: Bool {
    guard shared.acquire() == 0 else { return false }
    shared.release()
    return true
  }

  /// Keeps the socket open until `release`. The socket is not watched before the first `add`.
  /// - Returns: 0, or the errno of the refusal.
  func acquire() -> Int32 {
    lock.lock()
    defer { lock.unlock() }
    if users == 0 {
      switch Self.open() {
      case .success(let made): socket = made
      case .failure(let refusal): return refusal.errno
      }
    }
    users += 1
    return 0
  }

  /// Balances one `acquire`. The last release closes the socket.
  func release() {
    let (watch, socket) = lock.withLock { () -> (FileWatch?, Int32) in
      users -= 1
      guard users == 0 else { return (nil, -1) }
      defer { (self.watch, self.socket) = (nil, -1) }
      return (self.watch, self.socket)
    }
    watch?.remove()
    if socket >= 0 { Self.close(socket) }
  }

  /// Starts to report a process's events to `listener`. Call between `acquire` and `release`.
  func add(_ listener: any ProcessListener, for identifier: pid_t) {
    let newWatch = lock.withLock { () -> FileWatch? in
      listeners[identifier, default: []].append(listener)
      guard watch == nil else { return nil }
      watch = FileWatch(descriptor: socket, interest: .read, owner: self)
      return watch
    }
    _ = newWatch?.install()
  }

  func remove(_ listener: any ProcessListener, for identifier: pid_t) {
    lock.withLock {
      listeners[identifier]?.removeAll { $0 === listener }
      if listeners[identifier]?.isEmpty == true { listeners[identifier] = nil }
    }
  }

  // MARK: The socket

  private struct Refusal: Error {
    let errno: Int32
  }

  /// Opens a socket on which the kernel has agreed to announce.
  private static func open() -> Result<Int32, Refusal> {
    let socket = Int32(System.createConnector())
    guard socket >= 0 else { return .failure(Refusal(errno: -socket)) }
    if let refusal = listen(on: socket) {
      close(socket)
      return .failure(refusal)
    }
    return .success(socket)
  }

  private static func listen(on socket: Int32) -> Refusal? {
    let bound = System.bindConnector(socket)
    guard bound >= 0 else { return Refusal(errno: Int32(-bound)) }
    let asked = System.listen(socket, filtered: false)
    guard asked >= 0 else { return Refusal(errno: Int32(-asked)) }
    // The kernel answers before the request returns, but announcements may precede the answer. Outside the initial
    // process namespace it does not answer.
    for _ in 0..<maxBeforeAnswer {
      var news = concourse_process_news()
      let found = System.read(socket, &news)
      if found == -Int(ENOBUFS) { continue }
      guard found >= 0 else { return Refusal(errno: EPERM) }
      guard found == 1, news.is_answer else { continue }
      if news.answer != 0 { return Refusal(errno: Int32(bitPattern: news.answer)) }
      // Best effort: older kernels ignore this filter, send no answer, and go on announcing everything.
      _ = System.listen(socket, filtered: true)
      return nil
    }
    return Refusal(errno: EBUSY)
  }

  private static func close(_ socket: Int32) { _ = System.close(socket) }
}

// MARK: - Announcements

extension ProcessConnector: FileWatchOwner {
  func fileIsReady(_ watch: FileWatch) {
    for _ in 0..<Self.batch {
      guard let (events, recipients) = takeNext(from: watch) else { break }
      for listener in recipients { listener.processChanged(events) }
    }
    watch.rearm()
  }

  /// Reads the next announcement, and finds its recipients, if any; nil when there are no more announcements.
  private func takeNext(
    from watch: FileWatch
  ) -> (events: DispatchSource.ProcessEvent, recipients: [any ProcessListener])? {
    lock.lock()
    defer { lock.unlock() }
    // After `release` has closed the socket, its number may belong to a client's descriptor.
    guard watch === self.watch else { return nil }
    var news = concourse_process_news()
    let found = System.read(socket, &news)
    // The kernel dropped some announcements: notify all listeners.
    if found == -Int(ENOBUFS) { return ([.fork, .exec], listeners.values.flatMap { $0 }) }
    guard found >= 0 else { return nil }
    var events = DispatchSource.ProcessEvent()
    if news.has_forked { events.insert(.fork) }
    if news.has_called_exec { events.insert(.exec) }
    return (events, events.isEmpty ? [] : listeners[news.identifier] ?? [])
  }
}

// SAFETY: everything is GUARDED BY `lock`.
extension ProcessConnector: @unchecked Sendable {}

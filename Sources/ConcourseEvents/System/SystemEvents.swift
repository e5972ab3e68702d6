internal import CConcourse
internal import Glibc

// The system calls of the event loop and of sources, one function each. A result is the kernel's: a value, or the errno
// negated.

extension System {
  // MARK: epoll and timers

  static func createPoller() -> Int { call(.epollCreate) { Int(concourse_epoll_create()) } }

  static func control(
    _ poller: Int32, _ change: Int32, _ descriptor: Int32, _ interest: UInt32, token: UInt64
  ) -> Int {
    call(.epollControl) { Int(concourse_epoll_control(poller, change, descriptor, interest, token)) }
  }

  static func createTimer(isWall: Bool) -> Int {
    call(.timerCreate) { Int(concourse_timerfd_create(isWall)) }
  }

  /// Sets a timer to an absolute time; 0 stops it.
  static func set(timer: Int32, isWall: Bool, to nanoseconds: UInt64) -> Int {
    call(.timerSet) { -Int(concourse_timerfd_arm(timer, isWall, nanoseconds)) }
  }

  // MARK: Descriptors

  /// What a descriptor is ready for now, of `interest` and of errors.
  static func readiness(of descriptor: Int32, _ interest: UInt32) -> Int {
    call(.poll) { Int(concourse_poll_now(descriptor, interest)) }
  }

  static func readableBytes(of descriptor: Int32) -> Int {
    call(.deviceControl) { concourse_readable_bytes(descriptor) }
  }

  /// Whether the next byte of a socket is an urgent one. `readableBytes` counts only the bytes before it.
  static func isAtMark(_ socket: Int32) -> Bool {
    call(.deviceControl) { concourse_is_at_mark(socket) ? 1 : 0 } == 1
  }

  /// The type of a socket, such as `SOCK_STREAM`; `-ENOTSOCK` for other descriptors.
  static func socketType(of descriptor: Int32) -> Int {
    var type: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    let failure = call(.control) { result(getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size)) }
    return failure < 0 ? failure : Int(type)
  }

  /// Opens a file with a descriptor above those of standard input and output.
  static func openAboveStandard(_ path: String, _ flags: Int32) -> Int {
    call(.open) { result(concourse_above_standard(Glibc.open(path, flags))) }
  }

  static func read(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    call(.read) { result(Glibc.read(descriptor, buffer.baseAddress, buffer.count)) }
  }

  static func write(_ descriptor: Int32, _ bytes: UnsafeRawPointer, _ count: Int) -> Int {
    call(.write) { result(Glibc.write(descriptor, bytes, count)) }
  }

  static func linkTarget(of path: String, into buffer: UnsafeMutableBufferPointer<CChar>) -> Int {
    call(.status) { result(readlink(path, buffer.baseAddress!, buffer.count)) }
  }

  // MARK: inotify

  static func createInotify() -> Int {
    call(.inotifyCreate) {
      result(concourse_above_standard(inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))))
    }
  }

  static func addWatch(_ inotify: Int32, _ path: String, _ mask: Int32) -> Int {
    call(.inotifyAdd) { result(inotify_add_watch(inotify, path, UInt32(mask))) }
  }

  static func removeWatch(_ inotify: Int32, _ number: Int32) -> Int {
    call(.inotifyRemove) { result(inotify_rm_watch(inotify, number)) }
  }

  // MARK: Processes and signals

  static func openProcess(_ identifier: pid_t) -> Int {
    call(.processOpen) { Int(concourse_process_open(identifier)) }
  }

  /// Whether a child can be reaped: see `concourse_process_look`.
  static func lookAtProcess(descriptor: Int32, _ identifier: pid_t) -> Int {
    call(.processWait) { Int(concourse_process_look(descriptor, identifier)) }
  }

  static func testProcess(_ identifier: pid_t) -> Int { call(.processWait) { result(kill(identifier, 0)) } }

  /// Lets the handler count a signal.
  static func countSignal(_ signal: Int32) -> Int {
    call(.signalAction) { Int(concourse_signal_count(signal)) }
  }

  // MARK: The process connector

  static func createConnector() -> Int { call(.socket) { Int(concourse_connector_socket()) } }

  static func bindConnector(_ socket: Int32) -> Int { call(.bind) { Int(concourse_connector_bind(socket)) } }

  static func listen(_ socket: Int32, filtered: Bool) -> Int {
    call(.write) { Int(concourse_connector_listen(socket, filtered)) }
  }

  static func read(_ socket: Int32, _ news: inout concourse_process_news) -> Int {
    call(.read) { Int(concourse_connector_read(socket, &news)) }
  }
}

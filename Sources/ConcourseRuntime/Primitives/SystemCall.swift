internal import Glibc

/// The system calls of the event road that can be refused for want of something or by a sandbox, and the making of
/// threads, by name, so that tests can refuse them (SystemScript.swift).
enum SystemCall: UInt8, CaseIterable {
  case epollCreate, epollControl, epollWait, poll
  case timerCreate, timerSet, eventCreate
  case inotifyCreate, inotifyAdd, inotifyRemove
  case processOpen, processWait
  case signalAction
  case open, close, read, write, seek, status, control, deviceControl
  case ringSetup, ringEnter, ringRegister
  case map
  case socket, bind
  case thread
}

/// The one way through which the event road enters the kernel.
enum System {
  /// Makes a call, again if a signal interrupted it.
  /// - Parameter body: the call; returns its result, or the errno negated.
  /// - Returns: the result, or the errno negated; never `-EINTR`.
  @inline(__always)
  static func call(_ which: SystemCall, _ body: () -> Int) -> Int {
    while true {
      let result = SystemScript.isActive ? SystemScript.run(which, body) : body()
      if result != -Int(EINTR) { return result }
    }
  }

  /// The result of a call of the C library as `call` wants it.
  @inline(__always)
  static func result(_ value: Int) -> Int { value >= 0 ? value : -Int(errno) }

  /// Likewise, for calls that return an `int`.
  @inline(__always)
  static func result(_ value: Int32) -> Int { value >= 0 ? Int(value) : -Int(errno) }
}

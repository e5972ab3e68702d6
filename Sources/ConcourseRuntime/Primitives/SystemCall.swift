internal import Glibc

/// Names for thread creation and for the events road's system calls that can fail for want of resources or in a
/// sandbox, so that tests can refuse them (SystemScript.swift).
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

/// The events road enters the kernel only through this type.
enum System {
  /// Makes a call, and repeats it if a signal interrupted it.
  /// - Parameter body: the call; returns its result, or the negated errno.
  /// - Returns: the result, or the negated errno; never `-EINTR`.
  @inline(__always)
  static func call(_ which: SystemCall, _ body: () -> Int) -> Int {
    while true {
      let result = SystemScript.isActive ? SystemScript.run(which, body) : body()
      if result != -Int(EINTR) { return result }
    }
  }

  /// Converts the result of a C library call for `call`.
  @inline(__always)
  static func result(_ value: Int) -> Int { value >= 0 ? value : -Int(errno) }

  /// Likewise, for calls that return an `int`.
  @inline(__always)
  static func result(_ value: Int32) -> Int { value >= 0 ? Int(value) : -Int(errno) }
}

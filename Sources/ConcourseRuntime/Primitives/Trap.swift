internal import CConcourse
internal import Glibc

/// Ends the process for a client bug, a runtime bug, or want of memory.
///
/// Swift drops precondition texts in release builds. These reach standard error in every build, as one text in one
/// `write`; then the process ends with SIGILL, as with the incumbent.
package enum Trap {
  /// The program broke the contract.
  /// - Parameters:
  ///   - code: The number of the message's entry in the article on trap messages, `TrapMessages.md`. Never reused.
  ///   - message: What the program did, to which object, why that is wrong and what was observed.
  ///   - details: Further lines.
  @inline(never)
  package static func clientBug(_ code: Int, _ message: String, details: [String] = []) -> Never {
    let line = "Concourse: BUG IN CLIENT OF DISPATCH: \(message) [C\(code)]\n"
    die(details.reduce(line) { "\($0)Concourse:   \($1)\n" })
  }

  /// The runtime broke its own invariant.
  @inline(never)
  package static func runtimeBug(_ message: String) -> Never {
    die("Concourse: BUG IN CONCOURSE: \(message)\n")
  }

  /// The system has no memory left for something that the caller cannot do without.
  @inline(never)
  package static func outOfMemory(_ message: String) -> Never {
    die("Concourse: out of memory: \(message)\n")
  }

  /// Prints one line on standard error for a fault that the runtime survives, such as a refused thread.
  package static func warn(_ message: String) {
    write("Concourse: \(message)\n")
  }

  /// As `warn`, unless standard error is a full pipe, which would block the thread.
  /// - Returns: false if nothing was printed.
  package static func tryToWarn(_ message: String) -> Bool {
    guard mayWrite(STDERR_FILENO) else { return false }
    warn(message)
    return true
  }

  /// Whether a line can be written without waiting for a reader. Internal for tests.
  static func mayWrite(_ descriptor: Int32) -> Bool {
    var pipe = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    return descriptor < 0 || poll(&pipe, 1, 0) != 0
  }

  private static func die(_ line: String) -> Never {
    write(line)
    concourse_trap()
  }

  private static func write(_ line: String) {
    var line = line
    line.withUTF8 { bytes in
      var rest = UnsafeRawBufferPointer(bytes)
      while !rest.isEmpty {
        let written = Glibc.write(STDERR_FILENO, rest.baseAddress, rest.count)
        if written < 0 {
          if errno == EINTR { continue }
          return  // Standard error is closed or full.
        }
        rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(written))
      }
    }
  }
}

/// `Trap` for the C interface, which is a module of its own.
package enum ClientBug {
  package static func trap(_ code: Int, _ message: String) -> Never { Trap.clientBug(code, message) }

  package static func outOfMemory(_ message: String) -> Never { Trap.outOfMemory(message) }
}

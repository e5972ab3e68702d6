internal import CConcourse
internal import Glibc

/// Ends the process for a client bug, a runtime bug, or want of memory.
///
/// Swift drops precondition texts in release builds. These reach standard error in every build, in one `write`; then the
/// process ends with the signal of the processor's trap, as with the incumbent: SIGILL, on arm64 SIGTRAP.
package enum Trap {
  /// The program broke the contract.
  /// - Parameters:
  ///   - code: The number of the message's entry in the article on trap messages, `TrapMessages.md`. Never reused.
  ///   - message: What the program did, to which object, why that is wrong and what was observed.
  ///   - details: Makes further lines when the first has been written: that may take long, or end the process otherwise.
  @inline(never)
  package static func clientBug(_ code: Int, _ message: String, details: () -> [String] = { [] }) -> Never {
    write(line("BUG IN CLIENT OF DISPATCH: \(message) [C\(code)]"))
    die(details().reduce("") { $0 + line("  \($1)") })
  }

  /// The runtime broke its own invariant.
  @inline(never)
  package static func runtimeBug(_ message: String) -> Never {
    die(line("BUG IN CONCOURSE: \(message)"))
  }

  /// The system has no memory left for something that the caller cannot do without.
  @inline(never)
  package static func outOfMemory(_ message: String) -> Never {
    die(line("out of memory: \(message)"))
  }

  /// Prints one line on standard error for a fault that the runtime survives, such as a refused thread.
  package static func warn(_ message: String) {
    write(line(message))
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

  /// One line, whatever the labels in it contain: control characters are escaped.
  private static func line(_ text: String) -> String {
    let scalars = text.unicodeScalars.map {
      $0.properties.generalCategory == .control ? $0.escaped(asASCII: true) : String($0)
    }
    return "Concourse: \(scalars.joined())\n"
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

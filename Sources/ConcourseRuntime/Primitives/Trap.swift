internal import CConcourse
internal import Glibc

/// The voices in which the runtime dies: the client's bug, our own, and want of memory.
///
/// Swift drops precondition texts in release builds; these reach standard error in every build, as
/// one line in one `write`, and then the process ends with SIGILL as the incumbent's does.
enum Trap {
  /// The program broke the contract. `message` says what was done, to which object, why that is
  /// wrong and what was observed.
  @inline(never)
  static func clientBug(_ message: String) -> Never {
    die("Concourse: BUG IN CLIENT OF DISPATCH: \(message)\n")
  }

  /// The runtime broke its own invariant.
  @inline(never)
  static func runtimeBug(_ message: String) -> Never {
    die("Concourse: BUG IN CONCOURSE: \(message)\n")
  }

  /// The system has no memory left for what a caller cannot do without, as when an allocation fails.
  @inline(never)
  static func outOfMemory(_ message: String) -> Never {
    die("Concourse: out of memory: \(message)\n")
  }

  /// One line on standard error for a fault that work survives (no threads left, say).
  static func warn(_ message: String) {
    write("Concourse: \(message)\n")
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
          return  // standard error is closed or full: nowhere left to say it
        }
        rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(written))
      }
    }
  }
}

/// The same voices for the C interface, which is a module of its own.
package enum ClientBug {
  /// The program broke the contract.
  package static func trap(_ message: String) -> Never { Trap.clientBug(message) }

  /// There is no memory left.
  package static func outOfMemory(_ message: String) -> Never { Trap.outOfMemory(message) }
}

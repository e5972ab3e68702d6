// Shared by the tests of traps. Each trap happens in its own process (an exit test), which ends with SIGILL after one
// line on standard error.

import Glibc
import Testing

@testable import ConcourseRuntime

/// Exit tests, one at a time: each starts a process.
@Suite("Crash", .serialized)
enum Crash {}

extension Optional where Wrapped == ExitTest.Result {
  /// Expects that the process printed only one line, about a client bug, that contains `text` and ends with a code.
  /// - Parameter times: the number of such lines that it and its children print instead.
  func says(_ text: String, times: Int = 1, sourceLocation: SourceLocation = #_sourceLocation) {
    let spoken = String(decoding: self?.standardErrorContent ?? [], as: UTF8.self)
    let lines = spoken.split(separator: "\n")
    #expect(lines.count == times, "\(spoken)", sourceLocation: sourceLocation)
    for line in lines {
      #expect(line.hasPrefix("Concourse: BUG IN CLIENT OF DISPATCH: "), sourceLocation: sourceLocation)
      #expect(line.contains(text), "\(line)", sourceLocation: sourceLocation)
      #expect(line.contains(#/ \[C\d+\]$/#), "\(line)", sourceLocation: sourceLocation)
    }
  }
}

/// Blocks the calling thread while another one should end the process. Returns if it does not, and then the test
/// fails. Under a sanitizer, beside other processes, some tests need half a minute.
func awaitDeath() {
  _ = DispatchSemaphore(value: 0).wait(timeout: .now() + 120)
}

/// The sanitizer that the tests run under, as Scripts/sanitize names it.
enum Sanitizer {
  static let name = Process.environment("CONCOURSE_SANITIZER")
  static var isOn: Bool { name != nil }
  static var isThread: Bool { name == "thread" }

  /// `size`, or a tenth of it if every step takes ten times as long.
  static func shrunk(_ size: Int) -> Int { isOn ? max(1, size / 10) : size }
}

/// The main thread of an exit test's process.
///
/// Swift Testing leaves it asleep and runs tests elsewhere. A signal handler borrows it: the thread waits in
/// `sigsuspend` and holds no lock, so the handler may do anything that a main program does, and never return.
enum MainThreadLoan {
  // SAFETY: written once, before the signal that makes the handler read it.
  private nonisolated(unsafe) static var body: (@Sendable () -> Void)?

  /// Whether it can be borrowed: the thread sanitizer forbids a signal handler to allocate.
  static var isPossible: Bool { !Sanitizer.isThread }

  /// Runs `body` on the main thread, and returns without waiting for it. Once in a process.
  static func run(_ body: @escaping @Sendable () -> Void) {
    self.body = body
    // On a busy machine it may not be asleep yet.
    _ = awaitValue { SystemThread.isAsleep(UInt32(getpid())) ?? true }
    signal(SIGUSR1) { _ in MainThreadLoan.body!() }
    kill(getpid(), SIGUSR1)
  }
}

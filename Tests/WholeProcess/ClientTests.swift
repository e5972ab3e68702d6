import Foundation
import Testing

/// A program that links Concourse, run as users run it.
@Suite("Whole process")
struct ClientTests {
  /// The client's output, by step.
  private static func run() throws -> (status: Int32, said: [String: String]) {
    let process = Process()
    process.executableURL = Bundle.main.bundleURL.appendingPathComponent("whole-process-client")
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    var said: [String: String] = [:]
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: ": ", maxSplits: 1)
      if parts.count == 2 { said[String(parts[0])] = String(parts[1]) }
    }
    return (process.terminationStatus, said)
  }

  @Test("S41 Foundation, actors, tasks, timers and our queues work together on one runtime")
  func client() throws {
    let (status, said) = try Self.run()
    #expect(status == 0)
    #expect(
      said == [
        "dispatch_async_f": "whole-process-client", "dispatch_io_create": "whole-process-client",
        "operations": "499500", "child": "7", "child of com.apple.root.user-initiated-qos": "true",
        "child of com.apple.root.default-qos": "true", "child of com.apple.root.background-qos": "true",
        "native queue": "5050",
        "task group": "499500", "actor": "100",
        "sleep": "true", "cancelled sleep": "ended", "main actor on main thread": "true",
        "timer ticks": "true", "main queue in run loop": "true", "semaphore": "signalled", "end": "reached",
      ])
  }
}

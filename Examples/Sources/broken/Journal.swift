import Concourse

/// A journal guarded by a semaphore of one permit, as if that were a lock. One function that has the permit calls another
/// one that takes it, too. That task waits for itself, and all others wait with their threads.
enum Journal {
  private static let permit = DispatchSemaphore(value: 1)
  nonisolated(unsafe) private static var lines: [String] = []  // guarded by `permit`

  static func start() {
    for number in 1...40 { Task(name: "writer \(number)") { write("line \(number)") } }
  }

  private static func write(_ line: String) {
    permit.wait()
    if lines.isEmpty { append("begin") }
    lines.append(line)
    permit.signal()
  }

  private static func append(_ line: String) {
    permit.wait()
    lines.append(line)
    permit.signal()
  }
}

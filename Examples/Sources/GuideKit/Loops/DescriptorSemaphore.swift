import Concourse
import Glibc

extension Listing {
  static let descriptorSemaphore = Listing("semaphore", "no more open files than half of what is allowed") {
    print in
    let limit = Int(getdtablesize() / 2)
    let report = openOften(readableFile, times: 200, limit: limit)
    print("opened \(report.opened) times, never more than \(limit) at once")
  }
}

/// A file that is there on nearly every system, or else one that the kernel has.
package var readableFile: String {
  access("/etc/services", R_OK) == 0 ? "/etc/services" : "/proc/self/status"
}

/// What `openOften` has seen.
package struct OpenReport: Sendable {
  /// How often the file could be opened.
  package var opened = 0
  /// How many descriptors were open at the same time at most.
  package var mostAtOnce = 0
  fileprivate var open = 0
}

/// Opens, reads and closes a file many times, on as many threads as there are.
/// - Parameter limit: how many may be open at the same time.
package func openOften(_ path: String, times: Int, limit: Int) -> OpenReport {
  let report = Guarded(OpenReport())
  let descriptors = DispatchSemaphore(value: limit)
  DispatchQueue.concurrentPerform(iterations: times) { _ in
    descriptors.wait()
    // Counted before the file is opened and until it has been closed, so the count is never too small.
    report.use {
      $0.open += 1
      $0.mostAtOnce = max($0.mostAtOnce, $0.open)
    }
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    if descriptor >= 0 {
      var byte: UInt8 = 0
      let count = read(descriptor, &byte, 1)
      close(descriptor)
      report.use { $0.opened += count >= 0 ? 1 : 0 }
    }
    report.use { $0.open -= 1 }
    descriptors.signal()
  }
  return report.use { $0 }
}

import Glibc

/// Why something was left out.
package enum Reason: Sendable, Equatable {
  case system(errno: Int32)
  case changed
  case shorterThanItsSize

  package var text: String {
    switch self {
    case .system(let code): String(cString: strerror(code))
    case .changed: "changed while it was being read"
    case .shorterThanItsSize: "ended before its size"
    }
  }
}

/// A file or directory that could not be looked at, and so is missing from the results.
package struct Skipped: Sendable {
  package let path: Bytes
  package let reason: Reason
}

/// What has been found out so far. A serial queue is the lock: it takes results from all workers in the
/// order in which they come, and nobody waits for anybody to hand them in.
// SAFETY: the mutable state below is GUARDED BY `queue`, a serial queue; nothing reaches it elsewhere.
final class Findings: @unchecked Sendable {
  private let queue = DispatchQueue(label: "dupes.findings")
  private var sets: [[FileID]] = []
  private var skipped: [Skipped] = []

  func add(_ newSets: [[FileID]]) {
    queue.async { self.sets += newSets }
  }

  func skip(_ path: Bytes, _ reason: Reason) {
    queue.async { self.skipped.append(Skipped(path: path, reason: reason)) }
  }

  /// Everything handed in before this call.
  var contents: (sets: [[FileID]], skipped: [Skipped]) {
    queue.sync { (sets, skipped) }
  }
}

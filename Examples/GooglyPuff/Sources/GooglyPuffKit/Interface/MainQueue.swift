import Concourse
import Glibc

/// The main queue, which owns the page's state, and measures how long each of its items holds it.
///
/// An item holds the queue from its start to its end, less the time in which its thread was ready to run but had no
/// processor: computing and blocking count, a busy machine does not.
package enum MainQueue {
  package struct Record: Sendable, Encodable {
    package fileprivate(set) var items = 0
    /// The longest time that an item held the queue, and the longest time that one computed, in nanoseconds.
    package fileprivate(set) var longest: UInt64 = 0
    package fileprivate(set) var longestComputing: UInt64 = 0
  }

  // SAFETY: OWNED BY the main queue.
  nonisolated(unsafe) private static var watch = Watch()
  nonisolated(unsafe) package private(set) static var record = Record()

  package static func async(_ work: @escaping @Sendable () -> Void) {
    DispatchQueue.main.async { run(work) }
  }

  package static func async(after delay: DispatchTimeInterval, _ work: @escaping @Sendable () -> Void) {
    DispatchQueue.main.asyncAfter(deadline: .now() + delay) { run(work) }
  }

  /// Calls `work` from an item of the main queue, and measures it.
  package static func run(_ work: () -> Void) {
    dispatchPrecondition(condition: .onQueue(.main))
    let (start, computed) = (watch.now(), watch.computed)
    work()
    let held = watch.now() &- start
    record.items += 1
    record.longest = max(record.longest, held)
    record.longestComputing = max(record.longestComputing, watch.computed &- computed)
  }
}

/// The clock of one thread.
private struct Watch {
  /// The kernel's statistics of the main thread: time on a processor, time spent waiting for one, turns.
  private let statistics = open("/proc/self/task/\(getpid())/schedstat", O_RDONLY | O_CLOEXEC)

  /// Nanoseconds, less those in which the thread waited for a processor. If the kernel does not report the latter, the
  /// time on a processor.
  func now() -> UInt64 {
    while let before = delayed {
      let time = time(CLOCK_MONOTONIC)
      // If the thread lost the processor between the two readings, they do not match.
      if delayed == before { return time &- before }
    }
    return computed
  }

  /// Nanoseconds on a processor.
  var computed: UInt64 { time(CLOCK_THREAD_CPUTIME_ID) }

  private var delayed: UInt64? {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 128) { buffer in
      // SAFETY: `pread` gets the size of the buffer.
      let count = pread(statistics, buffer.baseAddress!, buffer.count, 0)
      guard count > 0 else { return nil }
      let words = buffer[..<count].split(separator: UInt8(ascii: " "))
      guard words.count > 1 else { return nil }
      return words[1].reduce(0) { $0 &* 10 &+ UInt64($1 &- UInt8(ascii: "0")) }
    }
  }

  private func time(_ clock: clockid_t) -> UInt64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
  }
}

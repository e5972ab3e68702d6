import CBench
import Dispatch
import Glibc

/// Single waits beside busy processes, on whichever libdispatch.so the loader is told to take. Prints the
/// nanoseconds of each sample, and ends.
///
/// `--busy` is one of those processes: it computes until its parent has ended or has killed it.
@main
enum Main {
  static func main() {
    let arguments = CommandLine.arguments
    switch arguments.dropFirst().first {
    case "--list": for row in Row.all { print("\(row.name)\t\(row.question)") }
    case "--library": exit(bench_print_dispatch_libraries())
    case "--busy": bench_stay_busy(until: 120)
    case "--row" where arguments.count > 2:
      guard let row = Row.all.first(where: { $0.name == arguments[2] }) else { fail("no such row") }
      print(row.samples().map(String.init).joined(separator: " "))
    default: fail("usage: --list | --library | --busy | --row NAME")
    }
  }
}

/// Something that a thread waits for.
struct Row: Sendable {
  let name: String
  let question: String
  /// Waits once; returns the nanoseconds of the part that counts.
  let sample: @Sendable () -> Int

  /// As many samples as half a second has room for, 100 at most, after a few that start the threads.
  func samples() -> [Int] {
    for _ in 0..<5 { _ = sample() }
    let end = now() + 500_000_000
    var samples: [Int] = []
    while samples.count < 100 && now() < end {
      samples.append(sample())
      // The pool is idle when the next one comes, as it is in a program that serves a request now and then.
      usleep(1_000)
    }
    return samples
  }

  static let all = [
    Row(name: "round-trip", question: "async onto a serial queue, its item signals a semaphore, wait") {
      roundTrip(on: serial[0])
    },
    Row(name: "hop", question: "100 hops between two serial queues") { hops(100) },
    Row(name: "group", question: "10 items of 200 µs on the default global queue, wait for their group") {
      group(on: .global())
    },
    Row(name: "timer", question: "lateness of asyncAfter, 1 ms ahead, on a serial queue") { lateness() },
    Row(name: "actor", question: "4 tasks call one actor 25 times each") { actorCalls(tasks: 4, calls: 25) },
    Row(name: "utility", question: "a round trip to the utility global queue") {
      roundTrip(on: .global(qos: .utility))
    },
    Row(name: "utility-group", question: "the group on the utility global queue") {
      group(on: .global(qos: .utility))
    },
    Row(name: "background", question: "a round trip to the background global queue") {
      roundTrip(on: .global(qos: .background))
    },
    Row(name: "background-group", question: "the group on the background global queue") {
      group(on: .global(qos: .background))
    },
  ]
}

private let serial = [DispatchQueue(label: "ping"), DispatchQueue(label: "pong")]

private func roundTrip(on queue: DispatchQueue) -> Int {
  let done = DispatchSemaphore(value: 0)
  return time {
    queue.async { done.signal() }
    done.wait()
  }
}

private func hops(_ count: Int) -> Int {
  let done = DispatchSemaphore(value: 0)
  @Sendable func hop(_ left: Int) {
    if left == 0 { done.signal() } else { serial[left % 2].async { hop(left - 1) } }
  }
  return time {
    hop(count)
    done.wait()
  }
}

private func group(on queue: DispatchQueue) -> Int {
  let group = DispatchGroup()
  return time {
    for _ in 0..<10 { queue.async(group: group) { compute(microseconds: 200) } }
    group.wait()
  }
}

private func lateness() -> Int {
  let (done, end) = (DispatchSemaphore(value: 0), Cell())
  let start = now()
  serial[0].asyncAfter(deadline: .now() + .milliseconds(1)) {
    end.time = now()
    done.signal()
  }
  done.wait()
  return end.time - start - 1_000_000
}

private func actorCalls(tasks: Int, calls: Int) -> Int {
  let (done, counter) = (DispatchSemaphore(value: 0), Counter())
  let time = time {
    Task.detached {
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<tasks { group.addTask { for _ in 0..<calls { await counter.add() } } }
      }
      guard await counter.count == tasks * calls else { fail("calls of an actor were lost") }
      done.signal()
    }
    done.wait()
  }
  return time
}

private actor Counter {
  private(set) var count = 0
  func add() { count += 1 }
}

// SAFETY: written before a signal, read after the wait for it.
private final class Cell: @unchecked Sendable { var time = 0 }

/// The same amount of work on either library, however often the thread loses its processor meanwhile.
private func compute(microseconds: Int) {
  for index in 0..<(microseconds * stepsInMicrosecond) { bench_opaque(index) }
}

private let stepsInMicrosecond: Int = {
  var quickest = Int.max
  for _ in 0..<20 { quickest = min(quickest, time { for index in 0..<100_000 { bench_opaque(index) } }) }
  return 100_000 * 1_000 / quickest
}()

private func time(_ body: () -> Void) -> Int {
  let start = now()
  body()
  return now() - start
}

/// The monotonic clock in nanoseconds.
private func now() -> Int {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return time.tv_sec * 1_000_000_000 + time.tv_nsec
}

private func fail(_ message: String) -> Never {
  var line = "bench-oversubscribed: \(message)\n"
  // SAFETY: the bytes are used within the closure only.
  line.withUTF8 { bytes in _ = write(STDERR_FILENO, bytes.baseAddress, bytes.count) }
  exit(70)
}

import CBench
import Glibc

/// Single waits beside busy processes, on whichever libdispatch.so the loader finds. Prints the nanoseconds of each
/// sample. `--busy` is one of those processes: it computes until its parent ends or kills it.
@main
enum Main {
  static func main() {
    if CommandLine.arguments.dropFirst() == ["--busy"] { bench_stay_busy(120) }
    let request = Request(rows: Wait.all.map { ($0.name, [Figure($0.name, .nanoseconds, $0.question)]) })
    for wait in Wait.all where wait.name == request.row {
      print(wait.samples().map(String.init).joined(separator: " "))
    }
  }
}

/// Something that a thread waits for.
struct Wait: Sendable {
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
      // The pool is idle when the next sample begins, as in a program that serves a request now and then.
      usleep(1_000)
    }
    return samples
  }

  static let all = [
    Wait(name: "round-trip", question: "async onto a serial queue, its item signals a semaphore, wait") {
      roundTrip(on: serial[0])
    },
    Wait(name: "hop", question: "100 hops between two serial queues") { hops(100) },
    Wait(name: "group", question: "10 items of 200 µs on the default global queue, wait for their group") {
      group(on: .global())
    },
    Wait(name: "timer", question: "lateness of asyncAfter, 1 ms ahead, on a serial queue") { lateness() },
    Wait(name: "actor", question: "4 tasks call one actor 25 times each") { actorCalls(tasks: 4, calls: 25) },
    Wait(name: "utility", question: "a round trip to the utility global queue") {
      roundTrip(on: .global(qos: .utility))
    },
    Wait(name: "utility-group", question: "the group on the utility global queue") {
      group(on: .global(qos: .utility))
    },
    Wait(name: "background", question: "a round trip to the background global queue") {
      roundTrip(on: .global(qos: .background))
    },
    Wait(name: "background-group", question: "the group on the background global queue") {
      group(on: .global(qos: .background))
    },
  ]
}

private let serial = [DispatchQueue(label: "ping"), DispatchQueue(label: "pong")]

private func roundTrip(on queue: DispatchQueue) -> Int {
  let done = DispatchSemaphore(value: 0)
  return elapsed {
    queue.async { done.signal() }
    done.wait()
  }
}

private func hops(_ count: Int) -> Int {
  let done = DispatchSemaphore(value: 0)
  @Sendable func hop(_ left: Int) {
    if left == 0 { done.signal() } else { serial[left % 2].async { hop(left - 1) } }
  }
  return elapsed {
    hop(count)
    done.wait()
  }
}

private func group(on queue: DispatchQueue) -> Int {
  let group = DispatchGroup()
  return elapsed {
    for _ in 0..<10 { queue.async(group: group) { compute(microseconds: 200) } }
    group.wait()
  }
}

private func lateness() -> Int {
  let (done, end) = (DispatchSemaphore(value: 0), Cell())
  let start = now()
  serial[0].asyncAfter(deadline: .now() + .milliseconds(1)) {
    end.value = now()
    done.signal()
  }
  done.wait()
  return end.value - start - 1_000_000
}

private func actorCalls(tasks: Int, calls: Int) -> Int {
  let (done, counter) = (DispatchSemaphore(value: 0), Counter())
  return elapsed {
    Task.detached {
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<tasks { group.addTask { for _ in 0..<calls { await counter.add() } } }
      }
      verify(await counter.count, equals: tasks * calls, "calls of the actor")
      done.signal()
    }
    done.wait()
  }
}

private actor Counter {
  private(set) var count = 0
  func add() { count += 1 }
}

/// The same amount of work on either library, however often the thread loses its processor meanwhile.
private func compute(microseconds: Int) {
  for index in 0..<(microseconds * stepsInMicrosecond) { bench_opaque(index) }
}

private let stepsInMicrosecond: Int = {
  var quickest = Int.max
  for _ in 0..<20 { quickest = min(quickest, elapsed { for index in 0..<100_000 { bench_opaque(index) } }) }
  return 100_000 * 1_000 / quickest
}()

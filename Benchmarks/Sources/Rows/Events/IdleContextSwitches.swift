import CBench
import Glibc

extension Row {
  static let idleContextSwitches = Row(
    "idle-context-switches", .switches,
    "context switches of all threads but the measuring one within 5 s, with 1,000 far timers and 1,000 quiet fds"
  ) { scale in
    let count = 1_000
    let seconds = scale.quick ? 1 : 5
    _ = bench_raise_descriptor_limit()
    let queue = DispatchQueue(label: "idle")
    let fired = Cell()
    let registered = DispatchGroup()
    var sources: [any DispatchSourceProtocol] = []
    var pipes: [Pipe] = []
    for index in 0..<count {
      let timer = DispatchSource.makeTimerSource(queue: queue)
      timer.schedule(deadline: .now() + .seconds(3_600 + index))
      sources.append(timer)
      let pipe = Pipe()
      pipes.append(pipe)
      sources.append(DispatchSource.makeReadSource(fileDescriptor: pipe.reading, queue: queue))
    }
    for source in sources {
      registered.enter()
      source.setRegistrationHandler { registered.leave() }
      source.setEventHandler { fired.add(1) }
      source.resume()
    }
    registered.wait()
    waitUntilOtherThreadsSleep()
    // What a runtime does once after work, such as ending threads that are left over, may take a
    // moment; what it does again and again comes back within the five seconds.
    sleep(scale.quick ? 1 : 12)

    let before = contextSwitches()
    sleep(UInt32(seconds))
    let after = contextSwitches()
    var switches = 0
    for (thread, count) in after { switches += count - (before[thread] ?? 0) }
    // A thread that has ended was running for it.
    for thread in before.keys where after[thread] == nil { switches += 1 }

    // The quiet ones were not dead ones.
    let answered = DispatchGroup()
    for (index, pipe) in pipes.enumerated() {
      answered.enter()
      sources[2 * index + 1].setEventHandler {
        pipe.receive()
        fired.add(1)
        answered.leave()
      }
      pipe.send()
    }
    answered.wait()
    queue.sync {}
    verify(fired.value, equals: count, "events of descriptors, and none of timers")
    for source in sources { source.cancel() }
    return Measurement(value: Double(switches), operations: count, check: fired.value)
  }
}

/// Voluntary and involuntary context switches of every thread but the calling one, the main thread.
private func contextSwitches() -> [String: Int] {
  var switches: [String: Int] = [:]
  for thread in otherThreads() {
    // A thread that ends between the listing and the reading is missing in the sum, too.
    guard let status = readSmallFile("/proc/self/task/\(thread)/status") else { continue }
    var sum = 0
    for line in String(decoding: status, as: UTF8.self).split(separator: "\n") {
      let words = line.split { $0 == "\t" || $0 == " " }
      guard words.count == 2, words[0].hasSuffix("voluntary_ctxt_switches:") else { continue }
      guard let count = Int(words[1]) else { fail("cannot understand: \(line)") }
      sum += count
    }
    switches[thread] = sum
  }
  return switches
}

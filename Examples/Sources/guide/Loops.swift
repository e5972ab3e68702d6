import Concourse
import Glibc

extension Listing {
  static let parallelLoop = Listing("apply", "a loop with concurrent iterations") { print in
    print("squares up to 9²: \(squares(10))")
    print("the sum of 0..<100 in 25 strides of 4: \(sum(Array(0..<100), stride: 4))")
  }
}

/// The first squares, each computed by an iteration of its own. Returns when all iterations have ended.
func squares(_ count: Int) -> [Int] {
  var squares = [Int](repeating: 0, count: count)
  squares.withUnsafeMutableBufferPointer { buffer in
    // SAFETY: each iteration writes its own element, and `concurrentPerform` returns after the last iteration.
    nonisolated(unsafe) let places = buffer
    DispatchQueue.concurrentPerform(iterations: count) { index in places[index] = index * index }
  }
  return squares
}

/// The sum of some numbers. One addition is too little work for an iteration, so each iteration adds `stride`
/// numbers.
func sum(_ numbers: [Int], stride: Int) -> Int {
  let total = Guarded(0)
  DispatchQueue.concurrentPerform(iterations: (numbers.count + stride - 1) / stride) { iteration in
    let start = iteration * stride
    let part = numbers[start..<min(start + stride, numbers.count)].reduce(0, +)
    total.use { $0 += part }
  }
  return total.use { $0 }
}

/// A mistake: an item of a serial queue waits for another item of that queue, which cannot start before the first has
/// ended. Concourse ends the process with a message.
func waitForOneself(on queue: DispatchQueue) {
  queue.sync {
    queue.sync {}
  }
}

extension Listing {
  static let descriptorSemaphore = Listing(
    "semaphore", "a limit for open files: half of what the process may open"
  ) {
    print in
    let limit = Int(getdtablesize() / 2)
    let report = openOften(readableFile, times: 200, limit: limit)
    print("opened \(report.opened) times, never more than \(limit) at once")
  }
}

/// A file that exists on nearly every system, or else one of the kernel's.
var readableFile: String {
  access("/etc/services", R_OK) == 0 ? "/etc/services" : "/proc/self/status"
}

/// The counts of `openOften`.
struct OpenReport: Sendable {
  /// How often the file could be opened.
  var opened = 0
  /// The largest number of descriptors that were open at the same time.
  var mostAtOnce = 0
  fileprivate var open = 0
}

/// Opens, reads and closes a file many times, on all threads of the pool.
/// - Parameter limit: how many may be open at the same time.
func openOften(_ path: String, times: Int, limit: Int) -> OpenReport {
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

extension Listing {
  static let groupWait = Listing("group", "several tasks, other work meanwhile, and one wait for all") {
    print in
    let lengths = wordLengths(["queues", "groups", "semaphores"]) { print("meanwhile, something else") }
    print("\(lengths.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" })")
  }
}

/// The length of each word, computed by a task for each.
/// - Parameter otherWork: runs on this thread while the tasks run.
func wordLengths(_ words: [String], otherWork: () -> Void) -> [String: Int] {
  let lengths = Guarded([String: Int]())
  let group = DispatchGroup()
  for word in words {
    DispatchQueue.global().async(group: group) { lengths.use { $0[word] = word.count } }
  }
  otherWork()
  group.wait()
  return lengths.use { $0 }
}

extension Listing {
  static let oneSerialQueue = Listing("loops-serial", "two loops on one serial queue") { print in
    print("\(loopsOnOneSerialQueue())")
  }
}

/// The second loop starts after the first has ended. Returns the numbers in the order in which they were added.
func loopsOnOneSerialQueue() -> [Int] {
  let queue = DispatchQueue(label: "org.concourse.guide.loops")
  let numbers = Guarded([Int]())
  queue.async { for number in 1...10 { numbers.use { $0.append(number) } } }
  queue.async { for number in 11...20 { numbers.use { $0.append(number) } } }
  queue.sync {}
  return numbers.use { $0 }
}

extension Listing {
  static let twoSerialQueues = Listing("loops-two-queues", "two loops, each on a serial queue of its own") {
    print in
    print("\(loopsOnTwoSerialQueues())")
  }
}

/// The loops run at the same time, each in its own order. Returns the numbers in the order in which they were added.
func loopsOnTwoSerialQueues() -> [Int] {
  let first = DispatchQueue(label: "org.concourse.guide.first")
  let second = DispatchQueue(label: "org.concourse.guide.second")
  let numbers = Guarded([Int]())
  first.async { for number in 1...10 { numbers.use { $0.append(number) } } }
  second.async { for number in 11...20 { numbers.use { $0.append(number) } } }
  first.sync {}
  second.sync {}
  return numbers.use { $0 }
}

extension Listing {
  static let oneConcurrentQueue = Listing("loops-concurrent", "two loops on one concurrent queue") { print in
    print("\(loopsOnOneConcurrentQueue())")
  }
}

/// The loops start in order and run at the same time. Returns the numbers in the order in which they were added.
func loopsOnOneConcurrentQueue() -> [Int] {
  let queue = DispatchQueue(label: "org.concourse.guide.concurrent", attributes: .concurrent)
  let numbers = Guarded([Int]())
  queue.async { for number in 1...10 { numbers.use { $0.append(number) } } }
  queue.async { for number in 11...20 { numbers.use { $0.append(number) } } }
  // A barrier waits for all items submitted before it.
  queue.sync(flags: .barrier) {}
  return numbers.use { $0 }
}

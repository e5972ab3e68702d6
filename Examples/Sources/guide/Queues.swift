import Concourse
import Glibc

extension Listing {
  static let urgencies = Listing("global-queues", "the queues that always exist, one for each priority") {
    print in
    for (name, queue) in globalQueues {
      // A global queue runs its items at the same time; `sync` keeps the lines in order.
      queue.sync { print("\(name): an item of \(DispatchQueue.currentLabel)") }
    }
  }
}

/// The four priorities by their names. A global queue is the same object each time.
var globalQueues: [(name: String, queue: DispatchQueue)] {
  [
    ("high", .global(qos: .userInitiated)),
    ("default", .global()),
    ("low", .global(qos: .utility)),
    ("background", .global(qos: .background)),
  ]
}

extension Listing {
  static let serialQueue = Listing("serial-queue", "one item after the other, first in, first out") { print in
    let queue = makeSerialQueue()
    print("the queue \(queue.label)")
    for number in 1...5 { queue.async { print("item \(number)") } }
    queue.sync {}
  }
}

/// A new queue. Debuggers and error messages show its label, by custom a reversed domain name.
func makeSerialQueue() -> DispatchQueue {
  DispatchQueue(label: "org.concourse.guide.serial")
}

extension Listing {
  static let bothWays = Listing("async-then-sync", "async returns at once, sync waits for its item") {
    asyncThenSync(print: $0)
  }
}

/// The submitting thread's line may come before or after that of the asynchronous item, and on a busy machine even
/// after both items; the synchronous item always runs after the asynchronous one.
func asyncThenSync(print: @escaping Output) {
  let queue = DispatchQueue(label: "org.concourse.guide.custom")
  queue.async { print("asynchronous item") }
  print("the submitting thread goes on")
  queue.sync { print("synchronous item") }
}

extension Listing {
  static let mainQueue = Listing("main-queue", "items for the main thread") { print in
    print("here: \(isMainThread ? "the main thread" : "a worker")")
    let place = DispatchQueue.main.sync { isMainThread ? "the main thread" : "a worker" }
    print("in an item of the main queue: \(place)")
    let done = DispatchSemaphore(value: 0)
    DispatchQueue.main.async {
      print("in a later one: \(isMainThread ? "the main thread" : "a worker")")
      done.signal()
    }
    done.wait()
  }
}

/// Whether this is the first thread of the process: its number is that of the process.
var isMainThread: Bool {
  var path = [UInt8](repeating: 0, count: 64)
  let length = path.withUnsafeMutableBytes { bytes in
    // SAFETY: characters have no structure.
    readlink("/proc/thread-self", bytes.baseAddress!.assumingMemoryBound(to: CChar.self), bytes.count)
  }
  // "PROCESS/task/THREAD"
  let numbers = path.prefix(max(0, length)).split(separator: UInt8(ascii: "/"))
  return numbers.count == 3 && numbers[0] == numbers[2]
}

extension Listing {
  static let suspension = Listing("suspend-resume", "a suspended queue starts no items") { print in
    let queue = DispatchQueue(label: "org.concourse.guide.suspended")
    let step = HeldBack(queue)
    queue.async { print("the item runs") }
    for _ in 1...2 {
      print("resumed \(step.resume() ? "for good" : "once")")
    }
    queue.sync {}
  }
}

/// A queue that has been suspended twice, so its items start after the second `resume`.
///
/// Suspension takes effect between items: an item that is running runs to its end.
final class HeldBack: @unchecked Sendable {  // SAFETY: OWNED BY the caller of `resume`.
  private let queue: DispatchQueue
  private var suspensions = 2

  init(_ queue: DispatchQueue) {
    self.queue = queue
    for _ in 0..<suspensions { queue.suspend() }
  }

  /// - Returns: whether that was the last suspension.
  func resume() -> Bool {
    suspensions -= 1
    queue.resume()
    return suspensions == 0
  }
}

extension Listing {
  static let currentQueue = Listing("current-queue", "the label of the current queue, for debugging only") {
    print in
    let outer = DispatchQueue(label: "org.concourse.guide.outer")
    let inner = DispatchQueue(label: "org.concourse.guide.inner")
    print("in an item: \(outer.sync { DispatchQueue.currentLabel })")
    print(
      "in an item that another one waits for: \(outer.sync { inner.sync { DispatchQueue.currentLabel } })")
    outer.sync { inner.sync { expectToBeOnBoth(outer, inner) } }
    print("this thread holds both queues then, so there is no one current queue to ask for")
  }
}

/// A better way than to ask for the current queue: says on which queues the code must run. Ends the process if it
/// does not.
func expectToBeOnBoth(_ outer: DispatchQueue, _ inner: DispatchQueue) {
  dispatchPrecondition(condition: .onQueue(inner))
  dispatchPrecondition(condition: .onQueue(outer))
}

extension Listing {
  static let completion = Listing(
    "completion", "work in the background, and the answer on the caller's queue"
  ) {
    print in
    let done = DispatchSemaphore(value: 0)
    average(of: [1, 2, 3, 4], reportingOn: DispatchQueue(label: "org.concourse.guide.caller")) { average in
      print("the average is \(average), on \(DispatchQueue.currentLabel)")
      done.signal()
    }
    done.wait()
  }
}

/// Computes the average of some numbers in the background, and calls back on the caller's queue.
///
/// - Parameters:
///   - numbers: not empty.
///   - queue: where `completion` is called. The closures below retain it, so the caller need not.
///   - completion: called once, with the average.
func average(
  of numbers: [Int], reportingOn queue: DispatchQueue, completion: @escaping @Sendable (Double) -> Void
) {
  DispatchQueue.global().async {
    let average = Double(numbers.reduce(0, +)) / Double(numbers.count)
    queue.async { completion(average) }
  }
}

extension Listing {
  static let queueContext = Listing("queue-context", "data that lives as long as its queue") {
    print in
    let finished = DispatchSemaphore(value: 0)
    var queue: DispatchQueue? = makeQueueWithContext(name: "journal") { context in
      print("cleaned up after \(context.entries) entries of the \(context.name)")
      finished.signal()
    }
    queue?.async { QueueContext.current?.entries += 2 }
    // The queue lives until its item has run.
    queue = nil
    finished.wait()
  }
}

/// Data of one queue, used by its items only.
final class QueueContext: @unchecked Sendable {  // SAFETY: OWNED BY the queue's items.
  let name: String
  var entries = 0
  private let finalizer: @Sendable (QueueContext) -> Void

  fileprivate static let key = DispatchSpecificKey<QueueContext>()
  /// The context of the queue whose item runs.
  static var current: QueueContext? { DispatchQueue.getSpecific(key: key) }

  fileprivate init(name: String, finalizer: @escaping @Sendable (QueueContext) -> Void) {
    self.name = name
    self.finalizer = finalizer
  }

  deinit { finalizer(self) }
}

/// A queue with data of its own, of which its users need not know.
/// - Parameter finalizer: called once, with the data, after the last release of the queue.
func makeQueueWithContext(
  name: String, finalizer: @escaping @Sendable (QueueContext) -> Void
) -> DispatchQueue {
  let queue = DispatchQueue(label: "org.concourse.guide.\(name)")
  queue.setSpecific(key: QueueContext.key, value: QueueContext(name: name, finalizer: finalizer))
  return queue
}

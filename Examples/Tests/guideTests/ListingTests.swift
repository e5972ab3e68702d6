import Concourse
import Glibc
import Testing

@testable import guide

/// What the guide's listings promise, listing by listing.
@Suite("Listings", .timeLimit(.minutes(10))) struct ListingTests {
  @Test func simpleBlock() {
    var printer: ((Int) -> Void)?
    let printed = lines { print in
      printer = makePrinter(of: 3, and: 4, print)
      printer?(5)
    }
    #expect(printed == ["captured 3 and 4, called with 5"])
  }

  @Test func blockResult() {
    #expect(largest(of: [3, 9, 2]) == 9)
    #expect(largest(of: [-7]) == -7)
    #expect(largest(of: []) == nil)
  }

  @Test func capturingClosure() {
    let fare = makeFare(base: 250, perKilometer: 180)
    #expect([0, 1, 7].map(fare) == [250, 430, 1510])
  }

  @Test func globalQueuesAreTheSameEachTimeAndDifferFromEachOther() {
    let queues = globalQueues.map { $0.queue }
    #expect(zip(queues, globalQueues).allSatisfy { $0 === $1.queue })
    #expect(Set(queues.map(ObjectIdentifier.init)).count == 4)
    for queue in queues {
      let ran = DispatchSemaphore(value: 0)
      queue.async { ran.signal() }
      #expect(ran.comes(), "\(queue.label)")
    }
  }

  @Test func aSerialQueueKeepsOrder() {
    let queue = makeSerialQueue()
    #expect(queue.label == "org.concourse.guide.serial")
    let order = Guarded([Int]())
    for number in 0..<1000 { queue.async { order.use { $0.append(number) } } }
    queue.sync {}
    #expect(order.use { $0 } == Array(0..<1000))
  }

  @Test func theContextIsCleanedUpOnceAfterTheLastRelease() {
    let finished = DispatchSemaphore(value: 0)
    let calls = Guarded([(name: String, entries: Int)]())
    var queue: DispatchQueue? = makeQueueWithContext(name: "test") { context in
      calls.use { $0.append((context.name, context.entries)) }
      finished.signal()
    }
    var other = queue
    queue?.async { QueueContext.current?.entries += 1 }
    queue = nil
    other?.sync {}
    #expect(calls.use { $0.count } == 0)
    // From here on the item alone keeps the queue.
    other?.async { QueueContext.current?.entries += 1 }
    other = nil
    #expect(finished.comes())
    #expect(calls.use { $0.count } == 1)
    #expect(calls.use { $0.first?.name } == "test")
    #expect(calls.use { $0.first?.entries } == 2)
  }

  @Test func asynchronousWorkComesBeforeSynchronous() {
    for _ in 0..<100 {
      let printed = lines { asyncThenSync(print: $0) }
      #expect(printed.count == 3 && printed.contains("asynchronous item"))
      #expect(printed.firstIndex(of: "asynchronous item")! < printed.firstIndex(of: "synchronous item")!)
    }
  }

  @Test func theAverageArrivesOnTheCallersQueueThoughTheCallerDroppedIt() {
    let key = DispatchSpecificKey<Int>()
    let told = DispatchSemaphore(value: 0)
    let answer = Guarded((average: 0.0, place: 0))
    var queue: DispatchQueue? = DispatchQueue(label: "org.concourse.guide.caller")
    queue?.setSpecific(key: key, value: 42)
    average(of: [1, 2, 3, 4], reportingOn: queue!) { average in
      let place = DispatchQueue.getSpecific(key: key) ?? 0
      answer.use { $0 = (average, place) }
      told.signal()
    }
    queue = nil
    #expect(told.comes())
    #expect(answer.use { $0 } == (2.5, 42))
  }

  @Test(arguments: [0, 1, 7, 1000]) func eachIterationRunsOnce(count: Int) {
    #expect(squares(count) == (0..<count).map { $0 * $0 })
  }

  @Test(arguments: [1, 3, 4, 100, 1000]) func stridesAddUp(stride: Int) {
    #expect(sum(Array(0..<100), stride: stride) == 4950)
  }

  @Test func waitingForOneselfIsATrap() async {
    let end = await #expect(processExitsWith: .signal(SIGILL), observing: [\.standardErrorContent]) {
      waitForOneself(on: DispatchQueue(label: "org.concourse.guide.deadlock"))
    }
    let spoken = String(decoding: end?.standardErrorContent ?? [], as: UTF8.self)
    #expect(spoken.contains("org.concourse.guide.deadlock"), "\(spoken)")
  }

  @Test func nothingStartsWhileTheCountIsAboveZero() {
    let queue = DispatchQueue(label: "org.concourse.guide.suspended")
    let ran = DispatchSemaphore(value: 0)
    let step = HeldBack(queue)
    queue.async { ran.signal() }
    #expect(ran.wait(timeout: .now() + .milliseconds(50)) == .timedOut)
    #expect(!step.resume())
    #expect(ran.wait(timeout: .now() + .milliseconds(50)) == .timedOut)
    #expect(step.resume())
    #expect(ran.comes())
  }

  @Test func suspensionTakesEffectBetweenItems() {
    let queue = DispatchQueue(label: "org.concourse.guide.suspended")
    let running = DispatchSemaphore(value: 0)
    let goOn = DispatchSemaphore(value: 0)
    let ended = DispatchSemaphore(value: 0)
    queue.async {
      running.signal()
      goOn.wait()
      ended.signal()
    }
    #expect(running.comes())
    queue.suspend()
    goOn.signal()
    #expect(ended.comes())
    queue.resume()
  }

  @Test(arguments: [1, 2, 1 << 20]) func neverMoreOpenThanAllowed(limit: Int) {
    let report = openOften(readableFile, times: 500, limit: limit)
    #expect(report.opened == 500)
    #expect((1...limit).contains(report.mostAtOnce))
  }

  @Test func allTasksAreDoneAfterTheWait() {
    for _ in 0..<50 {
      var others = 0
      let lengths = wordLengths(["a", "bb", "ccc"]) { others += 1 }
      #expect(lengths == ["a": 1, "bb": 2, "ccc": 3])
      #expect(others == 1)
    }
  }

  @Test func theCurrentQueueIsTheInnermostOne() {
    let outer = DispatchQueue(label: "outer")
    let inner = DispatchQueue(label: "inner")
    #expect(outer.sync { DispatchQueue.currentLabel } == "outer")
    #expect(outer.sync { inner.sync { DispatchQueue.currentLabel } } == "inner")
    // A precondition, unlike that, knows both.
    outer.sync { inner.sync { expectToBeOnBoth(outer, inner) } }
  }

  @Test func theWrongQueueIsATrap() async {
    await #expect(processExitsWith: .signal(SIGILL)) {
      let outer = DispatchQueue(label: "outer")
      outer.sync { expectToBeOnBoth(outer, DispatchQueue(label: "inner")) }
    }
  }

  @Test func twoLoopsOnOneSerialQueue() {
    #expect(loopsOnOneSerialQueue() == Array(1...20))
  }

  @Test func twoLoopsOnTwoSerialQueues() {
    let numbers = loopsOnTwoSerialQueues()
    #expect(numbers.filter { $0 <= 10 } == Array(1...10))
    #expect(numbers.filter { $0 > 10 } == Array(11...20))
  }

  @Test func twoLoopsOnOneConcurrentQueue() {
    #expect(loopsOnOneConcurrentQueue().sorted() == Array(1...20))
  }
}

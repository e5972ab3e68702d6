import ConcourseTesting
import Dispatch
import Glibc
import Testing

/// The trait, and what a schedule is to a test.
struct TraitTests {
  @Test(.explored(schedules: 20)) func visitsAreKept() async {
    let visits = Cell(0)
    await withTaskGroup(of: Void.self) { group in
      for _ in 1...3 { group.addTask { visits.increment() } }
    }
    #expect(visits.value == 3)
  }

  /// Schedules get the same random numbers, and so make files of the same names.
  @Test(.explored(schedules: 20)) func temporaryFolderIsEmpty() throws {
    let folder = try #require(getenv("TMPDIR"))
    #expect(mkdir(String(cString: folder) + "/left-behind", 0o700) == 0)
  }

  @Test(.explored(schedules: 20)) @MainActor func mainActorIsServed() async {
    let main = pthread_self()
    await Task { @MainActor in #expect(pthread_equal(main, pthread_self()) != 0) }.value
    await withCheckedContinuation { continuation in
      DispatchQueue.global().async { DispatchQueue.main.async { continuation.resume() } }
    }
  }

  @Test func bodyRunsInOtherProcessesOnly() async throws {
    let process = getpid()
    let runs = Cell(0)
    try await explore(schedules: 20) {
      #expect(getpid() != process)
      #expect(runs.increment() == 1)
    }
    #expect(runs.value == 0)
  }

  /// A thread that a test has made before it comes to the exploration would not be in a child.
  @Test func threadsBefore() async throws {
    let isReady = DispatchSemaphore(value: 0)
    DispatchQueue.global().async { isReady.signal() }
    isReady.wait()
    let visits = Cell(0)
    try await explore(schedules: 20) {
      DispatchQueue.concurrentPerform(iterations: 3) { _ in visits.increment() }
      #expect(visits.value == 3)
    }
  }

  @Test(.explored(schedules: 20)) func dayOfTimers() {
    let isOver = DispatchSemaphore(value: 0)
    let begin = DispatchTime.now()
    DispatchQueue.global().asyncAfter(deadline: begin + .seconds(86_400)) { isOver.signal() }
    isOver.wait()
    #expect(DispatchTime.now() >= begin + .seconds(86_400))
  }

  @Test(.explored(schedules: 60)) func timeAdvances() async {
    let saves = Cell(0)
    DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(10)) { saves.increment() }
    let task = Task {
      try await Task.sleep(for: .seconds(5))
      saves.increment()
    }
    await ExploredTime.advance(by: .seconds(4))
    #expect(saves.value == 0)
    await ExploredTime.advance(by: .seconds(2))
    #expect(saves.value == 1)
    await ExploredTime.advance(by: .seconds(4))
    #expect(saves.value == 2)
    try? await task.value
  }

  @Test(.explored(schedules: 60)) func allElseRunsUntilIdle() {
    let visits = Cell(0)
    let queue = DispatchQueue(label: "queue")
    queue.async { queue.async { DispatchQueue.global().async { visits.increment() } } }
    Task { await Task.detached { visits.increment() }.value }
    queue.asyncAfter(deadline: .now() + .seconds(1)) { visits.increment() }
    ExploredTime.runUntilIdle()
    #expect(visits.value == 2)
  }

  /// A timer that fires again and again does not keep the process from being idle.
  @Test(.explored(schedules: 60)) func isIdleBetweenShortIntervals() {
    let visits = Cell(0)
    let timer = DispatchSource.makeTimerSource(queue: .global())
    timer.schedule(deadline: .now() + .milliseconds(50), repeating: .milliseconds(1))
    timer.setEventHandler { visits.increment() }
    timer.activate()
    ExploredTime.runUntilIdle()
    #expect(visits.value == 0)
    ExploredTime.advance(by: .milliseconds(60))
    #expect(visits.value > 0)
    timer.cancel()
  }

  /// The state of the process is the same when each schedule begins.
  @Test(.explored(schedules: 200)) func tenItems() {
    let visits = Cell(0)
    let group = DispatchGroup()
    for number in 1...10 { DispatchQueue(label: "\(number)").async(group: group) { visits.increment() } }
    group.wait()
    #expect(visits.value == 10)
  }

  /// Each pair of values has an exploration of its own, also of two in one test.
  @Test(.explored(schedules: 10), arguments: [1, 2, 3], [Name(text: "one"), Name(text: "two")])
  private func valuesAreGiven(count: Int, name: Name) {
    let visits = Cell("")
    DispatchQueue.concurrentPerform(iterations: count) { _ in visits.update { $0 += name.text } }
    #expect(visits.value == String(repeating: name.text, count: count))
  }

  @Test(arguments: 1...3) func explorationsOfValues(count: Int) async throws {
    for factor in 1...2 {
      try await explore(schedules: 5) {
        let visits = Cell(0)
        DispatchQueue.concurrentPerform(iterations: count * factor) { _ in visits.increment() }
        #expect(visits.value == count * factor)
      }
    }
  }

  /// Fails for three threads only, and not in each schedule.
  @Test(.enabled(if: isFailureWanted), .explored(), arguments: 1...4) func oneValue(of count: Int) {
    let visits = Cell(0)
    DispatchQueue.concurrentPerform(iterations: count) { _ in
      if count == 3 { visits.value += 1 } else { visits.increment() }
    }
    #expect(visits.value == count)
  }

  /// Only the third time fails.
  @Test(.enabled(if: isFailureWanted)) func eachTime() async throws {
    for time in 1...3 {
      try await explore(schedules: 5) { #expect(time < 3) }
    }
  }

  @Test(.enabled(if: isFailureWanted), .explored()) func expectationInAnItem() {
    let visits = Cell(0)
    let group = DispatchGroup()
    for name in ["first", "second"] {
      DispatchQueue(label: name).async(group: group) {
        let before = visits.value
        visits.value = before + 1
        #expect(visits.value == before + 1)
      }
    }
    group.wait()
  }
}

/// Its description has an address, which differs in each process.
private struct Name {
  var text: String
}

/// Scripts/exploring wants these tests to fail, and looks at what they say.
let isFailureWanted = getenv("CONCOURSE_TEST_FAILS") != nil

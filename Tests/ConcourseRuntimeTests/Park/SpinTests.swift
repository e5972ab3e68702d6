import Testing

@testable import ConcourseRuntime

extension Engine {
  @Suite("Spin")
  struct SpinTests {
    @Test("a long yield of one thread keeps the other threads of the process from yielding for a while")
    func debt() async {
      await #expect(processExitsWith: .success) {
        Spin.note(yield: 1_000_000)
        let paid = Tally()
        let ended = onThreads(2) { _ in
          for _ in 0..<400 where !Spin.mayYield(CurrentThread.state) { paid.add() }
        }
        // The remaining waits are this thread's own, until the others have ended.
        #expect(ended && paid.value == 800)
      }
    }

    @Test("the number of waits without a yield doubles only while yields stay long")
    func doubling() async {
      await #expect(processExitsWith: .success) {
        func waits() -> Int {
          Spin.note(yield: 1_000_000)
          return (0...).first { _ in Spin.mayYield(CurrentThread.state) }!
        }
        #expect([waits(), waits(), waits()] == [1000, 2000, 4000])
        Spin.note(yield: 100)
        #expect(waits() == 1000)
      }
    }

    /// Waits for a thing that never comes.
    /// - Returns: how often the thread looked for it.
    private static func looks() -> Int {
      var looks = 0
      _ = Spin.wait(rounds: 1) {
        looks += 1
        return false
      }
      return looks
    }

    @Test("a thread spins on if its last sleep was short")
    func longSpin() async {
      await #expect(processExitsWith: .success) {
        Spin.note(processors: 2)
        CurrentThread.state.pointee.last_sleep = 1_000_000
        #expect(Self.looks() < 50)
        // Beside busy processes the thread may lose its processor, or not yield: then it spins no longer.
        #expect(
          (0..<100_000).contains { _ in
            CurrentThread.state.pointee.last_sleep = 20_000
            return Self.looks() > 200
          })
      }
    }

    @Test("a thread whose long spins are not worth it makes fewer and fewer, until one is")
    func bar() async {
      await #expect(processExitsWith: .success) {
        let thread = CurrentThread.state
        let bars = (0..<10).map { _ in
          Spin.note(longSpin: 60_000, thread)
          return thread.pointee.long_spins_barred
        }
        #expect(bars == [0, 8, 16, 32, 64, 128, 256, 512, 1_024, 1_024])
        for _ in 0..<1_024 {
          thread.pointee.last_sleep = 20_000
          #expect(Self.looks() < 50)
        }
        Spin.note(longSpin: 1_000, thread)
        #expect(thread.pointee.slow_spins == 0)
      }
    }

    @Test("no more threads spin long than there are processors")
    func crowd() async {
      await #expect(processExitsWith: .success) {
        Spin.note(processors: 2)
        Spin.longSpinners.wrappingAdd(2, ordering: .relaxed)
        for _ in 0..<100 {
          CurrentThread.state.pointee.last_sleep = 20_000
          #expect(Self.looks() < 50)
        }
      }
    }

    @Test("a thread knows how long it last slept")
    func lastSleep() {
      let word = Atomic<UInt32>(0)
      let deadline = Deadline.uptime(Clock.uptime() + 20_000_000)
      CurrentThread.state.pointee.last_sleep = 0
      #expect(Futex.wait(word, expected: 1, deadline: deadline) == .lookAgain)
      #expect(CurrentThread.state.pointee.last_sleep == 0)
      while Futex.wait(word, expected: 0, deadline: deadline) != .timedOut {}
      #expect(CurrentThread.state.pointee.last_sleep > 0)
    }

    @Test("on one processor no thread spins long")
    func oneProcessor() async {
      await #expect(processExitsWith: .success) {
        Spin.note(processors: 1)
        CurrentThread.state.pointee.last_sleep = 20_000
        #expect(Self.looks() < 50)
      }
    }

    @Test("a lowered worker never yields")
    func lowered() {
      let yields = Shared<[Bool]>([])
      let done = DispatchSemaphore(value: 0)
      DispatchQueue.global(qos: .background).async {
        let may = Spin.mayYield(CurrentThread.state)
        yields.change { $0.append(may) }
        done.signal()
      }
      #expect(comes(done))
      #expect(yields.value == [false])
    }
  }
}

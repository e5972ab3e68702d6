import Testing

@testable import ConcourseRuntime

@Suite("WorkItemState")
struct WorkItemStateTests {
  @Test("executions are counted, and each sees the state before it")
  func executions() {
    let state = WorkItemState()
    let first = state.begin()
    let second = state.begin()
    let third = state.begin()
    #expect(first.isFirst && !second.isFirst)
    #expect([first.executions, second.executions, third.executions] == [0, 1, 2])
  }

  @Test("a cancellation lasts, and later executions see it")
  func cancel() {
    let state = WorkItemState()
    let before = state.begin()
    state.cancel()
    state.cancel()
    let after = state.begin()
    let isCancelled = state.isCancelled
    #expect(!before.isCancelled && after.isCancelled && isCancelled)
    #expect(after.executions == 1)
  }

  @Test("the completion notifies only if interest was registered")
  func completion() {
    let alone = WorkItemState()
    _ = alone.begin()
    let silent = alone.complete()
    #expect(silent == .nothing)

    let awaited = WorkItemState()
    let asked = awaited.registerInterest()
    #expect(!asked.isComplete && asked.executions == 0)
    _ = awaited.begin()
    let outcome = awaited.complete()
    #expect(outcome == .notify)
    let late = awaited.registerInterest()
    #expect(late.isComplete && late.executions == 1)
  }

  @Test("a wait for a complete item does not sleep, a poll of an incomplete one fails")
  func sleeping() {
    let state = WorkItemState()
    let polled = state.sleepUntilComplete(.immediate)
    let timed = state.sleepUntilComplete(.uptime(Clock.uptime() + 1_000_000))
    #expect(!polled && !timed)
    _ = state.begin()
    _ = state.complete()
    let done = (state.sleepUntilComplete(.immediate), state.sleepUntilComplete(.never))
    #expect(done == (true, true))
  }

  @Test("only the first wait that succeeds is allowed")
  func waits() {
    let state = WorkItemState()
    let ends = [state.endWait(), state.endWait()]
    #expect(ends == [true, false])
    let seen = state.beginWait()
    #expect(seen.hasBeenWaitedFor)
    let begun = state.begin()
    #expect(begun.hasBeenWaitedFor)
  }
}

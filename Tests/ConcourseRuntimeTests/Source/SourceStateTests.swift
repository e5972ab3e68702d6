import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

/// The decisions of a source, one transition at a time.
@Suite("SourceState")
struct SourceStateTests {
  /// An active, registered source.
  private func registered() -> SourceState {
    var state = SourceState()
    #expect(state.activate() == .install)
    #expect(state.installed() == .nothing)
    return state
  }

  @Test("S94 nothing is visited or registered before activation")
  func inactive() {
    var state = SourceState()
    #expect(state.raise() == .nothing)
    #expect(state.owe(registrationHandler: true) == .nothing)
    #expect(state.activate() == .install)
    #expect(state.activate() == .nothing, "a second activation does nothing")
    #expect(state.installed() == .visit)
    #expect(state.takeStep() == .registrationHandler)
    #expect(state.takeStep() == .eventHandler)
    #expect(state.endVisit() == .nothing)
  }

  @Test("S96 events during a visit request one more visit")
  func merged() {
    var state = registered()
    #expect(state.raise() == .visit)
    #expect(state.raise() == .nothing)
    #expect(state.takeStep() == .eventHandler)
    #expect(state.raise() == .nothing, "the visit that runs asks again at its end")
    #expect(state.raise() == .nothing)
    #expect(state.endVisit() == .visit)
    #expect(state.takeStep() == .eventHandler)
    #expect(state.endVisit() == .nothing)
  }

  @Test("S96 events while suspended are visited after the last resume")
  func suspended() {
    var state = registered()
    state.suspend()
    state.suspend()
    #expect(state.raise() == .nothing)
    #expect(state.resume() == .nothing)
    #expect(state.resume() == .visit)
    #expect(state.resume() == nil, "nothing is left to resume")
  }

  @Test("S96 a visit that finds the source suspended does nothing and leaves the event for the resume")
  func suspendedOnTheWay() {
    var state = registered()
    #expect(state.raise() == .visit)
    state.suspend()
    #expect(state.takeStep() == nil)
    #expect(state.resume() == .visit)
    #expect(state.takeStep() == .eventHandler)
  }

  @Test("S99 the cancel handler waits for the running handler and for the kernel")
  func cancelled() {
    var state = registered()
    #expect(state.raise() == .visit)
    #expect(state.takeStep() == .eventHandler)
    #expect(state.cancel() == .remove)
    #expect(!state.isOver)
    #expect(state.abandon() == .nothing, "the backend is removed once")
    #expect(state.raise() == .nothing, "no event after the cancellation")
    #expect(state.endVisit() == .nothing, "the kernel has not let go")
    #expect(state.removed() == .visit)
    #expect(state.takeStep() == .cancelHandler)
    #expect(state.takeStep() == nil, "once")
    #expect(state.cancel() == .nothing)
  }

  @Test("S99 removed while a handler runs: its visit goes on to the cancel handler")
  func cancelledInside() {
    var state = registered()
    #expect(state.raise() == .visit)
    #expect(state.takeStep() == .eventHandler)
    #expect(state.cancel() == .remove)
    #expect(state.removed() == .nothing)
    #expect(state.endVisit() == .visit)
    #expect(state.takeStep() == .cancelHandler)
  }

  @Test("S98, S100 cancelled before activation: the cancel handler alone, after activation")
  func cancelledInactive() {
    var state = SourceState()
    #expect(state.owe(registrationHandler: true) == .nothing)
    #expect(!state.isOver)
    #expect(state.cancel() == .nothing)
    #expect(state.isOver)
    #expect(state.activate() == .visit)
    #expect(state.takeStep() == .cancelHandler)
    #expect(state.takeStep() == nil)
  }

  @Test("S100 cancelled while suspended: the cancel handler after the resume")
  func cancelledSuspended() {
    var state = registered()
    state.suspend()
    #expect(state.cancel() == .remove)
    #expect(state.removed() == .nothing)
    #expect(state.resume() == .visit)
    #expect(state.takeStep() == .cancelHandler)
  }

  @Test("S99 cancelled while another thread installs: that thread removes")
  func cancelledInstalling() {
    var state = SourceState()
    #expect(state.activate() == .install)
    #expect(state.raise() == .nothing)
    #expect(state.cancel() == .nothing)
    #expect(state.installed() == .remove)
    #expect(state.removed() == .visit)
    #expect(state.takeStep() == .cancelHandler)
  }

  @Test("S101 an abandoned source stops without a handler")
  func abandoned() {
    var state = registered()
    #expect(state.raise() == .visit)
    #expect(state.abandon() == .remove)
    #expect(state.removed() == .nothing)
    #expect(state.takeStep() == nil)
    #expect(state.isOver)
    #expect(state.abandon() == .nothing)
  }
}

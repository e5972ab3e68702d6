import Testing

@testable import ConcourseRuntime

@Suite("GroupState")
struct GroupStateTests {
  @Test("enters and leaves balance; one leave too many is reported")
  func balance() {
    let state = GroupState()
    holds(state.isEmpty)
    holds(state.enter())
    holds(state.enter())
    holds(!state.isEmpty)
    holds(state.leave() == .others)
    holds(state.leave() == .others)
    holds(state.isEmpty)
    holds(state.leave() == .unbalanced)
  }

  @Test("items and entries are counted separately, and the group is empty without both")
  func items() {
    let state = GroupState()
    var retained = 0
    holds(state.enterItem { retained += 1 })
    holds(state.enterItem { retained += 1 })
    #expect(retained == 1)
    holds(state.hasItems && state.enter())
    let first = state.leaveItem()
    #expect(first == (.others, false))
    let second = state.leaveItem()
    #expect(second == (.others, true))
    holds(!state.isEmpty && !state.hasItems)
    holds(state.leave() == .others)
    holds(state.isEmpty)
    holds(state.enterItem { retained += 1 })
    #expect(retained == 2)
  }

  @Test("a registration on an empty group need not wait; otherwise the last leaver learns of it")
  func registration() {
    let state = GroupState()
    holds(!state.register())
    holds(state.enter())
    holds(state.register())
    holds(state.register())
    holds(!state.isEmpty)
    holds(state.leave() == .last)
    holds(state.isEmpty)
    holds(state.takeRegistrations())
    holds(!state.takeRegistrations())
    holds(state.isEmpty)
  }

  @Test("an item can be the last leaver")
  func lastItem() {
    let state = GroupState()
    holds(state.enterItem {})
    holds(state.register())
    let left = state.leaveItem()
    #expect(left == (.last, true))
  }

  @Test("registrations stay if another thread enters before they are taken")
  func enteredAgain() {
    let state = GroupState()
    holds(state.enter())
    holds(state.register())
    holds(state.leave() == .last)
    holds(state.enter())
    holds(!state.takeRegistrations())
    holds(state.leave() == .last)
    holds(state.takeRegistrations())
  }

  @Test("S63 the counts have a limit below their width")
  func limit() {
    let state = GroupState()
    // ORDERING: relaxed; one thread. A thousand million calls would take long.
    state.word.store(GroupState.most - 2, ordering: .relaxed)
    holds(state.enter())
    holds(!state.enter())
  }
}

/// `#expect` would copy a state, and a state cannot be copied.
private func holds(_ condition: Bool, sourceLocation: SourceLocation = #_sourceLocation) {
  #expect(condition, sourceLocation: sourceLocation)
}

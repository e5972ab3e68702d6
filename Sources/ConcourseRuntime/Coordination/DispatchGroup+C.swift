// A group that C programs hold keeps itself alive while it is entered: they may release it then.

extension DispatchGroup {
  /// As `enter`. Matching C function: `dispatch_group_enter`.
  @inlinable
  package final func enterKeptAlive() {
    if !state.enter(first: { DispatchObject.retainForC(.passUnretained(self)) }) { tooManyEntries() }
  }

  /// As `leave`, for who entered by `enterKeptAlive`. Matching C function: `dispatch_group_leave`.
  @inlinable
  package final func leaveKeptAlive() {
    let (leave, lastEntered) = state.leaveEntered()
    switch leave {
    case .others: break
    case .last: becameEmpty()
    case .unbalanced: unbalancedLeave()
    }
    if lastEntered { DispatchObject.releaseForC(.passUnretained(self)) }
  }
}

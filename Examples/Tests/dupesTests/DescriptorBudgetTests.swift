import DupesKit
import Glibc
import Synchronization
import Testing

@Suite struct DescriptorBudgetTests {
  @Test func theBudgetLeavesRoomBelowTheLimit() {
    var limit = rlimit()
    #expect(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
    let budget = DescriptorBudget(jobs: nil)
    #expect(budget.permits >= 1)
    #expect(budget.permits == 1 || UInt(budget.permits) + 16 <= UInt(limit.rlim_cur))
  }

  @Test func jobsBoundTheBudget() {
    #expect(DescriptorBudget(jobs: 1).permits == 1)
    #expect(DescriptorBudget(jobs: 3).permits == 3)
  }

  @Test(arguments: [1, 2, 5]) func neverMoreHoldersThanPermits(jobs: Int) {
    let budget = DescriptorBudget(jobs: jobs)
    let load = Load()
    // More work items than permits, on as many threads as the pool gives them.
    let group = DispatchGroup()
    for _ in 0..<32 {
      DispatchQueue.global().async(group: group) {
        for _ in 0..<100 { budget.withPermit { load.hold() } }
      }
    }
    group.wait()
    // ORDERING: relaxed; the group orders all work items before this.
    #expect(load.most.load(ordering: .relaxed) <= jobs)
    #expect(load.total.load(ordering: .relaxed) == 3200)
  }
}

/// How many hold a permit, the most that ever did, and how often it was held.
private final class Load: Sendable {
  let holders = Atomic<Int>(0)
  let most = Atomic<Int>(0)
  let total = Atomic<Int>(0)

  func hold() {
    // ORDERING: relaxed; each counter is looked at by itself.
    let now = holders.wrappingAdd(1, ordering: .relaxed).newValue
    most.max(now, ordering: .relaxed)
    total.wrappingAdd(1, ordering: .relaxed)
    holders.wrappingSubtract(1, ordering: .relaxed)
  }
}

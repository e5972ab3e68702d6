import Concourse

/// Three accounts, each guarded by a queue. A transfer holds the queue of one account while it waits for that of the
/// other. Three of them at once wait in a circle.
enum Transfers {
  private static let accounts = ["alice", "bob", "carol"].map { DispatchQueue(label: "account.\($0)") }

  static func start() {
    // Only so that all three are under way before the first goes on; in a real program, that is chance.
    let underWay = DispatchGroup()
    for _ in accounts { underWay.enter() }
    for payer in accounts.indices {
      accounts[payer].async {
        underWay.leave()
        underWay.wait()
        transfer(to: (payer + 1) % accounts.count)
      }
    }
  }

  private static func transfer(to payee: Int) {
    accounts[payee].sync { print("transferred to \(accounts[payee].label)") }
  }
}

import Concourse

/// An actor remembers the task that fetches a price, so that no price is fetched twice. A child of that task asks the
/// actor for the same price, and so awaits the task that awaits it.
enum Prices {
  private actor Cache {
    private var fetches: [String: Task<Int, Never>] = [:]

    func price(of ware: String) async -> Int {
      if let fetch = fetches[ware] { return await fetch.value }
      let fetch = Task(name: "fetch \(ware)") { await self.fetch(ware) }
      fetches[ware] = fetch
      return await fetch.value
    }

    private func fetch(_ ware: String) async -> Int {
      await withTaskGroup(of: Int.self) { group in
        for shop in 1...2 {
          group.addTask(name: "shop \(shop)") { await self.price(of: ware) + shop }
        }
        var best = Int.max
        for await price in group { best = min(best, price) }
        return best
      }
    }
  }

  static func start() {
    let cache = Cache()
    Task(name: "customer") { print(await cache.price(of: "tea")) }
  }
}

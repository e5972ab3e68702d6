import Concourse
import Glibc

/// Readers and a writer. The writer does slow work inside its barrier, and all readers wait for it.
enum Catalogue {
  private static let queue = DispatchQueue(label: "catalogue", attributes: .concurrent)
  nonisolated(unsafe) private static var prices: [String: Int] = [:]  // guarded by `queue`

  static func start() {
    queue.async(flags: .barrier) { prices = download() }
    for _ in 1...20 { queue.async { _ = prices["tea"] } }
    DispatchQueue.global().async { print(price(of: "coffee")) }
  }

  private static func price(of ware: String) -> Int { queue.sync { prices[ware] ?? 0 } }

  private static func download() -> [String: Int] {
    // Stands for a slow server.
    sleep(3600)
    return ["coffee": 3]
  }
}

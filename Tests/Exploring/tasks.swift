// Swift Concurrency, Foundation and Swift's Mutex: an account that is looked at, and changed after an await. With the
// argument `sleeping` or `resuming` a task then polls for ever.
import Foundation
import Synchronization

actor Account {
  private(set) var balance = 100

  func withdraw(_ amount: Int, _ isCareful: Bool) async {
    guard balance >= amount else { return }
    if !isCareful { await Task.yield() }
    balance -= amount
  }
}

@main
enum Tasks {
  static func main() async throws {
    let isCareful = CommandLine.arguments.contains("careful")
    let account = Account()
    async let first: Void = account.withdraw(80, isCareful)
    async let second: Void = account.withdraw(80, isCareful)
    _ = await (first, second)

    let sum = Counter()
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<4 { group.addTask { sum.add(number) } }
    }
    let start = Date()
    try await Task.sleep(nanoseconds: 3_000_000_000)
    let reply = await withCheckedContinuation { continuation in
      DispatchQueue.global().async { continuation.resume(returning: 5) }
    }
    operate(sum)
    guard sum.value == 9, reply == 5, (3..<4).contains(Date().timeIntervalSince(start)) else { exit(4) }
    print(UUID().uuidString, Int.random(in: 0..<1_000_000), Set(["a", "b", "c", "d"]))
    if await account.balance < 0 { exit(3) }
    while CommandLine.arguments.contains("sleeping") { try await Task.sleep(nanoseconds: 5_000_000) }
    while CommandLine.arguments.contains("resuming") { await Task.yield() }
  }

  static func operate(_ sum: Counter) {
    let operations = OperationQueue()
    for number in 0..<3 { operations.addOperation { sum.add(number) } }
    operations.waitUntilAllOperationsAreFinished()
  }
}

final class Counter: Sendable {
  private let count = Mutex(0)
  func add(_ number: Int) { count.withLock { $0 += number } }
  var value: Int { count.withLock { $0 } }
}

import Concourse
import Glibc

/// Tasks in each kind of wait, for the tests of `concourse report`. They stay there.
enum Suspended {
  /// Continuations that stay as they are.
  final class Pool: @unchecked Sendable {
    private let queue = DispatchQueue(label: "pool")
    private var waiting: [CheckedContinuation<Int, Never>] = []

    func lease() async -> Int {
      await withCheckedContinuation { continuation in queue.sync { waiting.append(continuation) } }
    }
  }

  actor Bank {
    /// Blocks its thread while it has the actor.
    func audit(_ began: DispatchSemaphore) {
      began.signal()
      while true { pause() }
    }

    func balance() -> Int { 0 }
  }

  private static let pool = Pool()

  private static func request() async -> Int {
    let connection = await pool.lease()
    return connection + 1
  }

  private static func family() async -> Int {
    async let first = request()
    let sum = await withTaskGroup(of: Int.self) { group in
      for number in 0..<2 { group.addTask(name: "child \(number)") { await request() } }
      return await group.reduce(0, +)
    }
    return await first + sum
  }

  /// Beside a timer that fires, so that a recording has events.
  static func runTicking() -> Never {
    let timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "ticks"))
    timer.setEventHandler {}
    timer.schedule(deadline: .now(), repeating: .milliseconds(5))
    timer.activate()
    withExtendedLifetime(timer) { run() }
  }

  static func run() -> Never {
    for number in 0..<20 { Task(name: "request \(number)") { await request() } }
    Task.immediate(name: "immediate") { await request() }
    Task(name: "preferring", executorPreference: DispatchQueue(label: "preferred")) { await request() }
    let parent = Task(name: "parent", priority: .low) { await family() }
    let waiter = Task(name: "waiter") { await parent.value }
    waiter.cancel()
    Task(name: "sleeper") { try await Task.sleep(for: .seconds(100_000)) }
    let (stream, continuation) = AsyncStream<Int>.makeStream()
    Task(name: "reader" + Hostile.sequence) { for await number in stream { print(number) } }
    let ended = Task(name: "ended") { 1 }
    let bank = Bank()
    let began = DispatchSemaphore(value: 0)
    Task(name: "auditor") { await bank.audit(began) }
    began.wait()
    Task(name: "customer") { await bank.balance() }
    print("ready")
    fflush(nil)
    while true { withExtendedLifetime((continuation, ended)) { _ = pause() } }
  }
}

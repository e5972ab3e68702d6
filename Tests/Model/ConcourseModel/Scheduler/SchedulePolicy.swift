/// Decides which coroutine makes the next step, and which store it reads or follows.
protocol SchedulePolicy: AnyObject {
  /// What the policy wants to know about the steps.
  var partialOrder: PartialOrder? { get }

  /// Whether the policy makes the next choice. If not, the running coroutine continues.
  func wantsChoice(continuing: Bool) -> Bool

  /// Picks one of `options`: the ids of at least two coroutines that can continue.
  /// - Parameter continuing: Whether the first option is the coroutine that made the last step and can continue. Any
  ///   other choice is then a preemption.
  /// - Parameter decision: The number of this decision in the execution.
  /// - Parameter state: A hash of everything that determines the rest of the execution.
  /// - Returns: An index into `options`, or nil if they differ from those of the earlier execution.
  func choose(_ options: [Int], continuing: Bool, at decision: Int, state: () -> UInt64) -> Int?

  /// Whether the policy may take another store than the newest at this step.
  func wantsStore(at step: Int) -> Bool

  /// Picks one of `count` stores, of which the first is the newest, for the next step of `coroutine`.
  /// - Returns: its number, or nil if there are too few.
  func chooseStore(among count: Int, of coroutine: Int, at step: Int, state: () -> UInt64) -> Int?

  /// The place of the next step among the policy's decisions; nil if it makes no stores early before that step.
  var earlyPlace: Int? { get }

  /// A store could be made early: before a read of the same coroutine.
  func mayBeEarly(_ store: EarlyStore, before read: EarlyStore.Overtaken)

  /// The stores that are made early before this step.
  func early(at step: Int) -> [EarlyStore]
}

extension SchedulePolicy {
  var partialOrder: PartialOrder? { nil }
  var earlyPlace: Int? { nil }
  func mayBeEarly(_ store: EarlyStore, before read: EarlyStore.Overtaken) {}
  func early(at step: Int) -> [EarlyStore] { [] }
}

/// Lets each coroutine that can continue make one step in turn.
final class RoundRobin: SchedulePolicy {
  func wantsChoice(continuing: Bool) -> Bool { true }

  func choose(_ options: [Int], continuing: Bool, at decision: Int, state: () -> UInt64) -> Int? {
    // The options start with the running coroutine, if it can continue, and then follow the coroutines' order.
    continuing ? 1 : 0
  }

  func wantsStore(at step: Int) -> Bool { false }

  func chooseStore(among count: Int, of coroutine: Int, at step: Int, state: () -> UInt64) -> Int? { 0 }
}

/// Follows a recorded schedule. Elsewhere each coroutine runs until it blocks, and uses the newest stores.
final class Replay: SchedulePolicy {
  private var choices: [Int: Int] = [:]
  private var stores: [Int: Int] = [:]
  private var earlyStores: [Int: [EarlyStore]] = [:]

  init(_ schedule: ModelSchedule) {
    for choice in schedule.choices {
      switch choice {
      case .thread(let thread, let decision): choices[decision] = thread
      case .store(let number, let step): stores[step] = number
      case .early(let store, let step): earlyStores[step, default: []].append(store)
      }
    }
  }

  func wantsChoice(continuing: Bool) -> Bool { true }

  func choose(_ options: [Int], continuing: Bool, at decision: Int, state: () -> UInt64) -> Int? {
    guard let chosen = choices[decision] else { return 0 }
    return options.firstIndex(of: chosen)
  }
  func wantsStore(at step: Int) -> Bool { stores[step] != nil }

  func chooseStore(among count: Int, of coroutine: Int, at step: Int, state: () -> UInt64) -> Int? {
    stores[step].flatMap { $0 < count ? $0 : nil }
  }

  func early(at step: Int) -> [EarlyStore] { earlyStores[step] ?? [] }
}

internal import Synchronization

/// Names an item of a queue for ever.
///
/// Its place in the stream does not: after the loss of a leader, the same item may have another place
/// (README, "Why no ids of the servers").
struct NATSItem: Hashable, Sendable {
  /// The id of the submission.
  let id: String
  /// When the servers stored it, of an id that programs gave: they may use it again once the servers have forgotten it.
  /// Ids that the engine made are used for one item, which the servers may have stored twice.
  let time: UInt64

  init(id: String, time: UInt64) {
    self.id = id
    self.time = id.hasPrefix(NATSQueue.onceOnly) ? 0 : time
  }
}

/// The items that workers of this connection have, and the last ones that they have finished.
///
/// The servers may deliver an item again to the very process that has it: when an acknowledgement is lost with the
/// consumer's leader, or when beats are late. Here such an item does not run twice.
///
/// The lock is held while a delivery is asked or changed, so that a redelivery cannot come between the look at a
/// delivery's deadline and its removal.
final class NATSHeldItems: Sendable {
  enum Fate {
    case new
    /// It runs here; that run ends this delivery, too.
    case held
    /// It has run here; only the acknowledgement was lost.
    case finished
  }

  private enum Holder {
    case running(NATSDelivery)
    case finished
  }

  private struct State {
    var holders: [NATSItem: Holder] = [:]
    /// The finished ones, in a ring: each new one takes the place of the oldest.
    var order: [NATSItem] = []
    var oldest = 0

    mutating func leave(_ delivery: NATSDelivery) {
      if case .running(let holder) = holders[delivery.item], holder === delivery {
        holders[delivery.item] = nil
      }
    }
  }

  /// How many finished items are remembered.
  private static let memory = 10_000

  private let state = Mutex(State())

  func take(_ delivery: NATSDelivery) -> Fate {
    state.withLock { state in
      switch state.holders[delivery.item] {
      case .finished: return .finished
      case .running(let holder) where holder.absorbs(delivery): return .held
      case .running, nil:
        state.holders[delivery.item] = .running(delivery)
        return .new
      }
    }
  }

  /// The delivery does not have the item any more. Another delivery of the item stays.
  func leave(_ delivery: NATSDelivery) { state.withLock { state in state.leave(delivery) } }

  /// - Returns: Whether the deadline has passed; the item is left then.
  func leaveIfLost(_ delivery: NATSDelivery) -> Bool {
    // Asked twice for each start, by all runners. What is not lost needs no lock: a deadline is only put off.
    guard delivery.isLost else { return false }
    return state.withLock { state in
      guard delivery.isLost else { return false }
      state.leave(delivery)
      return true
    }
  }

  /// The item needs no other run.
  func finish(_ item: NATSItem) {
    let old = state.withLock { state in
      let holder = state.holders.updateValue(.finished, forKey: item)
      if case .finished = holder { return (holder, item) }
      guard state.order.count == Self.memory else {
        state.order.append(item)
        return (holder, item)
      }
      let oldest = state.order[state.oldest]
      state.holders[oldest] = nil
      state.order[state.oldest] = item
      state.oldest = (state.oldest + 1) % Self.memory
      return (holder, oldest)
    }
    // Not destroyed under the lock.
    withExtendedLifetime(old) {}
  }
}

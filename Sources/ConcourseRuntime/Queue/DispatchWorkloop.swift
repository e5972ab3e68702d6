// SAFETY: see `sorted`.
/// A queue that runs one item at a time, always one of the highest quality-of-service class that waits.
///
/// Items of one class keep their order, and so do the items of each serial queue that targets the workloop.
/// `sync` directly on a workloop traps, since its caller could not be ordered by class; use
/// `asyncAndWait`. Matching C type: `dispatch_workloop_t`.
public final class DispatchWorkloop: _DispatchSerialExecutorQueue, @unchecked Sendable {
  /// Properties fixed at creation; none is defined.
  public struct Attributes: OptionSet, Sendable {
    /// The bits.
    public let rawValue: UInt64
    /// A set from its bits.
    public init(rawValue: UInt64) { self.rawValue = rawValue }
  }

  /// Entries taken from the list, in order of arrival for each level. OWNED BY the owner of the queue, like
  /// the list's head.
  private var sorted = SortedEntries()

  /// Creates a workloop on the default global queue. Matching C function: `dispatch_workloop_create`.
  /// - Parameters:
  ///   - label: a name for debugging.
  ///   - attributes: none is defined.
  ///   - autoreleaseFrequency: accepted and without effect where there is no Objective-C.
  public init(
    label: String, attributes: Attributes = [], autoreleaseFrequency: AutoreleaseFrequency = .workItem
  ) {
    super.init(kind: .workloop, label: QueueName(label), qos: .unspecified, attributes: [], target: nil)
  }

  /// One that is to be configured before `activate()`, until when submitting to it traps. Matching C function:
  /// `dispatch_workloop_create_inactive`.
  package init(inactive label: String) {
    super.init(
      kind: .workloop, label: QueueName(label), qos: .unspecified, attributes: .initiallyInactive, target: nil
    )
  }

  /// The level of the owner's next entry, or nil when there is none or the workloop is held, and it has been
  /// given up.
  private func nextLevel() -> QoSLevel? {
    while true {
      while let node = list.popFirst() { sorted.append(node) }
      if state.snapshot.isHeld {
        if case .released = state.releaseHeld() { return nil }
      } else if let level = sorted.highest {
        return level
      } else if case .released = state.releaseEmpty() {
        return nil
      }
    }
  }

  /// Runs entries by level until none is left. The caller owns the queue.
  func drainByLevel(_ budget: Int) {
    var left = budget
    while true {
      guard let level = nextLevel() else { return }
      if left == 0 && WorkerThread.shouldYield {
        giveUpWorker(level)
        return
      }
      let node = sorted.takeFirst(of: level)
      if node.isWaiter {
        if passTurn(toWaiterIn: node, leftovers: sorted.highest != nil) { return }
      } else {
        Frame.setLevel(node.pointee.level)
        Invocation.perform(node)
      }
      left -= 1
    }
  }

  /// Gives up the workloop that the calling thread owns but does not drain.
  func handOnByLevel() {
    while true {
      guard let level = nextLevel() else { return }
      guard sorted.first(of: level).isWaiter else {
        carryOut(state.releaseToTarget(level))
        return
      }
      let node = sorted.takeFirst(of: level)
      if passTurn(toWaiterIn: node, leftovers: sorted.highest != nil) { return }
    }
  }
}

extension DispatchQueue {
  /// This queue as what it is when its kind is `.workloop`.
  final var asWorkloop: DispatchWorkloop {
    // SAFETY: only DispatchWorkloop passes the kind `.workloop` to the initialiser.
    unsafeDowncast(self, to: DispatchWorkloop.self)
  }
}

/// Entries in order of arrival for each level.
private struct SortedEntries {
  private var chains = [NodeChain](repeating: NodeChain(), count: 6)

  /// The highest level that has an entry.
  var highest: QoSLevel? {
    guard let index = chains.lastIndex(where: { !$0.isEmpty }) else { return nil }
    return QoSLevel(rawValue: UInt8(index))
  }

  func first(of level: QoSLevel) -> NodePointer { chains[Int(level.rawValue)].first! }

  mutating func append(_ node: NodePointer) {
    // An item of no class is served as default, and sorted so.
    chains[Int(node.pointee.level.served.rawValue)].append(node)
  }

  mutating func takeFirst(of level: QoSLevel) -> NodePointer {
    chains[Int(level.rawValue)].takeFirst()!
  }
}

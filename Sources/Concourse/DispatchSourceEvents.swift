public import ConcourseEvents

/// The events of one source as an asynchronous sequence, for `for await`.
///
/// **Back-pressure:** the source is suspended while no task waits for its next event. Nothing is buffered: the source
/// merges events that happen meanwhile according to its kind (a timer counts them, a read source stays ready, flags are
/// combined) and delivers them as one element.
///
/// **Ownership:** iterating sets the source's event handler and activates the source. The source is cancelled when the
/// iterating task is cancelled or the loop exits. A source that is cancelled elsewhere ends the sequence. The source's
/// cancel handler runs in all cases. Only one iterator may be made.
public struct DispatchSourceEvents<Element: Sendable>: AsyncSequence {
  /// Returns the source, which it may create.
  private let source: () -> any DispatchSourceProtocol
  private let read: (any DispatchSourceProtocol) -> Element

  init(
    _ source: @escaping () -> any DispatchSourceProtocol,
    _ read: @escaping (any DispatchSourceProtocol) -> Element
  ) {
    self.source = source
    self.read = read
  }

  /// Starts delivery. Costs as much as activating the source.
  public func makeAsyncIterator() -> Iterator { Iterator(EventRelay(source(), read)) }

  /// Waits for the events, one at a time.
  public struct Iterator: AsyncIteratorProtocol {
    private let relay: EventRelay<Element>
    /// Ends the sequence when the last copy of the iterator is released.
    private let end: DeinitAction

    fileprivate init(_ relay: EventRelay<Element>) {
      self.relay = relay
      end = DeinitAction { relay.end() }
    }

    /// The next event, or nil after the source or the task was cancelled.
    public func next() async -> Element? {
      let relay = self.relay
      return await withTaskCancellationHandler {
        await withCheckedContinuation { relay.await($0) }
      } onCancel: {
        relay.end()
      }
    }
  }

  private final class DeinitAction {
    private let action: () -> Void
    init(_ action: @escaping () -> Void) { self.action = action }
    deinit { action() }
  }
}

// SAFETY: a source may be used from any thread; its data is read in its handler.
extension DispatchSourceEvents: @unchecked Sendable {}

extension DispatchSourceProtocol {
  /// The source's `data`, event by event, as an asynchronous sequence. See `DispatchSourceEvents`.
  public var events: DispatchSourceEvents<UInt> { DispatchSourceEvents({ self }, { $0.data }) }
}

extension DispatchSource {
  /// The ticks of a timer as an asynchronous sequence. Each element is the number of intervals since the previous
  /// element: more than 1 if the loop's body was slower than the timer.
  ///
  /// The first tick comes one interval after iteration starts, the others at whole multiples, without drift. Each
  /// iteration has its own timer, which is cancelled with the task and when the loop exits.
  /// - Parameters:
  ///   - interval: The time between two ticks; must be positive.
  ///   - leeway: How late a tick may be, so that timers can fire together.
  public class func ticks(every interval: Duration, leeway: Duration = .zero) -> DispatchSourceEvents<UInt> {
    // Created by `makeAsyncIterator`: releasing a timer that was never activated traps.
    let source = { () -> any DispatchSourceProtocol in
      let timer = makeTimerSource()
      timer.schedule(after: interval, repeating: interval, leeway: leeway)
      return timer
    }
    return DispatchSourceEvents(source, { $0.data })
  }
}

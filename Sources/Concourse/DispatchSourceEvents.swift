public import ConcourseRuntime

/// The events of one source as an asynchronous sequence, for `for await`.
///
/// **Back-pressure:** the source is suspended whenever nobody waits for its next event. Nothing is buffered:
/// what happens meanwhile is merged by the source as its kind merges events (a timer counts, a read source
/// stays ready, flags unite), and comes as one element.
///
/// **Ownership:** iterating sets the source's event handler and activates it. The source is cancelled when
/// the iterating task is cancelled and when the loop is left; a source cancelled elsewhere ends the
/// sequence. Its cancel handler runs in all cases. Only one iterator may be made.
public struct DispatchSourceEvents<Element: Sendable>: AsyncSequence {
  /// Makes the source, or names one that exists.
  private let source: () -> any DispatchSourceProtocol
  private let read: (any DispatchSourceProtocol) -> Element

  init(
    _ source: @escaping () -> any DispatchSourceProtocol,
    _ read: @escaping (any DispatchSourceProtocol) -> Element
  ) {
    self.source = source
    self.read = read
  }

  /// Begins to listen. Complexity: that of activating the source.
  public func makeAsyncIterator() -> Iterator { Iterator(EventRelay(source(), read)) }

  /// Waits for one event after the other.
  public struct Iterator: AsyncIteratorProtocol {
    private let relay: EventRelay<Element>
    /// Ends the source when the last copy of the iterator goes.
    private let end: Ending

    fileprivate init(_ relay: EventRelay<Element>) {
      self.relay = relay
      end = Ending { relay.end() }
    }

    /// The next event, or nil when the source or the task has been cancelled.
    public func next() async -> Element? {
      let relay = self.relay
      return await withTaskCancellationHandler {
        await withCheckedContinuation { relay.await($0) }
      } onCancel: {
        relay.end()
      }
    }
  }

  private final class Ending {
    private let action: () -> Void
    init(_ action: @escaping () -> Void) { self.action = action }
    deinit { action() }
  }
}

// SAFETY: a source may be used from any thread; reading its data happens on the thread of its handler.
extension DispatchSourceEvents: @unchecked Sendable {}

extension DispatchSourceProtocol {
  /// The source's events as an asynchronous sequence of what `data` said: see `DispatchSourceEvents`.
  public var events: DispatchSourceEvents<UInt> { DispatchSourceEvents({ self }, { $0.data }) }
}

extension DispatchSource {
  /// The ticks of a timer as an asynchronous sequence: each element counts the intervals that have elapsed
  /// since the one before, more than 1 when the loop's body was slower than the timer.
  ///
  /// The first tick comes one interval after iterating has begun, the others at whole multiples, without
  /// drift. Each iteration has a timer of its own, which is cancelled with the task, and when the loop is left.
  /// - Parameters:
  ///   - interval: between two ticks; must be positive.
  ///   - leeway: how late a tick may be, so that timers fire together.
  public class func ticks(every interval: Duration, leeway: Duration = .zero) -> DispatchSourceEvents<UInt> {
    // Made by who iterates: a timer that nobody activates must not be released.
    let source = { () -> any DispatchSourceProtocol in
      let timer = makeTimerSource()
      timer.schedule(after: interval, repeating: interval, leeway: leeway)
      return timer
    }
    return DispatchSourceEvents(source, { $0.data })
  }
}

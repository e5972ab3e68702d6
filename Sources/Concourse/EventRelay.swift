internal import ConcourseRuntime
internal import Synchronization

/// Hands a source's events to whoever awaits them, one at a time. The source is suspended but while
/// somebody waits, so that there is never an event without a taker.
final class EventRelay<Element: Sendable> {
  typealias Waiter = CheckedContinuation<Element?, Never>

  private enum State {
    /// Nobody waits, the source is suspended.
    case resting
    case waiting(Waiter)
    case ended
  }

  private let source: any DispatchSourceProtocol
  private let state = Mutex(State.resting)

  init(_ source: any DispatchSourceProtocol, _ read: @escaping (any DispatchSourceProtocol) -> Element) {
    self.source = source
    source.suspend()
    source.setEventHandler { [self] in deliver(read(source)) }
    source.whenCancelled { [self] in end() }
    source.activate()
  }

  /// What a change of state asks for.
  private enum Action {
    case nothing
    case resumeSource
    case give(Element?, to: Waiter)
    /// Cancel the source and let it go on, so that its cancel handler runs.
    case stop(wasSuspended: Bool, Waiter?)
  }

  func await(_ waiter: Waiter) {
    perform(
      state.withLock { state in
        switch state {
        case .resting:
          state = .waiting(waiter)
          return .resumeSource
        case .waiting:
          return .give(nil, to: waiter)
        case .ended:
          return .give(nil, to: waiter)
        }
      })
  }

  /// Runs in the source's handler.
  private func deliver(_ element: Element) {
    perform(
      state.withLock { state in
        switch state {
        case .waiting(let waiter):
          state = .resting
          // Under the lock: the next `await` must find it suspended.
          source.suspend()
          return .give(element, to: waiter)
        case .resting, .ended:
          return .nothing
        }
      })
  }

  func end() {
    perform(
      state.withLock { state in
        switch state {
        case .resting:
          state = .ended
          return .stop(wasSuspended: true, nil)
        case .waiting(let waiter):
          state = .ended
          return .stop(wasSuspended: false, waiter)
        case .ended:
          return .nothing
        }
      })
  }

  private func perform(_ action: Action) {
    switch action {
    case .nothing: break
    case .resumeSource: source.resume()
    case .give(let element, let waiter): waiter.resume(returning: element)
    case .stop(let wasSuspended, let waiter):
      source.cancel()
      if wasSuspended { source.resume() }
      waiter?.resume(returning: nil)
    }
  }
}

// SAFETY: the state is guarded by its mutex; sources may be used from any thread.
extension EventRelay: @unchecked Sendable {}

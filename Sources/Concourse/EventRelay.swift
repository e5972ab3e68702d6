internal import ConcourseEvents
internal import Synchronization

/// Passes a source's events to a waiting task, one at a time. The source is suspended while no task waits, so every
/// event has a receiver.
final class EventRelay<Element: Sendable> {
  typealias Waiter = CheckedContinuation<Element?, Never>

  private enum State {
    /// No task waits; the source is suspended.
    case suspended
    case waiting(Waiter)
    case ended
  }

  private let source: any DispatchSourceProtocol
  private let state = Mutex(State.suspended)

  init(_ source: any DispatchSourceProtocol, _ read: @escaping (any DispatchSourceProtocol) -> Element) {
    self.source = source
    source.suspend()
    source.setEventHandler { [self] in deliver(read(source)) }
    source.whenCancelled { [self] in end() }
    source.activate()
  }

  /// What the caller does after unlocking.
  private enum Action {
    case nothing
    case resumeSource
    case give(Element?, to: Waiter)
    /// Cancel the source; resume it if it was suspended, so that its cancel handler runs.
    case stop(wasSuspended: Bool, Waiter?)
  }

  func await(_ waiter: Waiter) {
    perform(
      state.withLock { state in
        switch state {
        case .suspended:
          state = .waiting(waiter)
          return .resumeSource
        case .waiting:
          return .give(nil, to: waiter)
        case .ended:
          return .give(nil, to: waiter)
        }
      })
  }

  /// Called by the source's handler.
  private func deliver(_ element: Element) {
    perform(
      state.withLock { state in
        switch state {
        case .waiting(let waiter):
          state = .suspended
          // Under the lock: the next `await` must find the source suspended.
          source.suspend()
          return .give(element, to: waiter)
        case .suspended, .ended:
          return .nothing
        }
      })
  }

  func end() {
    perform(
      state.withLock { state in
        switch state {
        case .suspended:
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

// SAFETY: a mutex guards the state; sources may be used from any thread.
extension EventRelay: @unchecked Sendable {}

import Testing

@testable import ConcourseEvents
@testable import ConcourseRuntime

extension Engine {
  /// A handler's captures are destroyed where client code may run: without a lock of the engine.
  @Suite("Lifetimes of handlers")
  struct SourceLifetimeTests {
    private enum Kind: CaseIterable { case event, cancel, registration }

    /// Uses the source in its deinit, like an object that closes its connection.
    private final class Asker {
      weak var source: DispatchSource?
      let ended: DispatchSemaphore

      init(_ source: DispatchSource, _ ended: DispatchSemaphore) {
        (self.source, self.ended) = (source, ended)
      }

      deinit {
        source?.cancel()
        ended.signal()
      }
    }

    private static func set(_ kind: Kind, of source: DispatchSource, to handler: (() -> Void)?) {
      switch kind {
      case .event: source.setEventHandler(handler: handler)
      case .cancel: source.setCancelHandler(handler: handler)
      case .registration: source.setRegistrationHandler(handler: handler)
      }
    }

    private static func setAsker(_ kind: Kind, of source: DispatchSource, _ ended: DispatchSemaphore) {
      let asker = Asker(source, ended)
      set(kind, of: source) { withExtendedLifetime(asker) {} }
    }

    private static func makeSource(_ queue: DispatchQueue) -> DispatchSource {
      DispatchSource.makeUserDataAddSource(queue: queue) as! DispatchSource
    }

    @Test("S97 a replaced handler's captures may use the source in their deinit", arguments: Kind.allCases)
    private func replaced(_ kind: Kind) {
      let source = Self.makeSource(DispatchQueue(label: "handlers"))
      let ended = DispatchSemaphore(value: 0)
      startThread {
        Self.setAsker(kind, of: source, ended)
        Self.set(kind, of: source, to: nil)
      }
      #expect(comes(ended))
      source.activate()
    }

    @Test("S98 a registration handler's captures may use the source in their deinit")
    func registered() {
      let queue = DispatchQueue(label: "handlers")
      let source = Self.makeSource(queue)
      let ended = DispatchSemaphore(value: 0)
      Self.setAsker(.registration, of: source, ended)
      source.activate()
      #expect(comes(ended))
      queue.async { ended.signal() }
      #expect(comes(ended))
    }

    @Test("S101 a cancel handler may hold the last reference to its own source")
    func holdsItself() {
      let queue = DispatchQueue(label: "handlers")
      let called = DispatchSemaphore(value: 0)
      weak var gone: DispatchSource?
      do {
        let source = Self.makeSource(queue)
        gone = source
        source.setCancelHandler {
          #expect(source.isCancelled)
          called.signal()
        }
        source.activate()
        source.cancel()
      }
      #expect(comes(called))
      queue.async { called.signal() }
      #expect(comes(called))
      #expect(gone == nil)
    }
  }
}

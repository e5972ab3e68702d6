import Concourse

/// Calls `relieve` when the system runs short of memory.
final class MemoryPressure {
  private let source: any DispatchSourceMemoryPressure

  init(relieve: @escaping @Sendable () -> Void) {
    source = DispatchSource.makeMemoryPressureSource(
      eventMask: [.warning, .critical], queue: .global(qos: .utility))
    source.setEventHandler(handler: relieve)
    source.activate()
  }

  deinit { source.cancel() }
}

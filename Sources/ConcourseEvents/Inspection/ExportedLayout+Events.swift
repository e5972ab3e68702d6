internal import CConcourse

/// Makes what the module makes on first use (see `Runtime.startThread`), and stores the driver.
@c(concourse_make_event_driver)
func makeEventDriver(_ driver: UnsafeMutableRawPointer) {
  _ = (EventLoop.timers, EventLoop.files)
  // For `concourse report`.
  ExportedLayout.export(SourceCore.self, at: 20)
  ExportedLayout.export(SourceState.self, at: 21)
  ExportedLayout.export(SourceKind.self, at: 22)
  ExportedLayout.export(TimerBackend.self, at: 23)
  ExportedLayout.export(TimerSchedule.self, at: 24)
  ExportedLayout.export(DescriptorEntry.self, at: 27)
  ExportedLayout.export(TimerTable.self, at: 28)
  ExportedLayout.export(DescriptorState.self, at: 29)
  // SAFETY: `Runtime.eventDriver` passes exactly this type.
  driver.assumingMemoryBound(to: (any EventDriver)?.self).pointee = EventLoop.shared
}

/// What a source calls: a closure, a work item or a C function, and how it wants to be served.
struct SourceHandler {
  private enum Body {
    case closure(() -> Void)
    case item(DispatchWorkItem)
    /// Called with the context of the moment, or with the one that is settled for events. The extras, and with them
    /// the context, outlive the source by as long as the handler may be called.
    case function(ContextFunction, ObjectExtras, settled: Bool)
  }

  private let body: Body
  private let qos: QoSLevel
  private let flags: DispatchWorkItemFlags

  init(_ closure: @escaping () -> Void, qos: DispatchQoS, flags: DispatchWorkItemFlags) {
    body = .closure(closure)
    self.qos = QoSLevel(qos.qosClass)
    self.flags = flags
  }

  init(_ item: DispatchWorkItem) {
    body = .item(item)
    qos = .unspecified
    flags = item.flags
  }

  init(_ function: @escaping ContextFunction, _ extras: ObjectExtras, settled: Bool) {
    body = .function(function, extras, settled: settled)
    qos = .unspecified
    flags = []
  }

  func call() {
    switch body {
    case .closure(let closure): if Observation.isActive { Observation.run(closure) } else { closure() }
    case .item(let item): item.execute()
    case .function(let function, let extras, let settled):
      let context = settled ? extras.eventContext : extras.currentContext
      if Observation.isActive { Observation.run { function(context) } } else { function(context) }
    }
  }

  /// The level at which `queue` is to serve it.
  func level(on queue: DispatchQueue) -> QoSLevel { queue.servingLevel(qos, flags) }

  var traits: WorkTraits { flags.contains(.barrier) ? .barrier : [] }
}

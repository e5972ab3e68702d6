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
  /// Apart from the rest, so that it can be read without counting what the rest holds.
  let service: Service

  /// How it is to be served.
  struct Service {
    private let qos: QoSLevel
    /// All that are defined fit into a byte, and a source has three of these.
    private let bits: UInt8

    init(qos: QoSLevel, flags: DispatchWorkItemFlags) {
      self.qos = qos
      bits = UInt8(truncatingIfNeeded: flags.rawValue)
    }

    private var flags: DispatchWorkItemFlags { DispatchWorkItemFlags(rawValue: UInt(bits)) }

    /// The level at which `queue` is to serve it.
    func level(on queue: DispatchQueue) -> QoSLevel { queue.servingLevel(qos, flags) }

    var traits: WorkTraits { flags.contains(.barrier) ? .barrier : [] }
  }

  init(_ closure: @escaping () -> Void, qos: DispatchQoS, flags: DispatchWorkItemFlags) {
    body = .closure(closure)
    service = Service(qos: QoSLevel(qos.qosClass), flags: flags)
  }

  init(_ item: DispatchWorkItem) {
    body = .item(item)
    service = Service(qos: .unspecified, flags: item.flags)
  }

  init(_ function: @escaping ContextFunction, _ extras: ObjectExtras, settled: Bool) {
    body = .function(function, extras, settled: settled)
    service = Service(qos: .unspecified, flags: [])
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
}

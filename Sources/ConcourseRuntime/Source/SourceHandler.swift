/// What a source calls: a closure or a work item, and how it wants to be served.
struct SourceHandler {
  private enum Body {
    case closure(() -> Void)
    case item(DispatchWorkItem)
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

  func call() {
    switch body {
    case .closure(let closure): if Observation.isActive { Observation.run(closure) } else { closure() }
    case .item(let item): item.execute()
    }
  }

  /// The level at which `queue` is to serve it.
  func level(on queue: DispatchQueue) -> QoSLevel { queue.servingLevel(qos, flags) }

  var traits: WorkTraits { flags.contains(.barrier) ? .barrier : [] }
}
